"""Tells customers: claims due deliveries, sends each signed, and notes what came of it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from uuid import UUID

import structlog

from safelight.assets.fetch import Fetcher
from safelight.assets.reading import FetchLimits
from safelight.assets.urls import Origin, parse_target
from safelight.db import auditlog, endpoints, ledger, outbox
from safelight.db.database import Database
from safelight.db.outbox import ClaimedDelivery, Try
from safelight.db.queue import enqueue_delivering
from safelight.domain import webhook
from safelight.domain.audit import Actor
from safelight.domain.retryafter import read_retry_after
from safelight.domain.sealing import Sealer
from safelight.domain.webhook import Judgement, Outcome
from safelight.errors import AssetError
from safelight.telemetry import DELIVERIES, DELIVERY_LAG, ENDPOINTS_DISABLED, point

log = structlog.get_logger()

TRY_S = 15.0
CONNECT_S = 5.0
BODY_S = 2.0
LEASE_S = 60.0
"""Well over the longest try: a delivery whose worker died is tried again after this, under the same id."""
ENDPOINTS_AT_ONCE = 2_000
"""Endpoints that one claim looks at; those beyond come with the next."""
SLACK_S = 60.0
ROOM = 500
RECORDED_AT_ONCE = 3
"""Hundreds that are refused together must not stand before the next claim for a connection, nor before a success."""

LIMITS = FetchLimits(
    max_bytes=webhook.READ_BYTES,
    connect_s=CONNECT_S,
    first_byte_s=TRY_S,
    total_s=TRY_S + 2.0 * BODY_S,
    rate_window_s=BODY_S,
    redirects=0,
    connections=10_000,
)
"""How many tries are in flight is the worker's to decide. Whoever has answered in time need not hurry."""


@dataclass(frozen=True, slots=True)
class Letter:
    """A claimed delivery with what signs it."""

    delivery: ClaimedDelivery
    secrets: Sequence[bytes] = field(repr=False)


def refuse_own(url: str, own_origins: frozenset[Origin]) -> None:
    """Refuse our own door, in the same words at registration and at every try.

    Raises:
        AssetError: `own_address`, or that it is no address at all.
    """
    if parse_target(url).origin in own_origins:
        detail = "the address is this service's own: it would call itself"
        raise AssetError("own_address", detail, is_retryable=False)


