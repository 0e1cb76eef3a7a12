"""The seam to the outside: what a provider can do, what we ask of it, and what it tells us."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Protocol

from safelight.domain.failure import Failure


class UpdateStatus(StrEnum):
    """An attempt's standing upstream, in our words."""

    QUEUED = "queued"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    BLOCKED = "blocked"
    CANCELED = "canceled"
    HINT = "hint"
    """Something may have changed: look. It is never applied."""


class Origin(StrEnum):
    """How an update reached us."""

    ANSWER = "answer"
    CALLBACK = "callback"
    POLL = "poll"
    LOOK_UP = "look_up"
    RECONCILIATION = "reconciliation"


class Trust(StrEnum):
    """What a verified callback may do: `body` is applied, `hint` only brings the next look forward."""

    BODY = "body"
    HINT = "hint"


class MaskStyle(StrEnum):
    """How a provider marks where a picture may change; ours is white."""

    WHITE = "white"
    BLACK = "black"
    CLEAR = "clear"
    """The picture's own size, transparent where it may change."""


class AfterUncertain(StrEnum):
    """How an uncertain submit may be cleared up (design, section 3)."""

    SAME_KEY = "same_key"
    LOOK_UP = "look_up"
    LIST = "list"
    """The provider's list is read for the time of the submit, and its records are compared with the attempt."""
    NONE = "none"


class RecordKey(StrEnum):
    """What a record of a provider's list carries, by which an attempt may be known."""

    REFERENCE = "reference"
    CALLBACK_URL = "callback_url"
    PROMPT = "prompt"


@dataclass(frozen=True, slots=True)
class Output:
    """One picture as the provider hands it over: exactly one of a URL, raw bytes or a staged key."""

    url: str | None = None
    data: bytes | None = None
    staged_key: str | None = None


