"""Webhooks: the schedule of tries, what an answer means, the signature, and what is kept of an answer."""

from __future__ import annotations

import base64
import hmac
import random
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

TASK_EVENTS = ("task.ready", "task.failed")
EVENT_TYPES = (*TASK_EVENTS, "credits.low", "endpoint.disabled")
"""What an endpoint may ask for; a test goes to whoever asked for one."""
TEST_EVENT = "endpoint.test"

GAPS_S = (0.0, 5.0, 300.0, 1_800.0, 7_200.0, 18_000.0, 36_000.0, 50_400.0, 72_000.0, 86_400.0)
"""How long each try waits for after the one before: ten tries over about 75 hours and a half."""
THROTTLED_GAP_S = 60.0
"""Who says that he is overloaded, or is too slow to say anything, is left alone for as long at least."""
JITTER = 0.2

MAX_IN_FLIGHT = 10
DEGRADED_AFTER = 10
"""Failures in a row after which an endpoint gets one try at a time, with a rest after each that fails."""
DEGRADED_REST_S = 60.0
DISABLE_AFTER_S = 5 * 86_400.0
DISABLE_FAILURES = 5
DISABLE_SPREAD_S = 12 * 3_600.0
DISABLE_WITHIN_S = 24 * 3_600.0
"""The clock of the disable rule starts with so many failures, so far apart, within a day; any success stops it."""

MAX_ENDPOINTS = 20
MAX_SECRETS = 10
OVERLAP_S = 86_400.0
MAX_OVERLAP_S = 7 * 86_400.0
SECRET_BYTES = 32

READ_BYTES = 16_384
KEPT_CHARS = 4_096
_SECRETS = re.compile(
    r"whsec_[A-Za-z0-9+/=_-]+|sl_(?:live|admin)_[A-Za-z0-9_-]+|v1a?,[A-Za-z0-9+/=_-]{20,}|(?<=[Bb]earer )[^\s\"',]+"
)
MASK = "[redacted]"


class Judgement(StrEnum):
    """What the answer to a try means."""

    DELIVERED = "delivered"
    GONE = "gone"
    THROTTLED = "throttled"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a try ended: a status, or none and the `reason` why; `retry_after_s` is the receiver's own wish."""

    status: int | None = None
    reason: str = ""
    detail: str = ""
    answer: str = ""
    retry_after_s: float | None = None

    @property
    def judgement(self) -> Judgement:
        """What follows from it. A redirect is a failure like any other: it is never followed."""
        if self.status is None:
            return Judgement.THROTTLED if self.reason == "timeout" else Judgement.FAILED
        if 200 <= self.status < 300:
            return Judgement.DELIVERED
        if self.status == 410:
            return Judgement.GONE
        return Judgement.THROTTLED if self.status in (429, 502, 503, 504) else Judgement.FAILED


def gap_after(step: int, outcome: Outcome) -> float | None:
    """Seconds until the next try after a failed one at this place in the schedule; None after the last.

    A receiver that names its own time is heeded up to twice ours: never sooner, and not for days.
    """
    if step + 1 >= len(GAPS_S):
        return None
    gap = GAPS_S[step + 1] * random.uniform(1.0 - JITTER, 1.0 + JITTER)
    if outcome.judgement is Judgement.THROTTLED:
        gap = max(gap, THROTTLED_GAP_S)
    if outcome.retry_after_s is not None:
        gap = min(max(gap, outcome.retry_after_s), 2.0 * gap)
    return gap


def secret_text(secret: bytes) -> str:
    """A signing secret as its owner keeps it."""
    return "whsec_" + base64.b64encode(secret).decode()


def headers_of(
    event_id: str, timestamp: int, body: bytes, *, secrets: Iterable[bytes], number: int
) -> dict[str, str]:
    """The headers of one try (Standard Webhooks), with a signature of every secret in force."""
    signed = f"{event_id}.{timestamp}.".encode() + body
    signatures = [base64.b64encode(hmac.digest(secret, signed, "sha256")).decode() for secret in secrets]
    return {
        "content-type": "application/json",
        "user-agent": "safelight-webhooks/1",
        "webhook-id": event_id,
        "webhook-timestamp": str(timestamp),
        "webhook-attempt": str(number),
        "webhook-signature": " ".join(f"v1,{signature}" for signature in signatures),
    }


def kept_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Headers as they are shown later: a signature could be played again by whoever reads it."""
    return {name: redacted(value) for name, value in headers.items()}


def redacted(text: str) -> str:
    """The beginning of what a receiver answered, without what must not be kept."""
    clean = "".join(
        character if character.isprintable() or character in "\n\t" else " " for character in text
    )
    return _SECRETS.sub(MASK, clean)[:KEPT_CHARS]