class Notify:
    """Delivers events at least once: the same id comes again after a crash, and never none.

    Endpoints that failed last and those that did not are claimed apart, and have fetchers of their own, so that names
    which hang at the dead ones hold up nobody else. `own_origins` are ours: nobody is told at our own door.
    """

    def __init__(
        self,
        database: Database,
        sealer: Sealer,
        *,
        allowed_origins: Sequence[str],
        own_origins: frozenset[Origin],
    ) -> None:
        self._database = database
        self._sealer = sealer
        self._own_origins = own_origins
        self._delivered_records = asyncio.Semaphore(RECORDED_AT_ONCE)
        self._failed_records = asyncio.Semaphore(RECORDED_AT_ONCE)
        self._well = Fetcher(allowed_origins, limits=LIMITS, names_at_once=64)
        self._failing = Fetcher(allowed_origins, limits=LIMITS, names_at_once=16)

    async def claim(
        self, room: int, *, is_failing: bool, each: int = webhook.MAX_IN_FLIGHT
    ) -> tuple[list[Letter], bool]:
        """At most `room` deliveries to try now, and whether more were due; `each` may be in flight to one endpoint."""
        async with self._database.connection() as connection:
            if not await outbox.is_due(connection, is_failing=is_failing):
                return [], False
        async with self._database.transaction() as connection:
            claimed, is_more = await outbox.claim(
                connection,
                is_failing=is_failing,
                room=room,
                each=each,
                lease_s=LEASE_S,
                endpoints=ENDPOINTS_AT_ONCE,
            )
            rows = await endpoints.list_secrets(connection, [delivery.endpoint_id for delivery in claimed])
            point("before_delivery_claim_commit")
        point("after_delivery_claim_commit")
        secrets: dict[UUID, list[bytes]] = {}
        for row in rows:
            opened = self._sealer.open(row.sealed, place=row.id.bytes, key_id=row.key_id)
            if opened is None:
                log.error("secret_unreadable", endpoint_id=str(row.endpoint_id), key_id=row.key_id)
                continue
            secrets.setdefault(row.endpoint_id, []).append(opened)
        return [Letter(delivery, secrets.get(delivery.endpoint_id, ())) for delivery in claimed], is_more

    async def deliver(self, letter: Letter, *, is_failing: bool = False) -> Outcome:
        """Make one try and note what came of it."""
        delivery = letter.delivery
        number = delivery.tries + 1
        headers = webhook.headers_of(
            f"evt_{delivery.event_id.hex}",
            int(delivery.now.timestamp()),
            delivery.body,
            secrets=letter.secrets,
            number=number,
        )
        point("before_delivery")
        outcome = await self._post(letter, headers, self._failing if is_failing else self._well)
        point("after_delivery")
        made = Try(number, delivery.url, webhook.kept_headers(headers), delivery.now, outcome)
        is_delivered = outcome.judgement is Judgement.DELIVERED
        async with self._delivered_records if is_delivered else self._failed_records:
            await self._record(delivery, made)
        return outcome

    async def tidy(self) -> None:
        """Wake endpoints that sleep although something is due: the rows are the truth."""
        async with self._database.transaction() as connection:
            mended = await outbox.mend_wakes(connection, slack_s=SLACK_S, room=ROOM)
        if mended:
            log.warning("endpoints_woken", endpoints=mended)

    async def aclose(self) -> None:
        """Let go of connections."""
        await self._well.aclose()
        await self._failing.aclose()

    async def _post(self, letter: Letter, headers: dict[str, str], fetcher: Fetcher) -> Outcome:
        delivery = letter.delivery
        if not letter.secrets:
            # Never signed with nothing: that would teach receivers to accept what anybody can send.
            log.error("endpoint_without_secret", endpoint_id=str(delivery.endpoint_id))
            return Outcome(reason="no_secret", detail="the endpoint has no signing secret; rotate it")
        try:
            refuse_own(delivery.url, self._own_origins)
            posted = await fetcher.exchange(delivery.url, delivery.body, headers)
        except AssetError as error:
            return Outcome(reason=error.reason, detail=str(error)[:500])
        is_redirect = 300 <= posted.status < 400
        return Outcome(
            status=posted.status,
            reason="redirect" if is_redirect else "",
            detail=_where_to(posted.headers.get("Location", "")) if is_redirect else "",
            answer=webhook.redacted(posted.start.decode("utf-8", "replace")),
            # By the time of the claim: a date is heeded late by what the try took, never early.
            retry_after_s=read_retry_after(posted.headers.get("Retry-After"), delivery.now),
        )

    async def _record(self, delivery: ClaimedDelivery, made: Try) -> None:
        judgement = made.outcome.judgement
        gap_s = (
            None
            if judgement in (Judgement.DELIVERED, Judgement.GONE)
            else webhook.gap_after(delivery.step, made.outcome)
        )
        becomes, why = _after(judgement, gap_s)
        must_disable = ""
        async with self._database.transaction() as connection:
            await outbox.lock_endpoint_of(connection, delivery.id)
            is_recorded = await outbox.end_try(
                connection, delivery, made, becomes=becomes, why=why, gap_s=gap_s
            )
            if is_recorded and judgement is Judgement.DELIVERED:
                await outbox.note_success(connection, delivery.endpoint_id)
            elif is_recorded:
                is_throttled = judgement is Judgement.THROTTLED
                is_over = await outbox.note_failure(
                    connection, delivery.endpoint_id, is_throttled=is_throttled
                )
                must_disable = "gone" if judgement is Judgement.GONE else "failing" if is_over else ""
            if any((await outbox.pace(connection, [delivery.endpoint_id])).values()):
                await enqueue_delivering(connection)
            point("before_try_commit")
        point("after_try_commit")
        self._tell(delivery, made, judgement, why)
        if must_disable:
            await self._disable(delivery, must_disable, made.outcome)

    def _tell(self, delivery: ClaimedDelivery, made: Try, judgement: Judgement, why: str) -> None:
        outcome = made.outcome
        DELIVERIES.labels(delivery.type, judgement).inc()
        if made.number == 1:
            DELIVERY_LAG.observe(max((delivery.now - delivery.event_at).total_seconds(), 0.0))
        if judgement is not Judgement.DELIVERED:
            log.warning(
                "delivery_failed",
                endpoint_id=str(delivery.endpoint_id),
                delivery=delivery.id,
                number=made.number,
                status=outcome.status,
                reason=outcome.reason or why,
                detail=outcome.detail,
            )

    async def _disable(self, delivery: ClaimedDelivery, reason: str, outcome: Outcome) -> None:
        """Take an endpoint out of use: its own failures are told to the account's other endpoints."""
        async with self._database.transaction() as connection:
            await ledger.lock_accounts(connection, [delivery.account_id])
            found = await endpoints.disable_endpoint(
                connection, delivery.endpoint_id, reason=reason, after_s=webhook.DISABLE_AFTER_S
            )
            if found is None:
                return
            moment = found.disabled_at.isoformat().replace("+00:00", "Z")
            data = {"endpoint_id": str(delivery.endpoint_id), "url": found.url, "reason": reason}
            document = {"type": "endpoint.disabled", "timestamp": moment, "data": data}
            body = json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()
            await outbox.insert_event(connection, found.account_id, "endpoint.disabled", body)
            await enqueue_delivering(connection)
            await auditlog.write_line(
                connection,
                Actor("safelight"),
                "endpoint.disable",
                f"webhook_endpoint:{delivery.endpoint_id}",
                account_id=found.account_id,
                detail={"reason": reason, "failures": found.failures, "last_status": outcome.status},
            )
        ENDPOINTS_DISABLED.labels(reason).inc()
        log.error(
            "endpoint_disabled",
            endpoint_id=str(delivery.endpoint_id),
            reason=reason,
            failures=found.failures,
            failing_since=found.failing_since,
        )


def _after(judgement: Judgement, gap_s: float | None) -> tuple[str, str]:
    """What a delivery becomes after a try, and why."""
    if judgement is Judgement.DELIVERED:
        return "delivered", ""
    if judgement is Judgement.GONE:
        return "failed", "gone"
    return ("failed", "exhausted") if gap_s is None else ("pending", "")


def _where_to(location: str) -> str:
    """Where a redirect leads, for whoever has to put the address right: the host alone."""
    try:
        return f"redirects are not followed; it leads to {parse_target(location).origin}"
    except AssetError:
        return "redirects are not followed; it leads to another path of the same host"
