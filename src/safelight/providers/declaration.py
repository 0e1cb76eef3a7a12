"""The shape of a declaration: what a TOML file may say about one upstream."""

from __future__ import annotations

from datetime import date
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from safelight.domain.provider import AfterUncertain, MaskStyle, Submission, Trust
from safelight.providers.auth import Auth, HeaderAuth
from safelight.providers.dialect import Dialect, FailureCode, FailureRule
from safelight.providers.documents import TimeFormat
from safelight.providers.exchange import MAX_ANSWER_BYTES, MAX_PICTURE_ANSWER_BYTES
from safelight.providers.matching import Match, Pick, Section, StatusBounds, StatusRange
from safelight.providers.signatures import Signature

Template = dict[str, Any]
Name = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9._-]{0,63}$")]
ProviderName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9]*(-[a-z][a-z0-9]*)*$", max_length=40)]
"""No number stands alone between dashes: `fal-2` is the second key of `fal`."""
Path = Annotated[str, Field(pattern=r"^/[^?#\s]*$")]
Address = Annotated[str, Field(pattern=r"^https?://[^/\s?#]+(/[^\s?#]*)?$")]
Phase = Literal["submit", "poll", "result", "look_up", "list", "cancel"]
Encoding = Literal["json", "form", "multipart"]
Operation = Literal["generate", "edit"]
ErrorOutcome = Literal[
    "invalid_request",
    "content_blocked",
    "upstream_fault",
    "rate_limited",
    "concurrency_limited",
    "credentials",
    "funds",
    "not_found",
    "ambiguous",
]


class Call(Section):
    """One HTTP call: its parts are templates. An address that the upstream gave for it is preferred."""

    method: Literal["GET", "POST", "PUT", "DELETE"] = "GET"
    path: Path
    query: Template = Field(default_factory=dict)
    headers: dict[str, str] = Field(default_factory=dict)
    body: Template | None = None
    encoding: Encoding = "json"
    accepted: tuple[int, ...] = (200,)
    timeout_s: float = Field(15.0, gt=0)
    success_if: Pick | None = None
    answer: Dialect | None = None
    max_answer_bytes: int = Field(MAX_ANSWER_BYTES, gt=0)


class Variant(Section):
    """Another way to send some attempts: where all its conditions hold, what it sets replaces [submit].

    `is_many` is about attempts that ask for more than one picture.
    """

    operations: tuple[Operation, ...] = ()
    models: tuple[str, ...] = ()
    has_mask: bool | None = None
    is_many: bool | None = None
    path: Path | None = None
    query: Template | None = None
    headers: dict[str, str] | None = None
    body: Template | None = None
    encoding: Encoding | None = None
    timeout_s: float | None = Field(None, gt=0)
    answer: Dialect | None = None

    @model_validator(mode="after")
    def _check_conditions(self) -> Self:
        if not self.operations and not self.models and self.has_mask is None and self.is_many is None:
            raise ValueError("a variant needs a condition: 'operations', 'models', 'has_mask' or 'is_many'")
        return self

    def fits(self, operation: str, upstream_model: str, *, has_mask: bool, is_many: bool) -> bool:
        """Whether an attempt is sent in this way."""
        return (
            (not self.operations or operation in self.operations)
            and (not self.models or upstream_model in self.models)
            and self.has_mask in (None, has_mask)
            and self.is_many in (None, is_many)
        )


_CONDITIONS = frozenset({"operations", "models", "has_mask", "is_many"})


