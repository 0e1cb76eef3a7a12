"""One session that hears what commits tell on a channel, opened again whenever it is lost."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import asyncpg
import structlog

from safelight.db.database import Database
from safelight.db.views import UNREACHABLE

log = structlog.get_logger()

AGAIN_S = 1.0
TROUBLES: tuple[type[Exception], ...] = (*UNREACHABLE, asyncpg.PostgresError)
"""Whatever keeps us from listening: those who wait for a word read without one meanwhile."""


async def listen(database: Database, channel: str, on_word: Callable[[str], None]) -> None:
    """Hand every payload to `on_word`, until canceled; an empty one means that some may have been missed."""
    while True:
        try:
            connection = await database.connect_directly()
        except TROUBLES as error:
            log.warning("listening_failed", channel=channel, error=type(error).__name__)
            await asyncio.sleep(AGAIN_S)
            continue
        is_lost = asyncio.Event()

        def hear(_connection: Any, _pid: int, _channel: str, payload: object) -> None:
            on_word(str(payload))

        def lose(_connection: Any, lost: asyncio.Event = is_lost) -> None:
            lost.set()

        try:
            connection.add_termination_listener(lose)
            await connection.add_listener(channel, hear)
            on_word("")
            await is_lost.wait()
            log.warning("listening_lost", channel=channel)
        except TROUBLES as error:
            log.warning("listening_failed", channel=channel, error=type(error).__name__)
        finally:
            connection.terminate()
        await asyncio.sleep(AGAIN_S)
