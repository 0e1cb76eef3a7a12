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

    items: Pick = Field(description="The list of pictures, or the only one.")
    url: Pick | None = Field(None, description="The address within an item; `@` if the item is the address.")
    base64: Pick | None = Field(None, description="The picture itself within an item.")
    error_code: Pick | None = Field(None, description="Why an item is no picture.")
    blocked_if: Pick | None = Field(None, description="What holds for an item that moderation has taken.")


class HttpStatus(Section):
    """The statuses of an answer that stand for a state, for upstreams whose state is nowhere else.

    Such an answer may be empty. `canceled` is for a cancel that is confirmed by its status alone.
    """

    status: StatusRange = Field(description="A status or a range of them.")
    means: Literal[
        UpdateStatus.QUEUED, UpdateStatus.RUNNING, UpdateStatus.SUCCEEDED, UpdateStatus.CANCELED
    ] = Field(description="The state.")


class Dialect(Section):
    """How to read one record. A narrower table, such as `[poll.answer]`, overrides `[answer]` key by key.

    `decode` names members that hold JSON as text. The status is read from `status`, or with
    `statuses_by_http` from the status of the answer. A record for which `failed_if` holds has failed,
    whatever its word.
    """

    decode: tuple[Annotated[str, Field(pattern=r"^[A-Za-z0-9_.-]+$")], ...] = Field(
        (), description="Members that hold JSON as text."
    )
    record: Pick | None = Field(None, description="Where the record is in the answer; `@` is the whole.")
    provider_ref: Pick | None = Field(None, description="The upstream's id.")
    reference: Pick | None = Field(
        None, description="Our reference, as it comes back. Another one than ours is refused."
    )
    status: Pick | None = Field(None, description="The word for the state.")
    statuses: Words = Field(
        default_factory=dict,
        description="The upstream's words and ours; case does not count, and an unknown word keeps a task running.",
    )
    statuses_by_http: tuple[HttpStatus, ...] = Field(
        (), description="Statuses of the answer that stand for a state."
    )
    status_if_absent: UpdateStatus | None = Field(None, description="The state of a record without a word.")
    failed_if: Pick | None = Field(None, description="What holds for a record that has failed.")
    outputs: Outputs | None = Field(None, description="Where the pictures are.")
    error_code: Pick | None = Field(None, description="Why it has failed, for `[[failures]]`.")
    error_message: Pick | None = Field(None, description="The same in words, for the operator.")
    percent: Pick | None = Field(None, description='How far it is: a number, or a text such as "57%".')
    percent_full: Literal[1, 100] = Field(100, description="What the number is at the end.")
    position: Pick | None = Field(None, description="Its place in the upstream's line; 0 is next.")
    run_s: Pick | None = Field(None, description="How long it has run, without waiting.")
    cost: Pick | None = Field(None, description="What was charged, in `limits.cost_unit`.")
    refunded: Pick | None = Field(None, description="What was given back of it.")
    prompt: Pick | None = Field(
        None, description="The prompt as it was sent, in a list: an attempt without an answer is known by it."
    )
    model: Pick | None = Field(None, description="The model as it was asked for, beside `prompt`.")
    callback_url: Pick | None = Field(
        None, description="The callback address as it was sent, in a list: it names the attempt."
    )
    created_at: Pick | None = Field(None, description="When it was made; `[list]` needs it.")
    created_at_format: TimeFormat = Field("unix", description="How that is written.")
    links: dict[LinkName, Pick] = Field(
        default_factory=dict, description="Addresses that the upstream gives for later calls."
    )

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
    ] = Field(alias="class", description="Whose fault it is; only the upstream's is tried again.")
    code: FailureCode = Field(description="Our stable code, which customers see.")

    @model_validator(mode="after")
    def _check_comparison(self) -> Self:
        if not self.compares:
            raise ValueError("a failure rule needs 'equals', 'prefix' or 'regex'")
        return self
