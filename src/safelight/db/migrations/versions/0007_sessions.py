"""Sessions of people in a browser, and the one-time tickets that open them."""

from safelight.db.migrations.plain import run_sql_file

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    """Create everything of `0007_sessions.sql`."""
    run_sql_file("0007_sessions.sql")
