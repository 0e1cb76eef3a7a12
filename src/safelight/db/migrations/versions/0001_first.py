"""The first schema."""

from safelight.db.migrations.plain import run_sql_file

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Create everything of `0001_first.sql`."""
    run_sql_file("0001_first.sql")
