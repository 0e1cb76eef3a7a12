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
class Event:
    """A change of a task, told by a stream; `number` is where to go on from.

    `kind` is `task`; a stream of all tasks begins with `start`, and `reset` says that events were lost. These two
    have no task.
    """

    kind: str
    number: int
    task_id: str
    status: str
    version: int
    progress: Progress
    failure: Failure | None
    raw: Mapping[str, Any] = field(repr=False, compare=False)

    @property
    def is_last(self) -> bool:
        """Whether the task has ended with it."""
        return self.status in ("ready", "failed")

    @classmethod
    def of(cls, kind: str, number: int, body: Mapping[str, Any]) -> Event:
        progress = body.get("progress") or {}
        return cls(
            kind=kind,
            number=number,
            task_id=body["id"] if kind == "task" else "",
            status=body.get("status", ""),
            version=body.get("version", 0),
            progress=Progress(progress.get("stage", ""), progress.get("percent"), progress.get("position")),
            failure=_failure_of(body.get("failure")),
            raw=body,
        )


@dataclass(frozen=True, slots=True)
class Batch:
    """A batch of tasks; `waiting` have not begun, `at_work` are `at_once` at most."""

    id: str
    name: str
    status: str
    at_once: int
    items: int
    refused: int
    waiting: int
    at_work: int
    ready: int
    failed: int
    credits: Credits
    created_at: datetime
    finished_at: datetime | None
    raw: Mapping[str, Any] = field(repr=False, compare=False)

    @property
    def is_finished(self) -> bool:
        """Whether every item has ended."""
        return self.status == "finished"

    @property
    def ended(self) -> int:
        """How many items nothing more will become of."""
        return self.refused + self.ready + self.failed

    @classmethod
    def of(cls, body: Mapping[str, Any]) -> Batch:
        counts = body["counts"]
        return cls(
            id=body["id"],
            name=body["name"],
            status=body["status"],
            at_once=body["at_once"],
            items=body["items"],
            refused=counts["refused"],
            waiting=counts["waiting"],
            at_work=counts["at_work"],
            ready=counts["ready"],
            failed=counts["failed"],
            credits=Credits.of(body["credits"]),
            created_at=datetime.fromisoformat(body["created_at"]),
            finished_at=datetime.fromisoformat(body["finished_at"]) if body["finished_at"] else None,
            raw=body,
        )


@dataclass(frozen=True, slots=True)
class BatchItem:
    """One item of a batch, by its place from 0: its task, or why there is none."""

    position: int
    task: Task | None
    refusal: str | None

    @classmethod
    def of(cls, body: Mapping[str, Any]) -> BatchItem:
        refusal = body["refusal"]
        return cls(
            position=body["position"],
            task=Task.of(body["task"]) if body["task"] else None,
            refusal=f"{refusal['code']}: {refusal['detail']}" if refusal else None,
        )


@dataclass(frozen=True, slots=True)
class BatchReceipt:
    """The answer to a batch: it exists from here on. `key` is the idempotency key that was sent."""

    id: str
    items: int
    refused: int
    held: int
    key: str
    is_replayed: bool
    raw: Mapping[str, Any] = field(repr=False, compare=False)

    @classmethod
    def of(cls, body: Mapping[str, Any], *, key: str, is_replayed: bool) -> BatchReceipt:
        return cls(
            body["id"], body["items"], body["refused"], body["credits"]["held"], key, is_replayed, body
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
