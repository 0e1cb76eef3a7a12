"""A callback arrives: token → signature over the raw bytes → inbox row and effect in one commit."""

from __future__ import annotations

import time
from collections.abc import Sequence
from uuid import UUID

import structlog

from safelight.db import inbox, tasks
from safelight.db.inbox import CallbackRow
from safelight.domain.news import Verdict
from safelight.domain.provider import Provider, ProviderUpdate
from safelight.errors import CallbackRejected
from safelight.lifecycle.advance import Advance, Callback, News
from safelight.lifecycle.context import Context
from safelight.lifecycle.counting import CallbackCounts
from safelight.lifecycle.dispatch import Dispatch
from safelight.lifecycle.notices import UNKNOWN
from safelight.telemetry import CALLBACKS, point

log = structlog.get_logger()

LOG_GAP_S = 1.0


class Receive:
    """Takes callbacks. Nothing that is not authentic leaves a trace but a count."""

    def __init__(self, context: Context, advance: Advance, dispatch: Dispatch) -> None:
        self._context = context
        self._advance = advance
        self._dispatch = dispatch
        self._counts = CallbackCounts(context.database)
        self._logged_at: dict[tuple[str, str], float] = {}

    async def receive(
        self, provider_name: str, token: str | None, headers: Sequence[tuple[bytes, bytes]], raw: bytes
    ) -> None:
        """Verify, keep and apply one callback; when this returns it is committed.

        A genuine one for an attempt we do not know is kept or counted, and answered like any other.

        Raises:
            CallbackRejected: 401 not authentic or an unknown provider, 400 authentic but unreadable.
        """
        provider = self._context.providers.get(provider_name)
        try:
            if provider is None or not provider.capabilities.calls_back:
                raise CallbackRejected("unknown_provider")
            await provider.verify_callback(headers, raw)
            update = provider.read_callback(raw)
        except CallbackRejected as rejected:
            label = provider_name if provider else "unknown"
            CALLBACKS.labels(label, rejected.reason).inc()
            self._log_rejected(label, rejected.reason, headers)
            if provider is not None:
                self._counts.add(provider_name, rejected.reason)
            raise
        point("after_verify")
        # What was proved and read are the true bytes; what is kept has no secret in it.
        verdict = await self._apply(provider, token, update, provider.keepable(raw))
        CALLBACKS.labels(provider_name, verdict).inc()
        if verdict is Verdict.UNKNOWN:
            self._counts.add(provider_name, UNKNOWN)

    async def aclose(self) -> None:
        """Write the counts that are still in hand."""
        await self._counts.aclose()

    def _log_rejected(self, label: str, reason: str, headers: Sequence[tuple[bytes, bytes]]) -> None:
        if reason == "signature_missing":
            # Which headers came shows at once whether a proxy dropped them or another scheme is in use.
            names = sorted({name[:40].decode("ascii", "replace") for name, _ in headers[:40]})
            self._log("callback_rejected", label, reason=reason, headers=names)
        else:
            self._log("callback_rejected", label, reason=reason)

    def _log(self, event: str, label: str, *, reason: str = "", **fields: object) -> None:
        """All are counted; at most one a second of each kind is logged, so that a flood fills no disk."""
        now = time.monotonic()
        kind = (label, reason or event)
        if now - self._logged_at.get(kind, -LOG_GAP_S) >= LOG_GAP_S:
            self._logged_at[kind] = now
            known = {"reason": reason} if reason else {}
            log.warning(event, provider=label, **known, **fields)

    async def _apply(
        self, provider: Provider, token: str | None, update: ProviderUpdate, body: bytes
    ) -> Verdict:
        if token is not None:
            named = self._context.tokens.read(token)
            has_pictures = any(output.data for output in update.outputs)
            if named is None or (has_pictures and not await self._belongs(named, provider.name, update)):
                self._log("callback_unknown_token", provider.name)
                return Verdict.UNKNOWN
        else:
            named = await self._find_by_ref(provider.name, update.provider_ref)
            if named is None:
                return await self._keep_unmatched(provider.name, update, body)
        task_id, number = named
        update = await self._dispatch.believable(provider, task_id, number, update)
        news = News(task_id, number, update=update, callback=Callback(provider.name, body))
        return await self._advance.advance(news)

    async def _belongs(self, named: tuple[UUID, int], provider_name: str, update: ProviderUpdate) -> bool:
        """Whether pictures inside a callback may be put down for this attempt, before its task is locked."""
        async with self._context.database.connection() as connection:
            if await tasks.provider_of_attempt(connection, *named) != provider_name:
                return False
        return await self._find_by_ref(provider_name, update.provider_ref) in (None, named)

    async def _find_by_ref(self, provider_name: str, provider_ref: str | None) -> tuple[UUID, int] | None:
        if provider_ref is None:
            return None
        async with self._context.database.connection() as connection:
            return await tasks.attempt_of_provider_ref(connection, provider_name, provider_ref)

    async def _keep_unmatched(self, provider_name: str, update: ProviderUpdate, body: bytes) -> Verdict:
        row = CallbackRow(
            provider_name, None, None, update.provider_ref, update.upstream_status, Verdict.UNKNOWN, body
        )
        async with self._context.database.transaction() as connection:
            if update.provider_ref is not None and await inbox.has_room_for_unmatched(connection):
                await inbox.insert_callbacks(connection, [row])
            point("before_unmatched_commit")
        point("after_unmatched_commit")
        self._log("callback_unmatched", provider_name)
        return Verdict.UNKNOWN
