"""Forms: multipart bodies taken apart."""

from __future__ import annotations

import re
from dataclasses import dataclass

from safelight.lab.speech.fields import Fault

_BOUNDARY = re.compile(r'boundary="?([^";,\s]+)"?', re.IGNORECASE)
_NAME = re.compile(rb'[;\s]name="([^"]*)"')
_FILE_NAME = re.compile(rb'filename="([^"]*)"')
_TYPE = re.compile(rb"^content-type:\s*([^\s;]+)", re.IGNORECASE | re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Part:
    """One part of a form; `file_name` is None for a plain field."""

    name: str
    data: bytes
    file_name: str | None
    content_type: str

    @property
    def text(self) -> str:
        """A plain field's value."""
        return self.data.decode("utf-8", "replace")


def read_form(body: bytes, content_type: str) -> list[Part]:
    """The parts of a multipart/form-data body, in order."""
    boundary = _BOUNDARY.search(content_type)
    if not content_type.lower().startswith("multipart/form-data") or boundary is None:
        raise Fault("header", ("content-type",), "must be multipart/form-data")
    pieces = (b"\r\n" + body).split(b"\r\n--" + boundary[1].encode())
    if len(pieces) < 2 or not pieces[-1].startswith(b"--"):
        raise Fault("body", (), "the form does not end")
    return [_read_part(piece) for piece in pieces[1:-1]]


def _read_part(piece: bytes) -> Part:
    head, gap, data = piece.removeprefix(b"\r\n").partition(b"\r\n\r\n")
    name = _NAME.search(head)
    if not gap or name is None:
        raise Fault("body", (), "a part of the form has no name")
    file_name, kind = _FILE_NAME.search(head), _TYPE.search(head)
    return Part(
        name=name[1].decode("utf-8", "replace"),
        data=data,
        file_name=None if file_name is None else file_name[1].decode("utf-8", "replace"),
        content_type="" if kind is None else kind[1].decode("ascii", "replace"),
    )
