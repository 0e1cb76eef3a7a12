"""Reads an upstream's JSON without trusting it, and picks single values out of it."""

from __future__ import annotations

import functools
import json
import math
import re
from datetime import UTC, datetime
from typing import Any, Literal

import jmespath
from jmespath.exceptions import JMESPathError

MAX_DEPTH = 64
TimeFormat = Literal["unix", "unix_ms", "iso"]
TEXT_CHARS = 2_000

_REF = re.compile(r"[A-Za-z0-9._:-]{1,128}")
_LEAP_SECOND = re.compile(r"(T[0-9]{2}:[0-9]{2}:)60")
_NUMBER_TEXT = re.compile(r"\s*(-?\d{1,9}(?:\.\d{1,9})?)\s*(?:%\s*)?")


class Unreadable(Exception):
    """An answer that says nothing usable; `reason` is a stable word. It never leaves this package."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def parse_object(raw: bytes, *, takes_list: bool = False) -> dict[str, Any]:
    """Read a JSON object strictly; with `takes_list` a list at the top is read as `{"items": [...]}`.

    Raises:
        Unreadable: not UTF-8, not JSON, no object, a key twice, NaN or Infinity, deeper than 64.
    """
    try:
        document = json.loads(
            raw.decode("utf-8-sig"), object_pairs_hook=_without_duplicates, parse_constant=_refuse_constant
        )
    except RecursionError:
        raise Unreadable("too_deep") from None
    except ValueError:  # also UnicodeDecodeError, and integers beyond Python's digit limit
        raise Unreadable("not_json") from None
    if takes_list and isinstance(document, list):
        document = {"items": document}
    if not isinstance(document, dict):
        raise Unreadable("not_an_object")
    _check_depth(document)
    return document


def parse_text(raw: bytes) -> dict[str, Any] | None:
    """A short plain text as `{"text": …}`; None for a page of HTML or for what is no text."""
    try:
        text = raw[: TEXT_CHARS * 4].decode("utf-8-sig").strip()
    except UnicodeDecodeError:
        return None
    return {"text": text[:TEXT_CHARS]} if text and not text.startswith("<") else None


def decoded(document: dict[str, Any], paths: tuple[str, ...]) -> dict[str, Any]:
    """The document with the members at `paths`, which hold JSON as text, read; raises Unreadable."""
    for path in paths:
        document = _decoded(document, path.split("."))
    return document


def _decoded(node: dict[str, Any], steps: list[str]) -> dict[str, Any]:
    member = node.get(steps[0])
    if len(steps) > 1:
        inner: Any = _decoded(member, steps[1:]) if isinstance(member, dict) else member
    else:
        inner = _parse_member(member) if isinstance(member, str) and member.strip() else member
    return {**node, steps[0]: inner} if steps[0] in node else node


def _parse_member(text: str) -> dict[str, Any]:
    # Half a surrogate pair, which JSON may hold and UTF-8 not, is refused by the reader.
    return parse_object(text.encode("utf-8", "surrogatepass"), takes_list=True)


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    # Parsers differ in which of two equal keys they keep; a gateway and we could read two verdicts.
    members = dict(pairs)
    if len(members) != len(pairs):
        raise Unreadable("duplicate_keys")
    return members


def _refuse_constant(word: str) -> None:
    raise Unreadable("not_a_number")


def _check_depth(document: dict[str, Any]) -> None:
    level: list[Any] = [document]
    for _ in range(MAX_DEPTH):
        level = [child for parent in level for child in _containers(parent)]
        if not level:
            return
    raise Unreadable("too_deep")


def _containers(parent: Any) -> list[Any]:
    members = parent.values() if isinstance(parent, dict) else parent
    return [member for member in members if isinstance(member, dict | list)]


def check_expression(expression: str) -> str:
    """Check a jmespath expression of a declaration; raises ValueError."""
    try:
        _compile(expression)
    except JMESPathError as error:
        reason = str(error).splitlines()[0]
        raise ValueError(f"is not a jmespath expression ({reason}); see https://jmespath.org") from None
    return expression


@functools.cache
def _compile(expression: str) -> Any:
    return jmespath.compile(expression)


def pick(expression: str | None, document: Any) -> Any:
    """The value at `expression`; None where it is absent or does not fit the document."""
    if expression is None:
        return None
    try:
        return _compile(expression).search(document)
    except (JMESPathError, TypeError, ValueError):
        return None


def read_ref(value: Any) -> str:
    """An upstream id as text; raises Unreadable unless it is safe in paths and log lines."""
    text = str(value) if isinstance(value, int) and not isinstance(value, bool) else value
    # "." and ".." would change the path they are put into.
    if not isinstance(text, str) or not _REF.fullmatch(text) or not text.strip("."):
        raise Unreadable("bad_provider_ref")
    return text


def read_number(value: Any) -> float | None:
    """A finite number from a number or a text such as "57%"; None for anything else."""
    if isinstance(value, bool):
        return None
    if isinstance(value, str):
        match = _NUMBER_TEXT.fullmatch(value)
        return float(match.group(1)) if match and match.group(1).isascii() else None
    if not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def read_amount(value: Any) -> float | None:
    """A number that cannot be negative, such as a cost or a run time."""
    number = read_number(value)
    return number if number is not None and number >= 0 else None


def read_percent(value: Any, full: int) -> int | None:
    """Progress as 0 to 100, where `full` (1 or 100) is the upstream's word for finished."""
    number = read_number(value)
    if number is None:
        return None
    scale = 1 if isinstance(value, str) and "%" in value else 100 / full
    return int(min(100.0, max(0.0, number * scale)))


def read_position(value: Any) -> int | None:
    """A place in the upstream's line; 0 is next."""
    number = read_amount(value)
    return int(number) if number is not None and number < 10**9 else None


def read_time(value: Any, form: TimeFormat) -> datetime:
    """A moment in UTC; raises Unreadable."""
    try:
        if form == "iso":
            moment = datetime.fromisoformat(_LEAP_SECOND.sub(r"\g<1>59", value))
            return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
        number = read_number(value)
        if number is None:
            raise Unreadable("bad_time")
        return datetime.fromtimestamp(number / 1000 if form == "unix_ms" else number, UTC)
    except (TypeError, ValueError, OverflowError, OSError):
        raise Unreadable("bad_time") from None


def write_time(moment: datetime, form: TimeFormat) -> float | int | str:
    """A moment as an upstream wants it in a query."""
    if form == "iso":
        return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")
    return int(moment.timestamp() * 1000) if form == "unix_ms" else moment.timestamp()
