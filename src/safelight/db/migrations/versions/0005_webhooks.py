"""Webhooks to customers: endpoints with their secrets, events, deliveries and each of their tries."""

from safelight.db.migrations.plain import run_sql_file

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Create everything of `0005_webhooks.sql`."""
    run_sql_file("0005_webhooks.sql")
