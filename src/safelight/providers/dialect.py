"""The shape of a dialect: where an upstream's records say what, and in which words."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from safelight.domain.failure import FailureClass
from safelight.domain.provider import UpdateStatus
from safelight.providers.documents import TimeFormat
from safelight.providers.matching import Match, Pick, Section, StatusRange, fold

FailureCode = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,63}$")]
LinkName = Literal["poll", "result", "cancel"]


def _check_words(words: dict[str, UpdateStatus]) -> dict[str, UpdateStatus]:
    if len({fold(word) for word in words}) != len(words):
        raise ValueError("has a word twice (case does not count); keep one of them")
    if UpdateStatus.HINT in words.values():
        raise ValueError("maps a word to 'hint'; leave the word out, unknown words keep a task running")
    return words


Words = Annotated[dict[str, UpdateStatus], AfterValidator(_check_words)]


class Outputs(Section):
    """Where the pictures are: a list, and within one item the address or the base64 text.

    An item with neither is no picture; `error_code` says why, `blocked_if` that moderation took it.
    """

    items: Pick
    url: Pick | None = None
    base64: Pick | None = None
    error_code: Pick | None = None
    blocked_if: Pick | None = None


class HttpStatus(Section):
    """The statuses of an answer that stand for a state, for upstreams whose state is nowhere else.

    Such an answer may be empty. `canceled` is for a cancel that is confirmed by its status alone.
    """

    status: StatusRange
    means: Literal[UpdateStatus.QUEUED, UpdateStatus.RUNNING, UpdateStatus.SUCCEEDED, UpdateStatus.CANCELED]


class Dialect(Section):
    """How to read one record. A narrower table, such as `[poll.answer]`, overrides `[answer]` key by key.

    `decode` names members that hold JSON as text. The status is read from `status`, or with
    `statuses_by_http` from the status of the answer. A record for which `failed_if` holds has failed,
    whatever its word.
    """

    decode: tuple[Annotated[str, Field(pattern=r"^[A-Za-z0-9_.-]+$")], ...] = ()
    record: Pick | None = None
    provider_ref: Pick | None = None
    reference: Pick | None = None
    status: Pick | None = None
    statuses: Words = Field(default_factory=dict)
    statuses_by_http: tuple[HttpStatus, ...] = ()
    status_if_absent: UpdateStatus | None = None
    failed_if: Pick | None = None
    outputs: Outputs | None = None
    error_code: Pick | None = None
    error_message: Pick | None = None
    percent: Pick | None = None
    percent_full: Literal[1, 100] = 100
    position: Pick | None = None
    run_s: Pick | None = None
    cost: Pick | None = None
    refunded: Pick | None = None
    created_at: Pick | None = None
    created_at_format: TimeFormat = "unix"
    links: dict[LinkName, Pick] = Field(default_factory=dict)

    def by_http(self, http_status: int | None) -> UpdateStatus | None:
        """The state for which the status of an answer stands by itself."""
        if http_status is None:
            return None
        held = (one.means for one in self.statuses_by_http if one.status.holds(http_status))
        return next((UpdateStatus(means) for means in held), None)

    def overridden_by(self, narrower: Dialect | None) -> Dialect:
        """This dialect with the keys that the narrower table sets."""
        if narrower is None:
            return self
        return self.model_copy(update={key: getattr(narrower, key) for key in narrower.model_fields_set})


class FailureRule(Match):
    """What a failed record means. Without `path` the texts are compared with the record's error code."""

    failure_class: Literal[
        FailureClass.INVALID_REQUEST, FailureClass.CONTENT_BLOCKED, FailureClass.UPSTREAM_FAULT
    ] = Field(alias="class")
    code: FailureCode

    @model_validator(mode="after")
    def _check_comparison(self) -> Self:
        if not self.compares:
            raise ValueError("a failure rule needs 'equals', 'prefix' or 'regex'")
        return self
