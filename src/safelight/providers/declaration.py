"""The shape of a declaration: what a TOML file may say about one upstream."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from safelight.domain.failure import FailureClass
from safelight.domain.provider import AfterUncertain, Trust, UpdateStatus
from safelight.providers.documents import TimeFormat
from safelight.providers.exchange import MAX_ANSWER_BYTES, MAX_PICTURE_ANSWER_BYTES
from safelight.providers.matching import Match, Pick, Section, StatusBounds, StatusRange, fold
from safelight.providers.signatures import Signature

Template = dict[str, Any]
Name = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9._-]{0,63}$")]
FailureCode = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,63}$")]
Path = Annotated[str, Field(pattern=r"^/[^?#\s]*$")]
Phase = Literal["submit", "poll", "look_up", "list", "cancel"]
ErrorOutcome = Literal[
    "invalid_request",
    "content_blocked",
    "upstream_fault",
    "rate_limited",
    "credentials",
    "funds",
    "not_found",
    "ambiguous",
]


class HeaderAuth(Section):
    """A secret in a header."""

    kind: Literal["header"] = "header"
    header: str = "Authorization"
    value: str = "Bearer {credentials.api_key}"


class NoAuth(Section):
    kind: Literal["none"]


class Outputs(Section):
    """Where the pictures are: a list, and within one item the address or the base64 text."""

    items: Pick
    url: Pick | None = None
    base64: Pick | None = None


class Dialect(Section):
    """How to read one record. A narrower table, such as `[poll.answer]`, overrides `[answer]` key by key."""

    record: Pick | None = None
    provider_ref: Pick | None = None
    reference: Pick | None = None
    status: Pick | None = None
    statuses: dict[str, UpdateStatus] = Field(default_factory=dict)
    status_if_absent: UpdateStatus | None = None
    outputs: Outputs | None = None
    error_code: Pick | None = None
    error_message: Pick | None = None
    percent: Pick | None = None
    percent_full: Literal[1, 100] = 100
    position: Pick | None = None
    run_s: Pick | None = None
    cost: Pick | None = None
    created_at: Pick | None = None
    created_at_format: TimeFormat = "unix"

    @model_validator(mode="after")
    def _check_words(self) -> Self:
        folded = [fold(word) for word in self.statuses]
        if len(set(folded)) != len(folded):
            raise ValueError("statuses has a word twice (case does not count); keep one of them")
        if UpdateStatus.HINT in self.statuses.values():
            raise ValueError(
                "statuses maps a word to 'hint'; leave the word out, unknown words keep a task running"
            )
        return self

    def overridden_by(self, narrower: Dialect | None) -> Dialect:
        """This dialect with the keys that the narrower table sets."""
        if narrower is None:
            return self
        return self.model_copy(update={key: getattr(narrower, key) for key in narrower.model_fields_set})


class Call(Section):
    """One HTTP call: its parts are templates."""

    method: Literal["GET", "POST", "PUT", "DELETE"] = "GET"
    path: Path
    query: Template = Field(default_factory=dict)
    headers: dict[str, str] = Field(default_factory=dict)
    body: Template | None = None
    accepted: tuple[int, ...] = (200,)
    timeout_s: float = Field(15.0, gt=0)
    success_if: Pick | None = None
    answer: Dialect | None = None
    max_answer_bytes: int = Field(MAX_ANSWER_BYTES, gt=0)


class Submit(Call):
    """How an attempt is sent. `accepted` answers carry a provider_ref or, if synchronous, the pictures.

    A GET is not allowed: the HTTP library repeats idempotent calls by itself.
    """

    method: Literal["POST"] = "POST"
    accepted: tuple[int, ...] = (200, 201, 202)
    timeout_s: float = Field(30.0, gt=0)
    after_uncertain: AfterUncertain
    max_answer_bytes: int = Field(MAX_PICTURE_ANSWER_BYTES, gt=0)


class LookUp(Call):
    """Finding a record by our reference; `records` is the list of candidates."""

    records: Pick


class Listing(Call):
    """One page of the upstream's records by window."""

    records: Pick
    next_cursor: Pick | None = None
    limit: int = Field(100, ge=1)
    time_format: TimeFormat = "unix"


