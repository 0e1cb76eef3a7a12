"""The knobs: every misbehaviour of the lab, as one validated model."""

import json
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from safelight.lab.situations import ENDINGS, REFUSALS

Probability = Annotated[float, Field(ge=0, le=1)]
Seconds = Annotated[float, Field(ge=0, le=86_400)]


def _rising(span: tuple[float, float]) -> tuple[float, float]:
    if span[0] > span[1]:
        raise ValueError("the low end is above the high end")
    return span


def _known(*words: str) -> AfterValidator:
    def check(value: str | None) -> str | None:
        if value is not None and value not in words:
            raise ValueError(f"must be one of {', '.join(words)}")
        return value

    return AfterValidator(check)


Span = Annotated[tuple[Seconds, Seconds], AfterValidator(_rising)]
Role = Literal["submit", "poll", "result", "list", "cancel", "any"]
Times = Annotated[int, Field(ge=1)] | None
How = Literal[
    "html_502",
    "empty_500",
    "empty_200",
    "garbage_200",
    "html_200",
    "json_200",
    "truncated_json",
    "reset_before",
    "reset_after_head",
    "hang",
    "redirect",
]


class Gateway(BaseModel):
    """What answers instead of the upstream: before the call reached it or, if `is_accepted`, after."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    where: Role = "submit"
    how: How
    is_accepted: bool = False
    times: Times = None


class Knobs(BaseModel):
    """What the lab does wrong, and how often; everything is off by default."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    latency_s: Span = (0.4, 1.6)
    callback_loss: Probability = 0.0
    callback_copies: Annotated[int, Field(ge=1, le=100)] = 1
    callback_reorder: Probability = 0.0
    callback_delay_s: Seconds | Span = 0.0
    callback_forge: Probability = 0.0
    callback_early: Probability = 0.0
    fail: Probability = 0.0
    moderate: Probability = 0.0
    rate_limit: Probability = 0.0
    hang_after_accept: Probability = 0.0
    lose_answer: Probability = 0.0
    partial: Probability = 0.0
    unknown_status: Probability = 0.0
    expire_result_s: Seconds | None = None
    html_result: Probability = 0.0
    truncate_result: Probability = 0.0
    slow_result: Probability = 0.0
    refuse: Annotated[str | None, _known(*REFUSALS)] = None
    refuse_way: str | None = None
    refuse_where: Role | None = None
    refuse_times: Times = None
    ending: Annotated[str | None, _known(*ENDINGS)] = None
    ending_way: str | None = None
    variant: str | None = None
    gateway: Gateway | None = None
    empty_success: Probability = 0.0
    small_pictures: bool = False
    callback_replay_s: Seconds | None = None
    callback_reserialised: bool = False
    callback_stale_s: Seconds | None = None
    callback_late_s: Seconds = 0.0
    callback_unsigned: bool = False
    callback_urls: dict[str, str] = {}
    secret_rotated: Literal["both", "new_only"] | None = None
    seed: int | None = None

    @classmethod
    def parse(cls, json_text: str) -> Self:
        """Read knobs from JSON text; ValueError names the knob and what is wrong with it."""
        try:
            values = json.loads(json_text)
        except ValueError as error:
            raise ValueError(f"knobs are not JSON: {error}") from None
        return cls().merged(values)

    def merged(self, changes: object) -> Self:
        """These knobs with some replaced; ValueError names the knob and what is wrong with it."""
        if not isinstance(changes, dict):
            raise ValueError("knobs must be a JSON object")
        values: dict[str, Any] = {**self.model_dump(), **changes}
        try:
            return type(self).model_validate(values)
        except ValidationError as error:
            raise ValueError(_explain(error)) from None


def _explain(error: ValidationError) -> str:
    faults: dict[str, str] = {}
    for fault in error.errors(include_url=False):
        name = str(fault["loc"][0]) if fault["loc"] else "knobs"
        text = "there is no such knob" if fault["type"] == "extra_forbidden" else fault["msg"]
        faults.setdefault(name, text)
    return "; ".join(f"knob {name}: {text}" for name, text in faults.items())
