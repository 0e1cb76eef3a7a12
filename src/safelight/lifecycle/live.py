"""Live events to whoever watches: one listening session and one reader a process, however many streams."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import secrets
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections import deque
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass, field
from datetime import datetime
from time import monotonic
from uuid import UUID

import structlog

from safelight.db import accounts, live, sessions
from safelight.db.database import Database
from safelight.db.listening import listen
from safelight.db.live import LiveEvent, Position
from safelight.db.statements import Connection
from safelight.db.views import UNREACHABLE
from safelight.errors import RequestError
from safelight.telemetry import STREAMS, STREAMS_CLOSED

log = structlog.get_logger()

SCAN_S = 2.0
"""How often every watched account is read without having been told, and the keys of its streams are looked at."""
GATHER_S = 0.01
"""What is told within this time is read together."""
BUFFER = 256
"""Events that may wait for a slow reader; with more the stream is closed, and its client resumes."""
MOST = 5_000
"""Streams of one process."""
TICKET_S = 60.0
TICKET_BYTES, TICKET_CHARACTERS = 32, 43


@dataclass(frozen=True, slots=True)
class Opener:
    """Whoever opens a stream: it ends with the key, and with the session if somebody in a browser opened it."""

    account_id: UUID
    key_id: str
    session: bytes | None = field(default=None, repr=False)


@dataclass(eq=False, slots=True)
class Subscription:
    """What one stream still has to send: events of an account after `since`, or of one task of it."""

    opener: Opener
    since: int
    position: Position
    task_id: UUID | None = None
    closed: str = ""
    _events: deque[LiveEvent] = field(default_factory=deque)
    _news: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def account_id(self) -> UUID:
        """Whose events these are."""
        return self.opener.account_id

    def put(self, event: LiveEvent) -> None:
        """Have an event sent; a reader that is too slow is let go."""
        if self.closed or self.task_id not in (None, event.task_id):
            return
        if len(self._events) >= BUFFER:
            self.close("slow")
            return
        self._events.append(event)
        self._news.set()

    def close(self, reason: str) -> None:
        """End the stream; the first reason counts."""
        self.closed = self.closed or reason
        self._news.set()

    async def take(self, within_s: float) -> list[LiveEvent]:
        """What there is to send, as soon as there is something; nothing once closed, or when the time is up."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                await self._news.wait()
        self._news.clear()
        taken = list(self._events)
        self._events.clear()
        return [] if self.closed else taken


@dataclass(slots=True)
class _Channel:
    """An account that is watched, and how far its events have been handed on."""

    cursor: int
    subscriptions: set[Subscription] = field(default_factory=set)


