"""Forms with files (RFC 7578): a body that was read with a cap, taken apart strictly."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from safelight.errors import RequestError

MAX_PARTS = 100
MAX_HEAD_BYTES = 8_192
_TYPE = re.compile(
    rb"multipart/form-data\s*;(?:.*;)?\s*boundary=(?:\"(?P<quoted>[^\"]{1,70})\"|(?P<bare>[^\s;\",]{1,70}))\s*(?:;.*)?",
    re.IGNORECASE | re.DOTALL,
)
_DISPOSITION = re.compile(
    r"form-data((?:\s*;\s*[\w*-]+=(?:\"(?:[^\"\\]|\\.)*\"|[^\s;\"]+))*)\s*", re.IGNORECASE
)
_PARAMETER = re.compile(r";\s*([\w*-]+)=(?:\"((?:[^\"\\]|\\.)*)\"|([^\s;\"]+))")


@dataclass(frozen=True, slots=True)
class Part:
    """One part of a form; `file_name` is None for a plain field."""

    name: str
    file_name: str | None
    content_type: str
    data: bytes = field(repr=False)


def is_form(content_type: bytes) -> bool:
    """Whether a body is declared as a form with files."""
    return content_type.lower().lstrip().startswith(b"multipart/form-data")


def read_form(content_type: bytes, raw: bytes) -> list[Part]:
    """The parts in their order.

    Raises:
        RequestError: 400, it is not a whole form, or has too many parts.
    """
    shape = _TYPE.fullmatch(content_type.strip())
    if shape is None:
        raise _malformed("The form names no boundary.")
    return [_part_of(piece) for piece in _pieces(b"--" + (shape["quoted"] or shape["bare"]), raw)]


def _pieces(delimiter: bytes, raw: bytes) -> Iterator[bytes]:
    """What lies between the delimiters; a form that was cut off has no last one."""
    # Every delimiter but the first follows a line end that belongs to it.
    start = 0 if raw.startswith(delimiter) else raw.find(b"\r\n" + delimiter) + 2
    if start == 1:
        raise _malformed("The form has no parts.")
    start += len(delimiter)
    for _ in range(MAX_PARTS + 1):
        if raw.startswith(b"--", start):
            return
        if not raw.startswith(b"\r\n", start):
            raise _malformed("The form has a broken boundary.")
        end = raw.find(b"\r\n" + delimiter, start + 2)
        if end < 0:
            raise _malformed("The form is cut off.")
        yield raw[start + 2 : end]
        start = end + 2 + len(delimiter)
    raise _malformed(f"The form has more than {MAX_PARTS} parts.")


def _part_of(piece: bytes) -> Part:
    head, gap, data = piece.partition(b"\r\n\r\n")
    if not gap or len(head) > MAX_HEAD_BYTES:
        raise _malformed("A part of the form has no head.")
    headers: dict[str, str] = {}
    for line in head.decode("utf-8", "replace").split("\r\n"):
        name, _, value = line.partition(":")
        headers[name.strip().lower()] = value.strip()
    shape = _DISPOSITION.fullmatch(headers.get("content-disposition", ""))
    if shape is None:
        raise _malformed("A part of the form has no name.")
    given = {
        key.lower(): re.sub(r"\\(.)", r"\1", quoted) if quoted else bare
        for key, quoted, bare in _PARAMETER.findall(shape[1])
    }
    if "name" not in given:
        raise _malformed("A part of the form has no name.")
    return Part(given["name"], given.get("filename"), headers.get("content-type", ""), data)


def _malformed(detail: str) -> RequestError:
    return RequestError(400, "invalid-form", detail)
