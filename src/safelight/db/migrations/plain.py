"""Runs a revision's SQL file as it is."""

from pathlib import Path
from typing import Any

from alembic import op


def run_sql_file(name: str) -> None:
    """Execute `versions/<name>` whole on the migration's own connection and transaction."""
    script = (Path(__file__).parent / "versions" / name).read_text(encoding="utf-8")
    adapted: Any = op.get_bind().connection.dbapi_connection
    op.get_bind().exec_driver_sql("SELECT 1")  # makes the driver open its transaction before we use it below
    adapted.run_async(lambda connection: connection.execute(script))
