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

    method: Literal["GET", "POST", "PUT", "DELETE"] = Field("GET", description="The HTTP method.")
    path: Path = Field(description="Template of the path, after the base address.")
    query: Template = Field(default_factory=dict, description="Templates of the query's parameters.")
    headers: dict[str, str] = Field(
        default_factory=dict,
        description="Templates of further headers; texts of customers are not allowed in them.",
    )
    body: Template | None = Field(None, description="Template of the body; none sends no body.")
    encoding: Encoding = Field(
        "json", description="How the body is written: JSON, a form, or parts with files."
    )
    accepted: tuple[int, ...] = Field((200,), description="The statuses that are no error.")
    timeout_s: float = Field(15.0, gt=0, description="How long to wait for the whole answer.")
    success_if: Pick | None = Field(
        None, description="What must hold in an accepted answer; else it is an error with that status."
    )
    answer: Dialect | None = Field(None, description="What is different in the answers to this call.")
    max_answer_bytes: int = Field(
        MAX_ANSWER_BYTES, gt=0, description="Longer answers are cut off and count as none."
    )


class Variant(Section):
    """Another way to send some attempts: where all its conditions hold, what it sets replaces [submit].

    `is_many` is about attempts that ask for more than one picture.
    """

    operations: tuple[Operation, ...] = Field((), description="Condition: the operation is one of these.")
    models: tuple[str, ...] = Field(
        (), description="Condition: the upstream's name of the model is one of these."
    )
    has_mask: bool | None = Field(None, description="Condition: there is a mask, or there is none.")
    is_many: bool | None = Field(
        None, description="Condition: more than one picture is asked for, or only one."
    )
    path: Path | None = Field(None, description="Replaces the path.")
    query: Template | None = Field(None, description="Replaces the whole query.")
    headers: dict[str, str] | None = Field(None, description="Replaces all headers.")
    body: Template | None = Field(None, description="Replaces the whole body.")
    encoding: Encoding | None = Field(None, description="Replaces the encoding.")
    timeout_s: float | None = Field(None, gt=0, description="Replaces the time-out.")
    answer: Dialect | None = Field(None, description="Replaces the submit's answer table.")

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

    body: dict[str, str | int | bool] = Field(description="What is added to the body to ask for a stream.")
    progress: tuple[str, ...] = Field((), description="Names of events that are a step done.")
    steps: Annotated[int, Field(ge=1)] | Literal["n"] = Field(
        "n", description="How many steps there are; `n` is one for each picture."
    )
    kept: tuple[str, ...] = Field((), description="Names of events that are collected.")
    final: tuple[str, ...] = Field(min_length=1, description="Names of events that complete the answer.")
    errors: tuple[str, ...] = Field(("error",), description="Names of events that are errors.")
    is_many: bool | None = Field(
        None, description="Only for attempts with several pictures, or only for those with one."
    )
    answer: Dialect = Field(description="How the collected events are read.")

    @model_validator(mode="after")
    def _check_steps(self) -> Self:
        if self.steps == "n" and self.is_many is not True:
            raise ValueError("with a step for each picture, one alone is no progress; write is_many = true")
        return self


class Submit(Call):
    """How an attempt is sent. `accepted` answers carry a provider_ref or, if synchronous, the pictures.

    A GET is not allowed: the HTTP library repeats idempotent calls by itself. `sizes` turns our "WxH" or
    "W:H" into the upstream's word, for `{size_word}`.
    """

    method: Literal["POST"] = Field("POST", description="Always POST.")
    accepted: tuple[int, ...] = Field((200, 201, 202), description="The statuses that mean: taken.")
    timeout_s: float = Field(
        30.0, gt=0, description="How long to wait for the answer; after that the submit is uncertain."
    )
    after_uncertain: AfterUncertain = Field(
        description="How a lost answer is cleared up: send the same key again, look it up, find it in the list, "
        "or not at all."
    )
    max_answer_bytes: int = Field(
        MAX_PICTURE_ANSWER_BYTES,
        gt=0,
        description="Longer answers are cut off; then the submit is uncertain.",
    )
    sizes: dict[str, str | int] = Field(
        default_factory=dict,
        description="The upstream's word for a size or an aspect ratio, as `{size_word}`.",
    )
    mask_style: MaskStyle = Field(
        MaskStyle.WHITE,
        description="How the upstream marks where a picture may change; masks are turned into it.",
    )
    stream: Stream | None = Field(None, description="The answer as a stream, where somebody listens.")
    variants: tuple[Variant, ...] = Field((), description="Other ways to send; the first that fits is taken.")

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

    records: Pick = Field(description="The list of records that may be ours.")


