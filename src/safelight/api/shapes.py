"""Shapes of bodies and answers for the OpenAPI document; nothing is built from them at run time."""

from __future__ import annotations

from datetime import date, datetime
from typing import Any, Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field


class TaskBody(BaseModel):
    """What `POST /v1/tasks` takes."""

    model_config = ConfigDict(extra="forbid")

    model: str = Field("", description="A name from GET /v1/models; the default model if left out.")
    operation: Literal["generate", "edit"] = "generate"
    prompt: str = Field(
        min_length=1, description="What to draw; its length is counted in Unicode code points."
    )
    n: int = Field(1, ge=1, description="How many pictures.")
    size: str = Field("", description="Such as 1024x1024; not together with aspect_ratio.")
    aspect_ratio: str = Field("", description="Such as 16:9; not together with size.")
    images: list[str] = Field([], description="Inputs of an edit: upload ids, https or data URLs.")
    mask: str = Field(
        "", description="In the same forms: white or transparent where the first image may change."
    )
    options: dict[str, Any] = Field({}, description="What only this model knows; 16 kB at most.")
    metadata: dict[str, Any] = Field({}, description="Yours, given back as it is; 16 kB at most.")
    priority: int = Field(0, ge=-10, le=10, description="Among your own tasks.")


class Credits(BaseModel):
    """Credits of one task: held while it is open, then captured and released."""

    held: int
    captured: int
    released: int


class Upload(BaseModel):
    """A picture that was handed in; it is kept for a day after its last use."""

    id: UUID
    content_type: str
    width: int
    height: int
    bytes: int
    sha256: str
    created_at: datetime
    expires_at: datetime


class Receipt(BaseModel):
    """The answer to a submit, the same bytes again for the same key."""

    id: UUID
    status: Literal["processing"]
    credits: Credits
    created_at: datetime


class Progress(BaseModel):
    """Hints for a progress bar, not a state to build on."""

    stage: Literal["waiting", "drawing", "saving", "done"]
    percent: int | None = None
    position: int | None = None


class Asset(BaseModel):
    """A stored picture; both addresses are signed and expire."""

    id: UUID
    url: str
    thumbnail_url: str
    content_type: str
    width: int
    height: int
    bytes: int
    sha256: str


class TaskFailure(BaseModel):
    """Why a task failed."""

    failure_class: Literal[
        "invalid_request", "content_blocked", "upstream_fault", "environment", "canceled"
    ] = Field(alias="class")
    code: str
    message: str
    retryable: bool


class StageBegan(BaseModel):
    """When a stage began."""

    stage: str
    at: datetime


class Task(BaseModel):
    """A task; `ready` and `failed` are final."""

    id: UUID
    status: Literal["processing", "ready", "failed"]
    model: str
    operation: Literal["generate", "edit"]
    prompt: str
    n: int
    progress: Progress
    assets: list[Asset]
    failure: TaskFailure | None
    credits: Credits
    metadata: dict[str, Any]
    created_at: datetime
    finished_at: datetime | None
    erased_at: datetime | None = Field(None, description="When what the task said and drew was erased.")
    timeline: list[StageBegan] = Field([], description="Only with include=timeline.")


class TaskList(BaseModel):
    """A page of tasks, newest first."""

    data: list[Task]
    next_cursor: str | None


class Model(BaseModel):
    """What may be asked for, and at what price."""

    name: str
    operations: list[str]
    price: int
    max_n: int
    sizes: list[str]
    aspect_ratios: list[str]
    max_prompt_chars: int
    max_images: int
    takes_mask: bool
    options: list[str] | None = Field(description="Names that `options` may have; null: any.")
    is_default: bool
    retires_on: date | None = Field(description="From this day (UTC) on it is not offered any more.")
    id: str = Field(description="The name again, like the next three for clients of OpenAI's API.")
    object: Literal["model"]
    created: Literal[0]
    owned_by: Literal["safelight"]


class ModelList(BaseModel):
    """Every model; there is one page."""

    object: Literal["list"]
    data: list[Model]
    next_cursor: None


class Balance(BaseModel):
    """Credits of an account."""

    available: int
    held: int


class Entry(BaseModel):
    """One line of the ledger."""

    id: str
    kind: Literal["grant", "hold", "settle", "adjust"]
    task_id: UUID | None
    available_delta: int
    held_delta: int
    created_at: datetime


class EntryList(BaseModel):
    """A page of entries, newest first."""

    data: list[Entry]
    next_cursor: str | None


class BatchCounts(BaseModel):
    """What became of a batch's items; `waiting` have not begun."""

    refused: int
    waiting: int
    at_work: int
    ready: int
    failed: int


class Batch(BaseModel):
    """A batch of tasks, of which `at_once` are at work at once."""

    id: UUID
    name: str
    status: Literal["processing", "finished"]
    at_once: int
    items: int
    counts: BatchCounts
    credits: Credits
    created_at: datetime
    canceled_at: datetime | None
    finished_at: datetime | None


class BatchList(BaseModel):
    """A page of batches, newest first."""

    data: list[Batch]
    next_cursor: str | None


class BatchReceipt(BaseModel):
    """The answer to a batch, the same again for the same key."""

    id: UUID
    status: Literal["processing"]
    items: int
    refused: int
    credits: Credits
    created_at: datetime


class EventTicket(BaseModel):
    """Opens one stream of live events, as `?ticket=`."""

    ticket: str
    expires_at: datetime


class SessionBody(BaseModel):
    """What opens a session besides a key in the header."""

    model_config = ConfigDict(extra="forbid")

    ticket: str = Field("", description="Of a one-time link.")


class Session(BaseModel):
    """Who is signed in."""

    id: str = Field(description="Of the account; at the operators' door, of the admin key.")
    name: str
    csrf_token: str = Field(description="Every change in this session sends it as X-CSRF-Token.")
    expires_at: datetime


class FieldFault(BaseModel):
    """What is wrong with one field."""

    field: str
    message: str


class Problem(BaseModel):
    """An error (RFC 9457)."""

    type: str
    title: str
    status: int
    detail: str
    code: str
    request_id: str
    errors: list[FieldFault] = Field([], description="Only with status 422.")


SHAPES: tuple[type[BaseModel], ...] = (
    TaskBody, Upload, Receipt, Task, TaskList, ModelList, Balance, EntryList, EventTicket, Batch, BatchList,
    BatchReceipt, SessionBody, Session, Problem,
)  # fmt: skip