class Callback(Section):
    """Notices from the upstream: how they prove themselves and what they may do."""

    trust: Trust
    signature: Signature
    answer: Dialect | None = None


class ErrorRule(Match):
    """One sentence about error answers: where it matches, `outcome` holds. The first match wins.

    Without `path` or `header`, the texts are compared with the error code.
    """

    phases: tuple[Phase, ...] = ("submit", "poll", "look_up", "list", "cancel")
    status: tuple[StatusRange, ...] = (StatusBounds(400, 599),)
    header: str | None = None
    outcome: ErrorOutcome
    code: FailureCode | None = None

    @model_validator(mode="after")
    def _check_evidence(self) -> Self:
        if self.header is not None and self.path is not None:
            raise ValueError("a rule looks at 'path' or at 'header'; split it into two rules")
        if (self.path or self.header) and not self.compares:
            raise ValueError("a rule with 'path' or 'header' needs 'equals', 'prefix' or 'regex'")
        reaches_5xx = any(bounds.last >= 500 for bounds in self.status)
        if not self.compares and reaches_5xx and self.outcome != "ambiguous":
            raise ValueError(
                "a 5xx alone proves nothing, a gateway may have sent it; add 'equals', 'prefix' or 'regex'"
            )
        if self.outcome == "not_found" and "submit" in self.phases:
            raise ValueError("'not_found' has no meaning for a submit; name the other phases in 'phases'")
        return self

    def speaks_of(self, phase: Phase, status: int) -> bool:
        """Whether the rule is about answers with this status in this phase."""
        return phase in self.phases and any(bounds.holds(status) for bounds in self.status)


class Errors(Section):
    """The upstream's error answers: where its code and its message are, and what they mean."""

    code: Pick | None = None
    message: Pick | None = None
    retry_after_header: str = "retry-after"
    rules: tuple[ErrorRule, ...] = ()


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


class Limits(Section):
    """What the upstream allows and promises; see `domain.provider.Capabilities`."""

    visibility_delay_s: float = Field(5.0, ge=0)
    min_poll_gap_s: float = Field(0.0, ge=0)
    result_lifetime_s: float | None = Field(None, gt=0)
    max_active: int | None = Field(None, ge=1)
    max_calls: int = Field(64, ge=1)
    calls_per_s: float | None = Field(None, gt=0)
    result_hosts: tuple[str, ...] = ()


class DeclaredModel(Section):
    """A model for the catalog; see `domain.catalog.Model`."""

    name: Name
    upstream_model: str = ""
    operations: tuple[Literal["generate", "edit"], ...] = ("generate",)
    price: int = Field(ge=0)
    max_n: int = Field(4, ge=1)
    sizes: tuple[Annotated[str, Field(pattern=r"^([1-9]\d{0,4}x[1-9]\d{0,4})?$")], ...] = ()
    aspect_ratios: tuple[str, ...] = ()
    max_prompt_chars: int = Field(4000, ge=1)
    max_images: int = Field(0, ge=0)
    default_p95_s: float = Field(20.0, gt=0)
    p95_floor_s: float = Field(1.0, gt=0)
    p95_cap_s: float = Field(600.0, gt=0)
    deadline_s: float = Field(3600.0, gt=0)
    is_default: bool = False


class Declaration(Section):
    """Everything that is said about one upstream. `base_url` may be left to the installation."""

    name: Name
    base_url: str | None = None
    is_synchronous: bool = False
    auth: Annotated[HeaderAuth | NoAuth, Field(discriminator="kind")] = HeaderAuth()
    answer: Dialect = Dialect()
    submit: Submit
    poll: Call | None = None
    look_up: LookUp | None = None
    listing: Listing | None = Field(None, alias="list")
    cancel: Call | None = None
    callback: Callback | None = None
    errors: Errors = Errors()
    failures: tuple[FailureRule, ...] = ()
    limits: Limits = Limits()
    models: tuple[DeclaredModel, ...]