class Listing(Call):
    """One page of the upstream's records, by window where it knows one.

    Pages follow a `cursor` that the answer names, a `page` number from `first_page` on, or an `offset`; the
    last two end with a page that is not full. Where the answer names the next page's address,
    `next_parameter` is the query parameter in it that is the cursor. `newest_first` ends the reading at a
    record before the window.
    """

    records: Pick = Field(description="The list of records of one page.")
    paging: Literal["cursor", "page", "offset"] = Field(
        "cursor", description="How the next page is asked for."
    )
    next_cursor: Pick | None = Field(None, description="Where the answer names the next page's cursor.")
    next_parameter: str | None = Field(
        None, description="The parameter that is the cursor, where the answer names an address."
    )
    first_page: int = Field(1, ge=0, description="The number of the first page.")
    has_more: Pick | None = Field(
        None, description="Where the answer says that another page follows; without it a full page does."
    )
    newest_first: bool = Field(False, description="Whether the newest record comes first.")
    limit: int = Field(100, ge=1, description="How many records a page has, `{limit}`.")
    time_format: TimeFormat = Field("unix", description="How `{since}` and `{until}` are written.")


class Callback(Section):
    """Notices from the upstream: how they prove themselves and what they may do.

    `address` is `task` where every submit carries its own address, `account` where one is set upstream for
    all: then a notice is matched by its provider_ref.
    """

    trust: Trust = Field(description="`body` is applied; `hint` only makes us ask.")
    address: Literal["task", "account"] = Field(
        "task", description="Whether each submit carries an address, or the account has one for all."
    )
    signature: Signature = Field(description="How a callback proves itself.")
    answer: Dialect | None = Field(
        None, description="What is different in a callback's record; `[poll.answer]` holds for it too."
    )


class ErrorRule(Match):
    """One sentence about error answers: where it matches, `outcome` holds. The first match wins.

    Without `path` or `header`, the texts are compared with the error code. With `ends_task` an answer to a
    poll says that the attempt itself has ended so; without it a poll's error says nothing about the attempt.
    """

    phases: tuple[Phase, ...] = Field(
        ("submit", "poll", "result", "look_up", "list", "cancel"),
        description="The calls whose answers it is about.",
    )
    status: tuple[StatusRange, ...] = Field(
        (StatusBounds(400, 599),), description='The statuses it is about: 429 or "500-599".'
    )
    header: str | None = Field(
        None, description="The header that is compared, in place of a member of the body."
    )
    outcome: ErrorOutcome = Field(description="What such an answer means.")
    code: FailureCode | None = Field(
        None, description="Our stable code of the failure; without it the usual one."
    )
    ends_task: bool = Field(False, description="Whether the answer to a poll is the end of the attempt.")

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

    code: Pick | None = Field(None, description="Where the error code is.")
    message: Pick | None = Field(None, description="Where the message is.")
    takes_text: bool = Field(False, description="Whether plain text is the upstream's own word, too.")
    retry_after_header: str = Field("retry-after", description="The header with seconds or a date.")
    retry_after_ms_header: str | None = Field(None, description="A header with milliseconds.")
    retry_after: Pick | None = Field(None, description="Where the body says how long to wait.")
    rules: tuple[ErrorRule, ...] = Field((), description="What error answers mean, in order.")


class Limits(Section):
    """What the upstream allows and promises; see `domain.provider.Capabilities`."""

    visibility_delay_s: float = Field(
        5.0, ge=0, description="How long a new task may stay invisible to look-ups and lists."
    )
    min_poll_gap_s: float = Field(0.0, ge=0, description="The least time between two looks at one task.")
    result_lifetime_s: float | None = Field(
        None, gt=0, description="How long results can be fetched; unknown counts as half an hour."
    )
    max_active: int | None = Field(None, ge=1, description="Pictures that may be under way at once.")
    max_active_tasks: int | None = Field(None, ge=1, description="Tasks that may be under way at once.")
    max_calls: int = Field(64, ge=1, description="Submits that may be in flight at once.")
    calls_per_s: float | None = Field(None, gt=0, description="Submits in a second.")
    polls_per_s: float | None = Field(None, gt=0, description="Looks in a second.")
    cost_unit: str = Field("", description="What `cost` counts.")
    record_retention_s: float | None = Field(
        None,
        gt=0,
        description="How long the upstream's list keeps a record; without it no absence is held against it.",
    )
    clock_skew_s: float = Field(60.0, ge=0, description="How far the upstream's clock may be from ours.")
    result_hosts: tuple[str, ...] = Field((), description="Hosts on which results lie.")


