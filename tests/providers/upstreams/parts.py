"""Reads a multipart body as the upstream received it."""

from __future__ import annotations

from email.parser import BytesParser
from email.policy import HTTP

from tests.providers.upstream import Asked

Part = tuple[str, str | tuple[str, bytes]]
"""A name with its text, or with the type and the bytes of a file."""


def parts_of(asked: Asked) -> list[Part]:
    """The parts in their order."""
    head = f"Content-Type: {asked.headers['content-type']}\r\n\r\n".encode()
    message = BytesParser(policy=HTTP).parsebytes(head + asked.raw)
    assert message.get_content_type() == "multipart/form-data"
    parts: list[Part] = []
    for part in message.iter_parts():
        name = part.get_param("name", header="content-disposition")
        data = part.get_payload(decode=True)
        assert isinstance(name, str)
        assert isinstance(data, bytes)
        parts.append((name, (part.get_content_type(), data) if part.get_filename() else data.decode()))
    return parts
