"""Live events: what a customer sees of a task, numbered for each account; and tickets for browsers."""

from safelight.db.migrations.plain import run_sql_file

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    """Create everything of `0006_live.sql`."""
    run_sql_file("0006_live.sql")