class DeclaredModel(Section):
    """A model for the catalog; see `domain.catalog.Model`. `values` are for its templates, `{model.name}`."""

    name: Name = Field(description="What customers ask for. The same name at several providers makes routes.")
    upstream_model: str = Field("", description="The upstream's name; without it the same.")
    operations: tuple[Operation, ...] = Field(("generate",), description="What it can do.")
    price: int = Field(ge=0, description="Credits for each picture.")
    max_n: int = Field(4, ge=1, description="The most pictures of one task.")
    sizes: tuple[Annotated[str, Field(pattern=r"^([1-9]\d{0,4}x[1-9]\d{0,4})?$")], ...] = Field(
        (), description="The sizes it makes; an empty word takes any, an empty list none."
    )
    aspect_ratios: tuple[Annotated[str, Field(pattern=r"^([1-9]\d{0,2}:[1-9]\d{0,2})?$")], ...] = Field(
        (), description="The aspect ratios it makes, in the same way."
    )
    max_prompt_chars: int = Field(4000, ge=1, description="The longest prompt.")
    max_images: int = Field(0, ge=0, description="The most pictures that an edit may bring.")
    takes_mask: bool = Field(False, description="Whether an edit may bring a mask.")
    retires_on: date | None = Field(None, description="The day (UTC) from which nothing new is sent.")
    default_p95_s: float = Field(
        20.0, gt=0, description="How long 95 of 100 runs take, until it is measured."
    )
    p95_floor_s: float = Field(1.0, gt=0, description="The least that a measured P95 counts as.")
    p95_cap_s: float = Field(600.0, gt=0, description="The most that a measured P95 counts as.")
    deadline_s: float = Field(
        3600.0, gt=0, description="How long after acceptance a run may take before a person looks."
    )
    is_default: bool = Field(False, description="Whether it is taken where a caller names no model.")
    values: dict[str, str | int | float | bool] = Field(
        default_factory=dict, description="Words of its own for templates, `{model.word}`."
    )


def _as_ways(value: object) -> object:
    return [value] if isinstance(value, dict) else value


class Declaration(Section):
    """Everything that is said about one upstream. `base_url` may be left to the installation.

    `[auth]` may be a list: the first way whose credentials are set is taken. `hosts` are other base addresses
    by the name of their region. `code` names the module that does what a declaration
    cannot say. `link_hosts` are further hosts that addresses from answers may name.
    """

    name: ProviderName = Field(description="By which settings, catalog and addresses know it.")
    title: str = Field("", description="What people read.")
    code: Literal["comfyui"] | None = Field(
        None, description="The module that does what a declaration cannot say."
    )
    base_url: Address | None = Field(None, description="Its usual address; an installation may set another.")
    hosts: dict[str, Address] = Field(
        default_factory=dict, description="Addresses by the name of their region."
    )
    region: str = Field("", description="The usual region, `{region}`.")
    link_hosts: tuple[Annotated[str, Field(pattern=r"^(\*\.)?[a-z0-9-]+(\.[a-z0-9-]+)+$")], ...] = Field(
        (), description="Further hosts that addresses from answers may name; `*.` stands for any first part."
    )
    is_synchronous: bool = Field(False, description="Whether the submit is answered with the pictures.")
    auth: Annotated[tuple[Auth, ...], BeforeValidator(_as_ways), Field(min_length=1)] = Field(
        (HeaderAuth(),), description="Who is calling."
    )
    answer: Dialect = Field(Dialect(), description="Where records say what, for all calls.")
    submit: Submit = Field(description="How an attempt is sent.")
    poll: Call | None = Field(None, description="How it is asked about.")
    result: Call | None = Field(
        None, description="A second call for the pictures, after a poll that says done without them."
    )
    look_up: LookUp | None = Field(None, description="How it is found by our reference.")
    listing: Listing | None = Field(
        None, alias="list", description="How all records are read, for reconciliation."
    )
    cancel: Call | None = Field(
        None, description="How it is taken back; the answer must be a record that says so."
    )
    callback: Callback | None = Field(None, description="How the upstream calls back.")
    errors: Errors = Field(Errors(), description="What error answers mean.")
    failures: tuple[FailureRule, ...] = Field(
        (),
        description="What failed records mean; the first that matches wins, and none means the upstream's fault.",
    )
    limits: Limits = Field(Limits(), description="What it allows and promises.")
    models: tuple[DeclaredModel, ...] = Field(description="What customers can ask for.")