class Stream(Section):
    """An answer as server-sent events. It is asked for, with `body` added, where somebody listens.

    Events go by the name on their `event` line, else by their `type`. Each of `progress` is one of `steps`
    done ("n": as many as pictures were asked for). Those of `kept` are collected as `{"events": [...]}`, which
    `answer` reads; one of `final` completes it, and without one it is no answer. One of `errors` is read like
    an error answer of status 500. `is_many` limits it to attempts that ask for several pictures, or for one.
    """

    body: dict[str, str | int | bool]
    progress: tuple[str, ...] = ()
    steps: Annotated[int, Field(ge=1)] | Literal["n"] = "n"
    kept: tuple[str, ...] = ()
    final: tuple[str, ...] = Field(min_length=1)
    errors: tuple[str, ...] = ("error",)
    is_many: bool | None = None
    answer: Dialect


class Submit(Call):
    """How an attempt is sent. `accepted` answers carry a provider_ref or, if synchronous, the pictures.

    A GET is not allowed: the HTTP library repeats idempotent calls by itself. `sizes` turns our "WxH" or
    "W:H" into the upstream's word, for `{size_word}`.
    """

    method: Literal["POST"] = "POST"
    accepted: tuple[int, ...] = (200, 201, 202)
    timeout_s: float = Field(30.0, gt=0)
    after_uncertain: AfterUncertain
    max_answer_bytes: int = Field(MAX_PICTURE_ANSWER_BYTES, gt=0)
    sizes: dict[str, str | int] = Field(default_factory=dict)
    mask_style: MaskStyle = MaskStyle.WHITE
    stream: Stream | None = None
    variants: tuple[Variant, ...] = ()

    def fitting(self, submission: Submission) -> Submit:
        """This call as it is made for one submission: by the first variant that fits, if there is one."""
        for variant in self.variants:
            if variant.fits(
                submission.operation,
                submission.upstream_model,
                has_mask=submission.mask is not None,
                is_many=submission.n > 1,
            ):
                return self.varied(variant)
        return self

    def varied(self, variant: Variant) -> Submit:
        """This call with what the variant replaces."""
        changes = {key: getattr(variant, key) for key in variant.model_fields_set - _CONDITIONS}
        return self.model_copy(update={**changes, "variants": ()})


class LookUp(Call):
    """Finding a record by our reference; `records` is the list of candidates."""

    records: Pick


class Listing(Call):
    """One page of the upstream's records, by window where it knows one.

    Pages follow a `cursor` that the answer names, a `page` number from `first_page` on, or an `offset`; the
    last two end with a page that is not full. Where the answer names the next page's address,
    `next_parameter` is the query parameter in it that is the cursor. `newest_first` ends the reading at a
    record before the window.
    """

    records: Pick
    paging: Literal["cursor", "page", "offset"] = "cursor"
    next_cursor: Pick | None = None
    next_parameter: str | None = None
    first_page: int = Field(1, ge=0)
    has_more: Pick | None = None
    newest_first: bool = False
    limit: int = Field(100, ge=1)
    time_format: TimeFormat = "unix"


class Callback(Section):
    """Notices from the upstream: how they prove themselves and what they may do.

    `address` is `task` where every submit carries its own address, `account` where one is set upstream for
    all: then a notice is matched by its provider_ref.
    """

    trust: Trust
    address: Literal["task", "account"] = "task"
    signature: Signature
    answer: Dialect | None = None


class ErrorRule(Match):
    """One sentence about error answers: where it matches, `outcome` holds. The first match wins.

    Without `path` or `header`, the texts are compared with the error code. With `ends_task` an answer to a
    poll says that the attempt itself has ended so; without it a poll's error says nothing about the attempt.
    """

    phases: tuple[Phase, ...] = ("submit", "poll", "result", "look_up", "list", "cancel")
    status: tuple[StatusRange, ...] = (StatusBounds(400, 599),)
    header: str | None = None
    outcome: ErrorOutcome
    code: FailureCode | None = None
    ends_task: bool = False

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
        if self.ends_task and self.outcome not in ("invalid_request", "content_blocked", "upstream_fault"):
            raise ValueError("'ends_task' needs an outcome that is the attempt's own fault; drop one of them")
        return self

    def speaks_of(self, phase: Phase, status: int) -> bool:
        """Whether the rule is about answers with this status in this phase."""
        return phase in self.phases and any(bounds.holds(status) for bounds in self.status)


