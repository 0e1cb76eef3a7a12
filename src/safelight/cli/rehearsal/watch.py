"""Looks at what a rehearsal uses: memory, open files, connections, and how much of the tables is dead."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

import asyncpg
import psutil

from safelight.cli.rehearsal.scratch import Scratch

LOOK_EVERY_S = 2.0
LOOK_TIMEOUT_S = 10.0
MOST_LOOKS = 600
GROWTH = 1.5
"""What stays within this of what it was counts as flat."""
SLACK = {"rss_mb": 60.0, "files": 40.0, "connections": 15.0, "queue_kb": 4_000.0, "dead": 0.4}
_TABLES = """
SELECT (SELECT count(*) FROM pg_stat_activity WHERE application_name = 'safelight') AS connections,
       (SELECT count(*) FROM tasks) AS tasks,
       (SELECT coalesce(sum(n_dead_tup)::float8 / nullif(sum(n_live_tup + n_dead_tup), 0), 0)
        FROM pg_stat_user_tables WHERE schemaname = 'safelight') AS dead,
       (SELECT coalesce(sum(pg_total_relation_size(relid)), 0)::bigint
        FROM pg_stat_user_tables WHERE schemaname = 'safelight') AS tables_bytes,
       pg_total_relation_size('pgqueuer.pgqueuer') AS queue_bytes
"""


@dataclass(frozen=True, slots=True)
class Look:
    """One look: of the processes the largest of each; `dead` is the dead share of all rows."""

    at_s: float
    rss_mb: float
    files: int
    connections: int
    tasks: int
    dead: float
    tables_mb: float
    queue_kb: float


class Watch:
    """Collects looks until it is canceled, however long that takes: every second one goes when there are too many."""

    def __init__(self, place: Scratch) -> None:
        self._place = place
        self._began = time.monotonic()
        self._every_s = LOOK_EVERY_S
        self.looks: list[Look] = []

    async def run(self) -> None:
        """Look, wait, look again; a look that comes to nothing is left out."""
        while True:
            with contextlib.suppress(
                OSError,
                asyncpg.PostgresError,
                asyncpg.InterfaceError,
                asyncpg.InternalClientError,
                TimeoutError,
            ):
                async with asyncio.timeout(LOOK_TIMEOUT_S):
                    self.looks.append(await self.look())
            if len(self.looks) > MOST_LOOKS:
                self.looks, self._every_s = self.looks[::2], self._every_s * 2.0
            await asyncio.sleep(self._every_s)

    async def look(self) -> Look:
        """What is used now."""
        rss, files = _largest([one.pid for one in self._place.kept if one.pid is not None])
        # A session of its own, cut at the end: giving one back to a pool waits for a database that stands still.
        connection = await self._place.books.connect_directly()
        try:
            (row,) = await connection.fetch(_TABLES)
        finally:
            connection.terminate()
        return Look(
            at_s=round(time.monotonic() - self._began, 1),
            rss_mb=round(rss / 1e6, 1),
            files=files,
            connections=row["connections"],
            tasks=row["tasks"],
            dead=round(row["dead"], 3),
            tables_mb=round(row["tables_bytes"] / 1e6, 1),
            queue_kb=round(row["queue_bytes"] / 1e3, 1),
        )


def not_flat(looks: Sequence[Look]) -> list[str]:
    """What grew between the second and the last quarter beyond what an even load explains."""
    quarter = len(looks) // 4
    if not quarter:
        return []
    second, last = looks[quarter : 2 * quarter], looks[-quarter:]
    grown = []
    for name, slack in SLACK.items():
        before = median(getattr(look, name) for look in second)
        after = median(getattr(look, name) for look in last)
        if after > before * GROWTH + slack:
            grown.append(f"{name} grew from {before:g} to {after:g}")
    return grown


def _largest(pids: Sequence[int]) -> tuple[int, int]:
    rss, files = 0, 0
    for pid in pids:
        with contextlib.suppress(psutil.Error):
            process = psutil.Process(pid)
            rss, files = max(rss, process.memory_info().rss), max(files, process.num_fds())
    return rss, files
