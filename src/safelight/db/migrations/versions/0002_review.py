"""Decisions of people, operators' keys, the audit log, alerts."""

from safelight.db.migrations.plain import run_sql_file

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Create everything of `0002_review.sql`."""
    run_sql_file("0002_review.sql")
