"""Retention: what a task said may go, what it cost and how it ended stays; and tasks of a restored backup."""

from safelight.db.migrations.plain import run_sql_file

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Create everything of `0004_retention.sql`."""
    run_sql_file("0004_retention.sql")
