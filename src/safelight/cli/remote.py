"""Speak to a running service: find its address and key, and put its refusals into words."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from safelight.cli.output import clean
from safelight.cli.running import USAGE, fail, run

if TYPE_CHECKING:
    from safelight.client import ApiError, AsyncClient, ClientError

T = TypeVar("T")

KEY_VARIABLE = "SAFELIGHT_API_KEY"
USUAL_URL = "http://127.0.0.1:8000"


def ask(
    work: Callable[[AsyncClient], Awaitable[T]],
    *,
    data_dir: Path | None,
    url: str | None,
    advise: Callable[[ClientError], str] = lambda _: "",
) -> T:
    """Do `work` with a client; what goes wrong ends the command with a line, and one of `advise`."""
    from safelight.client import ApiError, AsyncClient, ClientError, ServiceUnreachable

    folder = data_dir or _usual_data_dir()
    key = os.environ.get(KEY_VARIABLE) or _read(folder / "key")
    if not key:
        fail(
            f"no API key: `safelight serve` makes one in its data directory, and {folder} has none."
            f" Start it there, name another --data-dir, or set {KEY_VARIABLE}",
            code=USAGE,
        )
    base_url = url or _read(folder / "url")
    guess = "" if base_url else f"no `safelight serve` runs on {folder}; asked was {USUAL_URL}"

    async def connected() -> T:
        async with AsyncClient(base_url or USUAL_URL, key) as client:
            return await work(client)

    try:
        return run(connected())
    except ApiError as error:
        # Somebody else's service may answer there, and does not know the key.
        hint = guess if error.status == HTTPStatus.UNAUTHORIZED else ""
        fail(_words(error) + _next_line(hint) + _next_line(advise(error)))
    except ServiceUnreachable as error:
        fail(f"{error}. Does `safelight serve` run?" + _next_line(advise(error)))
    except ClientError as error:
        fail(f"{error}" + _next_line(advise(error)))


def _usual_data_dir() -> Path:
    from safelight.settings import default_data_dir

    return default_data_dir()


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8").strip()
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        fail(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}", code=USAGE)


def _words(error: ApiError) -> str:
    request = f" (request {error.request_id})" if error.request_id else ""
    wait = f" Try again in {error.retry_after_s:.0f} s." if error.retry_after_s else ""
    return clean(f"{error.code}: {error.detail}{wait}{request}")


def _next_line(advice: str) -> str:
    return f"\nsafelight: {advice}" if advice else ""
