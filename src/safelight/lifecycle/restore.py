"""A database that was restored from a backup: what it does not know any more may have been sent already."""

from __future__ import annotations

from safelight.db import live, retention
from safelight.db.auditlog import write_line
from safelight.db.database import Database
from safelight.domain.audit import Actor
from safelight.domain.failure import MAX_ATTEMPTS

ROOM = 500
LEAP = 1_000_000_000
"""More events than any account can have had since the backup."""


async def mark_restored(database: Database, by: Actor) -> int:
    """Let the next attempts of every unfinished task be looked for before they are sent; how many tasks these are.

    As many as a task may have at one route: whatever the forgotten attempts were, they were no more than these.
    """
    count = 0
    while True:
        async with database.transaction() as connection:
            marked = await retention.mark_restored(connection, attempts=MAX_ATTEMPTS, room=ROOM)
        count += marked
        if marked < ROOM:
            break
    async with database.transaction() as connection:
        await live.leap(connection, by=LEAP)
        await write_line(connection, by, "restore", detail={"tasks": count})
    return count
