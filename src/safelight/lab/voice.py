"""The voice of an upstream: how a job's news is worded and signed, for the own shapes and every dialect."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from safelight.lab.job import Job
from safelight.lab.records import Records
from safelight.lab.refusal import Refusal
from safelight.lab.signatures import HmacSigned, Scheme
from safelight.lab.situations import ENDINGS

RETRY_GAPS_S = (0.5, 1.0, 2.0, 4.0, 8.0)


@dataclass(frozen=True, slots=True)
class Notice:
    """What a callback says; the id is the same at every try."""

    body: Any
    id: str
    headers: Mapping[str, str] = field(default_factory=dict)


class Voice(Protocol):
    """What the studio and the callbacks have to know of an upstream."""

    @property
    def retry_gaps_s(self) -> Sequence[float]:
        """How long it waits before each further try."""
        ...

    @property
    def notice_shares(self) -> Sequence[float]:
        """At which shares of the drawing time it tells that it is drawing: (0,) is at the start."""
        ...

    def ways_of_ending(self) -> Mapping[str, Sequence[str]]:
        """The names of its ways of ending badly, by situation."""
        ...

    def is_billed(self, situation: str, way: str) -> bool:
        """Whether it takes money for such an ending."""
        ...

    def declined(self, situation: str, way: str | None, pick: int) -> Exception:
        """What to raise for a refusal: the named way, or the one that the dice picked."""
        ...

    def notice(self, job: Job, moment: str) -> Notice | None:
        """The callback for `running`, `end` or `forged` (a lie: it failed); None if it sends none."""
        ...

    def scheme(self, job: Job) -> Scheme:
        """How the callbacks about a job are signed."""
        ...

    def is_taken(self, status: int) -> bool:
        """Whether a receiver's answer means that it took the callback."""
        ...


Voices = Callable[[str], Voice]
"""The voice of a job's dialect; the empty name is that of the own shapes."""


class OwnVoice:
    """The voice of the own shapes."""

    retry_gaps_s: Sequence[float] = RETRY_GAPS_S
    notice_shares: Sequence[float] = (0.0,)

    def __init__(self, *, records: Records, secret: str) -> None:
        self._records = records
        self._scheme = HmacSigned("X-Signature", keys=(secret, f"next {secret}"))

    def ways_of_ending(self) -> Mapping[str, Sequence[str]]:
        """One of each."""
        return dict.fromkeys(ENDINGS, ("plain",))

    def is_billed(self, situation: str, way: str) -> bool:
        """Never."""
        return False

    def declined(self, situation: str, way: str | None, pick: int) -> Exception:
        """The lab's own words."""
        return OWN_REFUSALS[situation]

    def notice(self, job: Job, moment: str) -> Notice:
        """The record, with the time of sending."""
        render = {"running": self._records.running_notice, "forged": self._records.forged_notice}
        body = render.get(moment, self._records.record)(job)
        return Notice(body | {"sent_at": time.time()}, id=f"{job.id}-{moment}")

    def scheme(self, job: Job) -> Scheme:
        """HMAC over the raw body."""
        return self._scheme

    def is_taken(self, status: int) -> bool:
        """By any success."""
        return 200 <= status < 300


OWN_REFUSALS = {
    "invalid_request": Refusal(400, "invalid_request", "the lab was told to say so"),
    "content_blocked": Refusal(400, "content_blocked", "the prompt was refused by moderation"),
    "credentials": Refusal(401, "unauthorized", "the API key is missing or wrong"),
    "funds": Refusal(402, "payment_required", "the account is out of money"),
    "rate_limited": Refusal(429, "rate_limited", "too many submits", {"Retry-After": "1"}),
    "concurrency_limited": Refusal(429, "rate_limited", "too many open jobs", {"Retry-After": "1"}),
    "upstream_fault": Refusal(500, "internal", "the lab was told to fail"),
    "not_found": Refusal(404, "not_found", "there is no such job"),
}
