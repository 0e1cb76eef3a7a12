"""Reconciliation runs and their reports; callbacks that were only observed, rejected, or stopped coming."""

from safelight.db.migrations.plain import run_sql_file

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Create everything of `0003_reconcile.sql`."""
    run_sql_file("0003_reconcile.sql")
