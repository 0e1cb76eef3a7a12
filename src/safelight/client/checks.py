"""What is looked at on this side of the wire: keys, and whether an answer has its fields."""

from __future__ import annotations

import contextlib
import re
import uuid
from collections.abc import Iterator

from safelight.client.errors import ApiError
from safelight.client.exchange import Answer, unreadable

_KEY = re.compile(r"[\x21-\x7e]{1,255}")


def new_key() -> str:
    """A fresh idempotency key."""
    return str(uuid.uuid4())


def checked_key(key: str) -> str:
    """An idempotency key that the service takes."""
    if not _KEY.fullmatch(key):
        raise ApiError(400, "idempotency-key-invalid", "A key is 1 to 255 printable ASCII characters.")
    return key


@contextlib.contextmanager
def reading(answer: Answer) -> Iterator[None]:
    """An answer whose fields are missing is none of safelight."""
    try:
        yield
    except (KeyError, TypeError, ValueError, AttributeError):
        raise unreadable(answer.status) from None