class Live:
    """Hands committed events to the streams of this process.

    A stream can neither miss an event nor get one twice: numbers are given to rows that are committed, and every
    channel reads on from its own last number. What is told on LISTEN only says when to read.
    """

    def __init__(self, database: Database, *, streams: int = 10) -> None:
        self._database = database
        self._streams = streams
        self._channels: dict[UUID, _Channel] = {}
        self._told: set[UUID] = set()
        self._news = asyncio.Event()
        self._work: list[asyncio.Task[None]] = []
        self._scanned_at = 0.0
        self._is_closing = False

    async def join(self, opener: Opener, *, task_id: UUID | None = None) -> Subscription:
        """Watch an account, or one task of it.

        Raises:
            RequestError: 429, there are too many streams already.
        """
        account_id = opener.account_id
        self._check_room(account_id)
        async with self._database.connection() as connection:
            await live.number_events(connection, [account_id])
            position = await live.read_position(connection, account_id)
        self._check_room(account_id)
        channel = self._channels.setdefault(account_id, _Channel(position.last))
        made = Subscription(opener, channel.cursor, position, task_id)
        channel.subscriptions.add(made)
        STREAMS.inc()
        # What was committed since the numbers were read was told to nobody.
        self._told.add(account_id)
        self._news.set()
        self._start()
        return made

    def leave(self, subscription: Subscription) -> None:
        """Watch no more."""
        channel = self._channels.get(subscription.account_id)
        if channel is None or subscription not in channel.subscriptions:
            return
        channel.subscriptions.discard(subscription)
        STREAMS.dec()
        STREAMS_CLOSED.labels(subscription.closed or "ended").inc()
        if not channel.subscriptions:
            del self._channels[subscription.account_id]
        if not self._channels:
            self._stop()

    def let_go(self) -> None:
        """End every stream now and take none from now on: the process is about to stop."""
        self._is_closing = True
        for subscription in self._subscriptions():
            subscription.close("stopping")

    async def missed(self, subscription: Subscription, after: int) -> list[LiveEvent]:
        """A page of what came after a number, before the subscription began."""
        async with self._database.connection() as connection:
            if subscription.task_id is None:
                found = await live.read_events(connection, {subscription.account_id: after})
            else:
                found = await live.read_events_of_task(
                    connection, subscription.account_id, subscription.task_id, after=after
                )
        return [event for event in found if event.number <= subscription.since]

    async def present(self, account_id: UUID, task_id: UUID) -> LiveEvent | None:
        """How a task was last told of; None if that is longer ago than events are kept."""
        async with self._database.connection() as connection:
            return await live.last_event_of_task(connection, account_id, task_id)

    async def issue_ticket(self, opener: Opener) -> tuple[str, datetime]:
        """A ticket that opens one stream within a minute, and when it ends; only its hash is kept.

        One that was asked for in a session names it at its end: the hash is of the whole, so nobody can change that.
        """
        ticket = secrets.token_urlsafe(TICKET_BYTES)
        if opener.session is not None:
            ticket += urlsafe_b64encode(opener.session).decode().rstrip("=")
        async with self._database.connection() as connection:
            expires_at = await live.insert_ticket(
                connection, opener.account_id, opener.key_id, digest=_digest(ticket), life_s=TICKET_S
            )
        return ticket, expires_at

    async def take_ticket(self, ticket: str) -> Opener | None:
        """Use up a ticket: to whom it was issued; None if it is none, or none any more."""
        async with self._database.connection() as connection:
            found = await live.take_ticket(connection, _digest(ticket))
            if found is None or not found.is_live or found.key_id is None:
                return None
            opener = Opener(found.account_id, found.key_id, _session_in(ticket))
            return None if await _why_over(connection, {opener}) else opener

    def _check_room(self, account_id: UUID) -> None:
        channel = self._channels.get(account_id)
        total = sum(len(each.subscriptions) for each in self._channels.values())
        if self._is_closing or total >= MOST or (channel and len(channel.subscriptions) >= self._streams):
            detail = f"An account may have {self._streams} streams open; close one, or wait."
            raise RequestError(429, "too-many-streams", detail, retry_after_s=5)

    def _subscriptions(self) -> Iterable[Subscription]:
        return [one for channel in self._channels.values() for one in channel.subscriptions]

    def _start(self) -> None:
        if not self._work:
            self._work = [
                asyncio.create_task(listen(self._database, live.CHANNEL, self._hear), name="live-listen"),
                asyncio.create_task(self._hand_on(), name="live"),
            ]
            for work in self._work:
                work.add_done_callback(self._break)

    def _stop(self) -> None:
        for work in self._work:
            work.cancel()
        self._work = []

    def _break(self, work: asyncio.Task[None]) -> None:
        """A fault of ours must not leave streams open that nothing comes through: their clients resume."""
        if work.cancelled() or work not in self._work:
            return
        log.error("live_broke", error=repr(work.exception()))
        for subscription in self._subscriptions():
            subscription.close("broken")

    def _hear(self, payload: str) -> None:
        """Note whose events are to be read: those of one account, or after a gap in the listening of all."""
        with contextlib.suppress(ValueError):
            named = [UUID(payload)] if payload else list(self._channels)
            self._told.update(account_id for account_id in named if account_id in self._channels)
        if self._told:
            self._news.set()

    async def _hand_on(self) -> None:
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(SCAN_S):
                    await self._news.wait()
                    await asyncio.sleep(GATHER_S)
            self._news.clear()
            is_scan = monotonic() - self._scanned_at >= SCAN_S
            told = list(self._channels) if is_scan else [one for one in self._told if one in self._channels]
            self._told.clear()
            try:
                if is_scan:
                    await self._close_ended()
                    self._scanned_at = monotonic()
                await self._read(told)
            except UNREACHABLE as error:
                # Nothing is lost: the next scan reads on from where each channel stands.
                log.warning("live_unseen", accounts=len(told), error=type(error).__name__)
                await asyncio.sleep(GATHER_S)

    async def _read(self, account_ids: Sequence[UUID]) -> None:
        after = {one: self._channels[one].cursor for one in account_ids if one in self._channels}
        while after:
            async with self._database.connection() as connection:
                await live.number_events(connection, list(after))
                found = await live.read_events(connection, after)
            for event in found:
                self._put(event)
            counts = dict.fromkeys(after, 0)
            for event in found:
                counts[event.account_id] += 1
            full = [one for one, count in counts.items() if count == live.ROOM and one in self._channels]
            after = {one: self._channels[one].cursor for one in full}

    def _put(self, event: LiveEvent) -> None:
        channel = self._channels.get(event.account_id)
        # A channel that was left and joined anew while we read stands further on.
        if channel is None or event.number <= channel.cursor:
            return
        channel.cursor = event.number
        for subscription in channel.subscriptions:
            subscription.put(event)

    async def _close_ended(self) -> None:
        """Close the streams of keys that were revoked and of sessions that are over."""
        openers = {one.opener for one in self._subscriptions()}
        if not openers:
            return
        async with self._database.connection() as connection:
            reasons = await _why_over(connection, openers)
        for subscription in self._subscriptions():
            if reason := reasons.get(subscription.opener):
                subscription.close(reason)


async def _why_over(connection: Connection, openers: Set[Opener]) -> dict[Opener, str]:
    """Those who may watch no more, and why."""
    digests = sorted({one.session for one in openers if one.session is not None})
    revoked = await accounts.ended_keys(connection, sorted({one.key_id for one in openers}))
    over = await sessions.ended_sessions(connection, digests) if digests else set()
    reasons = {one: "signed_out" for one in openers if one.session in over}
    return reasons | {one: "revoked" for one in openers if one.key_id in revoked}


def _session_in(ticket: str) -> bytes | None:
    """The session in which a ticket of ours was asked for, if it was one."""
    named = ticket[TICKET_CHARACTERS:]
    return urlsafe_b64decode(named + "=") if named else None


def _digest(ticket: str) -> bytes:
    return hashlib.sha256(ticket.encode("utf-8", "surrogatepass")).digest()
