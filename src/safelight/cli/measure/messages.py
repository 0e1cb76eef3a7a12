"""Ready-made HTTP messages, so that making them costs the generator next to nothing."""

from __future__ import annotations

import itertools
import json
import secrets
from collections.abc import Iterator
from urllib.parse import urlsplit

from safelight.cli.measure.instance import Instance

MODEL = "lab-callback"


def noop_messages(instance: Instance) -> Iterator[bytes]:
    """The no-op: a route that touches neither database nor key."""
    message = f"GET /healthz HTTP/1.1\r\nHost: {urlsplit(instance.url).netloc}\r\n\r\n".encode()
    return itertools.repeat(message)


def submit_messages(instance: Instance, size: str) -> Iterator[bytes]:
    """Submits without end, each with an idempotency key of its own."""
    body = json.dumps(
        {"model": MODEL, "operation": "generate", "prompt": "a red shoe on white", "size": size}
    ).encode()
    lines = (
        "POST /v1/tasks HTTP/1.1",
        f"Host: {urlsplit(instance.url).netloc}",
        f"Authorization: Bearer {instance.key}",
        "Content-Type: application/json",
        f"Content-Length: {len(body)}",
        f"Idempotency-Key: bench-{secrets.token_hex(8)}-",
    )
    head = "\r\n".join(lines).encode()
    tail = b"\r\n\r\n" + body
    for number in itertools.count():
        yield head + b"%08d" % number + tail
