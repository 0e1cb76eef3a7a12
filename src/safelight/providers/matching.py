"""Compares a value of an answer with what a rule of a declaration expects."""

from __future__ import annotations

import functools
import re
from typing import Annotated, Any, NamedTuple

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from safelight.providers.documents import check_expression

_COMPARED_CHARS = 2_000
_BOUNDS = re.compile(r"([1-5]\d\d)(?:-([1-5]\d\d))?")


class StatusBounds(NamedTuple):
    """HTTP statuses from `first` to `last`, both included."""

    first: int
    last: int

    def holds(self, status: int) -> bool:
        return self.first <= status <= self.last


def _read_bounds(value: object) -> object:
    if isinstance(value, StatusBounds):
        return value
    match = _BOUNDS.fullmatch(str(value))
    if not match:
        raise ValueError("is not an HTTP status; write 429 or '500-599'")
    return StatusBounds(int(match.group(1)), int(match.group(2) or match.group(1)))


def _check_regex(pattern: str) -> str:
    try:
        _compiled(pattern)
    except re.error as error:
        raise ValueError(f"is not a regular expression ({error})") from None
    return pattern


@functools.cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


StatusRange = Annotated[StatusBounds, BeforeValidator(_read_bounds)]
Pick = Annotated[str, AfterValidator(check_expression)]
Regex = Annotated[str, AfterValidator(_check_regex)]


def fold(word: str) -> str:
    """A status word as it is compared: upstreams change case and blanks between versions."""
    return word.strip().casefold()


class Section(BaseModel):
    """A table of a declaration: unknown keys are errors, values never change."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Match(Section):
    """A comparison of one value; whichever of `equals`, `prefix` and `regex` are given, one must hold."""

    path: Pick | None = Field(None, description="What is compared; without it the error code.")
    equals: tuple[str | int, ...] = Field((), description="It is one of these.")
    prefix: str | None = Field(None, description="It begins so.")
    regex: Regex | None = Field(None, description="It holds this.")

    @property
    def compares(self) -> bool:
        return bool(self.equals) or self.prefix is not None or self.regex is not None

    def fits(self, value: Any) -> bool:
        """Whether a picked value is the expected one; numbers are compared by their digits."""
        if isinstance(value, bool) or not isinstance(value, str | int):
            return False
        text = str(value)[:_COMPARED_CHARS]
        if text in {str(expected) for expected in self.equals}:
            return True
        if self.prefix is not None and text.startswith(self.prefix):
            return True
        return self.regex is not None and _compiled(self.regex).search(text) is not None
