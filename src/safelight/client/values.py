"""What the API answers, as values; fields that a newer service adds are kept in `raw` alone."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Generic, TypeVar

from safelight.client.errors import ApiError

T = TypeVar("T")

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,127}")


def checked_id(identifier: str) -> str:
    """An id that cannot leave its place in the path; none of ours looks otherwise."""
    if not _ID.fullmatch(identifier):
        raise ApiError(404, "not-found", f"{identifier!r} is not an id.")
    return identifier


@dataclass(frozen=True, slots=True)
class Credits:
    """What a task holds, has cost and gave back."""

    held: int
    captured: int
    released: int

    @classmethod
    def of(cls, body: Mapping[str, Any]) -> Credits:
        return cls(body["held"], body["captured"], body["released"])


@dataclass(frozen=True, slots=True)
class Balance:
    """What an account may spend, and what its open tasks hold."""

    available: int
    held: int


@dataclass(frozen=True, slots=True)
class Progress:
    """A hint: the stage (`waiting`, `drawing`, `saving`, `done`), percent, place in the upstream's line."""

    stage: str
    percent: int | None = None
    position: int | None = None


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a task failed; `code` is stable, `message` is for people."""

    failure_class: str
    code: str
    message: str
    is_retryable: bool


@dataclass(frozen=True, slots=True)
class Asset:
    """A picture in the service's own storage; `sha256` is in hex, the URLs expire."""

    id: str
    url: str
    thumbnail_url: str | None
    content_type: str
    width: int
    height: int
    bytes: int
    sha256: str

    @classmethod
    def of(cls, body: Mapping[str, Any]) -> Asset:
        return cls(
            id=body["id"],
            url=body["url"],
            thumbnail_url=body.get("thumbnail_url"),
            content_type=body["content_type"],
            width=body["width"],
            height=body["height"],
            bytes=body["bytes"],
            sha256=body["sha256"],
        )


@dataclass(frozen=True, slots=True)
class Upload:
    """A picture that the service keeps for edits until `expires_at`, and longer if it is used."""

    id: str
    content_type: str
    width: int
    height: int
    bytes: int
    sha256: str
    expires_at: datetime

    @classmethod
    def of(cls, body: Mapping[str, Any]) -> Upload:
        return cls(
            id=body["id"],
            content_type=body["content_type"],
            width=body["width"],
            height=body["height"],
            bytes=body["bytes"],
            sha256=body["sha256"],
            expires_at=datetime.fromisoformat(body["expires_at"]),
        )


@dataclass(frozen=True, slots=True)
class Task:
    """A task as its customer sees it; `raw` is the answer itself."""

    id: str
    status: str
    model: str
    operation: str
    prompt: str
    n: int
    progress: Progress
    assets: tuple[Asset, ...]
    failure: Failure | None
    credits: Credits
    created_at: datetime
    finished_at: datetime | None
    raw: Mapping[str, Any] = field(repr=False, compare=False)

    @property
    def is_finished(self) -> bool:
        """Whether the status is one of the two that never change again."""
        return self.status in ("ready", "failed")

    @classmethod
    def of(cls, body: Mapping[str, Any]) -> Task:
        progress = body.get("progress") or {}
        return cls(
            id=body["id"],
            status=body["status"],
            model=body["model"],
            operation=body["operation"],
            prompt=body["prompt"],
            n=body["n"],
            progress=Progress(progress.get("stage", ""), progress.get("percent"), progress.get("position")),
            assets=tuple(Asset.of(asset) for asset in body["assets"]),
            failure=_failure_of(body["failure"]),
            credits=Credits.of(body["credits"]),
            created_at=datetime.fromisoformat(body["created_at"]),
            finished_at=datetime.fromisoformat(body["finished_at"]) if body["finished_at"] else None,
            raw=body,
        )


@dataclass(frozen=True, slots=True)
class Receipt:
    """The answer to a submit: the task exists from here on. `key` is the idempotency key that was sent."""

    id: str
    status: str
    credits: Credits
    created_at: datetime
    key: str
    is_replayed: bool
    raw: Mapping[str, Any] = field(repr=False, compare=False)

    @classmethod
    def of(cls, body: Mapping[str, Any], *, key: str, is_replayed: bool) -> Receipt:
        return cls(
            id=body["id"],
            status=body["status"],
            credits=Credits.of(body["credits"]),
            created_at=datetime.fromisoformat(body["created_at"]),
            key=key,
            is_replayed=is_replayed,
            raw=body,
        )


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """A part of a list; `next_cursor` asks for the part after it and is None at the end."""

    data: tuple[T, ...]
    next_cursor: str | None


def _failure_of(body: Mapping[str, Any] | None) -> Failure | None:
    if body is None:
        return None
    return Failure(body["class"], body["code"], body["message"], bool(body["retryable"]))