@dataclass(frozen=True, slots=True)
class ProviderUpdate:
    """Normalised news about an attempt.

    `upstream_status` is the provider's own word; `percent` is 0 to 100; `position` is the place in its line
    (0 is next); `run_s` is its own run time in seconds without its queue; `cost` is in its own units, less
    what it gave back. `links` are addresses that the provider gave for later calls about this attempt, by
    the name of the call (`poll`, `result`, `cancel`); they are kept with the attempt.
    """

    status: UpdateStatus
    origin: Origin
    provider_ref: str | None = None
    upstream_status: str = ""
    outputs: tuple[Output, ...] = ()
    failure: Failure | None = None
    percent: int | None = None
    position: int | None = None
    run_s: float | None = None
    cost: float | None = None
    excerpt: str = ""
    links: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class InputImage:
    """A checked picture for an edit: our own copy of what the customer gave.

    `url` is a short-lived address of that copy, None where no provider could reach one.
    """

    content_type: str
    data: bytes = field(repr=False)
    url: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Submission:
    """One send of one attempt. `reference` is ours and unique; it is also the upstream idempotency key.

    `mask` is in the provider's `mask_style`: where the first of `images` may change. `report` takes news of
    how far the picture has come while the submit is in flight; it returns at once and never raises.
    """

    reference: str
    upstream_model: str
    operation: str
    prompt: str
    n: int
    size: str | None
    aspect_ratio: str | None
    images: Sequence[InputImage]
    options: Mapping[str, Any]
    callback_url: str | None
    mask: InputImage | None = None
    report: Callable[[ProviderUpdate], None] | None = field(default=None, repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class AttemptRef:
    """How to speak to a provider about an attempt it may have."""

    reference: str
    provider_ref: str | None
    upstream_model: str
    operation: str
    links: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class UpstreamRecord:
    """One line of a provider's own list. `created_at` goes by the provider's clock.

    `prompt`, `upstream_model` and `callback_url` are as they were sent, where the provider gives them back.
    """

    provider_ref: str
    reference: str | None
    created_at: datetime
    update: ProviderUpdate
    prompt: str | None = None
    upstream_model: str | None = None
    callback_url: str | None = None


@dataclass(frozen=True, slots=True)
class RecordPage:
    """A page of a provider's list; `next_cursor` is None on the last one."""

    records: tuple[UpstreamRecord, ...]
    next_cursor: str | None


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a provider can do and within which limits. Times are seconds.

    `max_active` counts images that may be active upstream at once, `max_active_tasks` attempts, `max_calls`
    submit calls in flight, `calls_per_s` the submit rate, `polls_per_s` the rate of looks; None means no
    declared limit. `result_lifetime_s` None means unknown. `takes_callback_url` is False where the callback
    address belongs to the account upstream and is not sent with a submit. `cost_unit` names what `cost` counts.
    `needs_image_data` and `needs_image_urls` say in which forms it takes pictures; urls alone need a public_url.
    `record_keys` is what its list carries; `record_retention_s` how long it keeps its records (None: unknown);
    `clock_skew_s` how far its clock may be from ours.
    """

    is_synchronous: bool = False
    calls_back: bool = False
    can_poll: bool = True
    can_cancel: bool = False
    can_list: bool = False
    can_look_up: bool = False
    takes_callback_url: bool = True
    trust: Trust = Trust.HINT
    after_uncertain: AfterUncertain = AfterUncertain.NONE
    submit_timeout_s: float = 30.0
    visibility_delay_s: float = 5.0
    min_poll_gap_s: float = 0.0
    result_lifetime_s: float | None = None
    max_active: int | None = None
    max_active_tasks: int | None = None
    max_calls: int = 64
    calls_per_s: float | None = None
    polls_per_s: float | None = None
    cost_unit: str = ""
    mask_style: MaskStyle = MaskStyle.WHITE
    needs_image_data: bool = True
    needs_image_urls: bool = False
    result_hosts: tuple[str, ...] = field(default=())
    record_keys: frozenset[RecordKey] = frozenset()
    record_retention_s: float | None = None
    clock_skew_s: float = 60.0


class Provider(Protocol):
    """An upstream that makes images. Implementations hold no task state and never retry by themselves."""

    @property
    def name(self) -> str: ...

    @property
    def capabilities(self) -> Capabilities: ...

    async def submit(self, submission: Submission) -> ProviderUpdate:
        """Send one attempt; the update says accepted, or done where the provider answers with the picture.

        Raises:
            ProviderRefused: a definite no in the provider's words.
            ProviderUnavailable: certainly not accepted, may be sent again.
            SubmissionUncertain: it may have been accepted.
        """
        ...

    async def poll(self, attempt: AttemptRef) -> ProviderUpdate:
        """Ask how an attempt stands, by its provider_ref.

        Raises:
            ProviderError: no answer that says anything about the attempt (a poll error never means failed).
        """
        ...

    async def look_up(self, attempt: AttemptRef) -> ProviderUpdate | None:
        """Find an attempt by our reference; None means that the provider does not know it (yet).

        Raises:
            ProviderError: no usable answer.
        """
        ...

    async def cancel(self, attempt: AttemptRef) -> bool:
        """Ask for a cancel; True only if the provider confirms it.

        Raises:
            ProviderError: no usable answer.
        """
        ...

    async def list_records(self, since: datetime, until: datetime, cursor: str | None) -> RecordPage:
        """One page of the provider's own records with `since` <= created < `until`.

        Raises:
            ProviderError: no usable answer.
        """
        ...

    async def verify_callback(self, headers: Sequence[tuple[bytes, bytes]], raw: bytes) -> None:
        """Check authenticity over the raw bytes, before any parsing.

        Raises:
            CallbackRejected: missing, malformed, stale or wrong signature.
        """
        ...

    def read_callback(self, raw: bytes) -> ProviderUpdate:
        """Read a verified callback; a body without a status is a hint.

        Raises:
            CallbackRejected: the body cannot be read (status 400).
        """
        ...

    def keepable(self, raw: bytes) -> bytes:
        """A verified callback's body as it may be kept: without our credentials, and read like before."""
        ...
