"""The outbox: events, their deliveries and each try, as rows that a worker claims."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from safelight.db.statements import Connection, statements
from safelight.domain import webhook
from safelight.domain.webhook import Outcome

_sql = statements("outbox")


@dataclass(frozen=True, slots=True)
class ClaimedDelivery:
    """A delivery that this process alone may try now; `tries` were made before, `step` is its place in the schedule."""

    id: int
    endpoint_id: UUID
    account_id: UUID
    event_id: UUID
    tries: int
    step: int
    type: str
    body: bytes = field(repr=False)
    event_at: datetime
    url: str
    is_degraded: bool
    now: datetime


@dataclass(frozen=True, slots=True)
class Try:
    """One try as it was made."""

    number: int
    url: str
    headers: Mapping[str, str]
    started_at: datetime
    outcome: Outcome


async def insert_event(
    connection: Connection, account_id: UUID, kind: str, body: bytes, *, endpoint_id: UUID | None = None
) -> UUID:
    """Write an event that is about no task, under the lock of its account; with `endpoint_id` for that one alone."""
    row = await _sql.insert_event.row(
        connection, account_id=account_id, type=kind, body=body, endpoint_id=endpoint_id
    )
    if row is None:
        raise AssertionError("an insert returns its row")
    event_id: UUID = row["id"]
    return event_id


async def delivery_of_event(connection: Connection, event_id: UUID, endpoint_id: UUID) -> int | None:
    """The delivery of an event to one endpoint."""
    row = await _sql.delivery_of_event.row(connection, event_id=event_id, endpoint_id=endpoint_id)
    return row["id"] if row else None


async def is_due(connection: Connection, *, is_failing: bool) -> bool:
    """Whether anything may be due for endpoints that failed last, or for those that did not."""
    return bool(await _sql.is_due.value(connection, is_failing=is_failing))


async def claim(
    connection: Connection, *, is_failing: bool, room: int, each: int, lease_s: float, endpoints: int
) -> tuple[list[ClaimedDelivery], bool]:
    """At most `room` due deliveries of at most so many endpoints, the fairest first; and whether more were due.

    No endpoint has more than `each` in flight then.
    """
    await _sql.lock_claims.run(connection)
    degraded = webhook.DEGRADED_AFTER
    ready = await _sql.ready_endpoints.rows(
        connection, is_failing=is_failing, degraded=degraded, room=endpoints
    )
    ids = [row["id"] for row in ready]
    if not ids:
        return [], False
    claimed = await _sql.claim.rows(
        connection, endpoint_ids=ids, degraded=degraded, room=room, each=each, lease_s=lease_s
    )
    is_more = any((await pace(connection, ids)).values())
    rows = await _sql.claimed.rows(connection, ids=[row["id"] for row in claimed], degraded=degraded)
    return [ClaimedDelivery(**row) for row in rows], is_more or len(ids) == endpoints


async def pace(connection: Connection, endpoint_ids: Sequence[UUID]) -> dict[UUID, bool]:
    """Set when these endpoints are looked at next, after anything about them changed; which of them is due now."""
    rows = await _sql.pace.rows(connection, endpoint_ids=list(endpoint_ids), degraded=webhook.DEGRADED_AFTER)
    return {row["id"]: row["is_due"] for row in rows}


async def lock_endpoint_of(connection: Connection, delivery_id: int) -> None:
    """The first lock of whoever records a try."""
    await _sql.lock_delivery.row(connection, id=delivery_id)


async def end_try(
    connection: Connection,
    delivery: ClaimedDelivery,
    made: Try,
    *,
    becomes: str,
    why: str = "",
    gap_s: float | None,
) -> bool:
    """Note how a try ended, and that the next is due in `gap_s` seconds; False if it is not the next one any more."""
    row = await _sql.end_try.row(
        connection,
        id=delivery.id,
        number=made.number,
        endpoint_id=delivery.endpoint_id,
        url=made.url,
        headers=json.dumps(dict(made.headers)),
        status=made.outcome.status,
        reason=made.outcome.reason,
        detail=made.outcome.detail,
        answer=made.outcome.answer,
        started_at=made.started_at,
        becomes=becomes,
        why=why,
        gap_s=gap_s,
    )
    return row is not None


async def note_success(connection: Connection, endpoint_id: UUID) -> None:
    """A try went well: the endpoint's record is clean again."""
    await _sql.note_success.run(connection, id=endpoint_id)


async def note_failure(connection: Connection, endpoint_id: UUID, *, is_throttled: bool) -> bool:
    """A try failed; whether the endpoint has failed for so long that it is to be disabled."""
    row = await _sql.note_failure.row(
        connection,
        id=endpoint_id,
        is_throttled=is_throttled,
        degraded=webhook.DEGRADED_AFTER,
        rest_s=webhook.DEGRADED_REST_S,
        enough=webhook.DISABLE_FAILURES,
        spread_s=webhook.DISABLE_SPREAD_S,
        within_s=webhook.DISABLE_WITHIN_S,
        after_s=webhook.DISABLE_AFTER_S,
    )
    return bool(row and row["is_over"])


async def redeliver(connection: Connection, endpoint_id: UUID, delivery_id: int) -> bool:
    """Begin an ended delivery anew; False if there is none that has ended."""
    return await _sql.redeliver.value(connection, id=delivery_id, endpoint_id=endpoint_id) is not None


async def find_delivery(connection: Connection, endpoint_id: UUID, delivery_id: int) -> bool:
    """Whether the endpoint has this delivery."""
    return await _sql.find_delivery.row(connection, id=delivery_id, endpoint_id=endpoint_id) is not None


async def recover(
    connection: Connection, endpoint_id: UUID, *, since: datetime, room: int, apart_s: float
) -> int:
    """Begin anew what failed since a moment, oldest first and `apart_s` seconds apart; how many these are."""
    rows = await _sql.recover.rows(
        connection, endpoint_id=endpoint_id, since=since, room=room, apart_s=apart_s
    )
    return len(rows)


async def mend_wakes(connection: Connection, *, slack_s: float, room: int) -> int:
    """Wake endpoints that sleep although something of theirs is due; how many there were."""
    ids = [row["id"] for row in await _sql.mend_wakes.rows(connection, slack_s=slack_s, room=room)]
    return len(await pace(connection, ids)) if ids else 0


async def drop_events(connection: Connection, *, keep_days: int, room: int) -> int:
    """Delete events of long ago with their deliveries and tries; how many these were."""
    dropped = int(await _sql.drop_events.value(connection, keep_days=keep_days, room=room))
    if not dropped:
        await _sql.drop_endpoints.run(connection, keep_days=keep_days)
    return dropped
