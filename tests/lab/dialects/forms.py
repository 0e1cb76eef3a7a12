"""Forms: multipart bodies as bytes, which can be sent more than once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

BOUNDARY = "0123456789abcdef"
FORM_TYPE = {"Content-Type": f"multipart/form-data; boundary={BOUNDARY}"}


def form(fields: Mapping[str, object], files: Iterable[tuple[str, bytes]] = ()) -> bytes:
    """A form of plain fields and of files."""
    heads = [(f'name="{name}"', str(value).encode()) for name, value in fields.items()]
    heads += [
        (f'name="{name}"; filename="{name}.png"\r\nContent-Type: image/png', data) for name, data in files
    ]
    parts = [
        f"--{BOUNDARY}\r\nContent-Disposition: form-data; {head}\r\n\r\n".encode() + data + b"\r\n"
        for head, data in heads
    ]
    return b"".join([*parts, f"--{BOUNDARY}--\r\n".encode()])