class Errors(Section):
    """The upstream's error answers: where its code and its message are, and what they mean.

    How long to wait is read from a header in seconds or as a date, a header in milliseconds, or a member of
    the body such as "55s". With `takes_text` a body of plain text is read as `{"text": …}`.
    """

    code: Pick | None = None
    message: Pick | None = None
    takes_text: bool = False
    retry_after_header: str = "retry-after"
    retry_after_ms_header: str | None = None
    retry_after: Pick | None = None
    rules: tuple[ErrorRule, ...] = ()


class Limits(Section):
    """What the upstream allows and promises; see `domain.provider.Capabilities`."""

    visibility_delay_s: float = Field(5.0, ge=0)
    min_poll_gap_s: float = Field(0.0, ge=0)
    result_lifetime_s: float | None = Field(None, gt=0)
    max_active: int | None = Field(None, ge=1)
    max_active_tasks: int | None = Field(None, ge=1)
    max_calls: int = Field(64, ge=1)
    calls_per_s: float | None = Field(None, gt=0)
    polls_per_s: float | None = Field(None, gt=0)
    cost_unit: str = ""
    result_hosts: tuple[str, ...] = ()


class DeclaredModel(Section):
    """A model for the catalog; see `domain.catalog.Model`. `values` are for its templates, `{model.name}`."""

    name: Name
    upstream_model: str = ""
    operations: tuple[Operation, ...] = ("generate",)
    price: int = Field(ge=0)
    max_n: int = Field(4, ge=1)
    sizes: tuple[Annotated[str, Field(pattern=r"^([1-9]\d{0,4}x[1-9]\d{0,4})?$")], ...] = ()
    aspect_ratios: tuple[Annotated[str, Field(pattern=r"^([1-9]\d{0,2}:[1-9]\d{0,2})?$")], ...] = ()
    max_prompt_chars: int = Field(4000, ge=1)
    max_images: int = Field(0, ge=0)
    takes_mask: bool = False
    retires_on: date | None = None
    default_p95_s: float = Field(20.0, gt=0)
    p95_floor_s: float = Field(1.0, gt=0)
    p95_cap_s: float = Field(600.0, gt=0)
    deadline_s: float = Field(3600.0, gt=0)
    is_default: bool = False
    values: dict[str, str | int | float | bool] = Field(default_factory=dict)


def _as_ways(value: object) -> object:
    return [value] if isinstance(value, dict) else value


class Declaration(Section):
    """Everything that is said about one upstream. `base_url` may be left to the installation.

    `[auth]` may be a list: the first way whose credentials are set is taken. `hosts` are other base addresses
    by the name of their region. `code` names the module that does what a declaration
    cannot say. `link_hosts` are further hosts that addresses from answers may name.
    """

    name: ProviderName
    title: str = ""
    code: Literal["comfyui"] | None = None
    base_url: Address | None = None
    hosts: dict[str, Address] = Field(default_factory=dict)
    region: str = ""
    link_hosts: tuple[Annotated[str, Field(pattern=r"^(\*\.)?[a-z0-9-]+(\.[a-z0-9-]+)+$")], ...] = ()
    is_synchronous: bool = False
    auth: Annotated[tuple[Auth, ...], BeforeValidator(_as_ways), Field(min_length=1)] = (HeaderAuth(),)
    answer: Dialect = Dialect()
    submit: Submit
    poll: Call | None = None
    result: Call | None = None
    look_up: LookUp | None = None
    listing: Listing | None = Field(None, alias="list")
    cancel: Call | None = None
    callback: Callback | None = None
    errors: Errors = Errors()
    failures: tuple[FailureRule, ...] = ()
    limits: Limits = Limits()
    models: tuple[DeclaredModel, ...]
