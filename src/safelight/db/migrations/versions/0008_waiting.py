"""The fair claim passes by tasks in back-off without reading them."""

from safelight.db.migrations.plain import run_sql_file

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    """Do everything of `0008_waiting.sql`."""
    run_sql_file("0008_waiting.sql")
