"""A provider's own list: pages within its quota of looks, and what it leaves out asked for by id."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, replace
from datetime import datetime

import structlog

from safelight.db import gates
from safelight.domain.provider import AttemptRef, Provider, ProviderUpdate, UpdateStatus, UpstreamRecord
from safelight.errors import ProviderError
from safelight.lifecycle.context import Context
from safelight.lifecycle.looks import count

log = structlog.get_logger()

_OPEN = frozenset({UpdateStatus.QUEUED, UpdateStatus.RUNNING})


@dataclass(frozen=True, slots=True)
class Window:
    """What a provider's list has of a time; it may have more if it is not complete."""

    records: tuple[UpstreamRecord, ...]
    is_complete: bool


async def wait_for_look(context: Context, provider: Provider) -> None:
    """Take one look of the provider's quota, as soon as all workers together leave one."""
    per_s = provider.capabilities.polls_per_s
    while per_s is not None:
        async with context.database.transaction() as connection:
            if await gates.looks_free(connection, provider.name, per_s=per_s) >= 1:
                await gates.take_looks(connection, provider.name, 1, per_s=per_s)
                return
        await asyncio.sleep(min(1.0 / per_s, 5.0))


async def read_window(
    context: Context, provider: Provider, since: datetime, until: datetime, *, within_s: float
) -> Window:
    """The records of a window; one that cannot be read in time, or to its end, is not complete.

    The first page is paid for by the caller's own look.

    Raises:
        ProviderError: not even the first page could be read.
    """
    started = time.monotonic()
    page = await provider.list_records(since, until, None)
    records = list(page.records)
    while page.next_cursor is not None:
        if time.monotonic() - started > within_s:
            return Window(tuple(records), is_complete=False)
        try:
            await wait_for_look(context, provider)
            page = await provider.list_records(since, until, page.next_cursor)
        except ProviderError as error:
            log.warning("list_broke_off", provider=provider.name, excerpt=error.excerpt)
            return Window(tuple(records), is_complete=False)
        records.extend(page.records)
    count(provider.name, "listed")
    return Window(tuple(records), is_complete=True)


async def told_by_id(
    context: Context, provider: Provider, attempt: AttemptRef, record: UpstreamRecord
) -> ProviderUpdate:
    """What a record says, in full: a list may leave out pictures and reasons.

    Raises:
        ProviderError: it has ended, and the provider could not be asked how.
    """
    update = record.update
    has_all = update.status in _OPEN or bool(update.outputs)
    if has_all or not provider.capabilities.can_poll:
        return _without_empty_success(update)
    await wait_for_look(context, provider)
    told = await provider.poll(replace(attempt, provider_ref=record.provider_ref))
    count(provider.name, told.status)
    return replace(
        told, provider_ref=record.provider_ref, cost=update.cost if told.cost is None else told.cost
    )


def _without_empty_success(update: ProviderUpdate) -> ProviderUpdate:
    """A list's success without its pictures only says that there is something to fetch."""
    if update.status is UpdateStatus.SUCCEEDED and not update.outputs:
        return replace(update, status=UpdateStatus.RUNNING)
    return update
