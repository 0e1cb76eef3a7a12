"""Differences that are kept for a person, never silently mended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from safelight.db.statements import Connection, statements
from safelight.db.tasks import as_json

_sql = statements("findings")


async def insert_findings(
    connection: Connection, items: Sequence[Mapping[str, Any]]
) -> list[tuple[str, UUID | None]]:
    """Keep findings; returns (kind, task id) of those that were not known yet.

    One about a record without an attempt of ours has no task; its provider_ref names it.
    """
    rows = await _sql.insert_findings.rows(connection, items=as_json(items))
    return [(row["kind"], row["task_id"]) for row in rows]
