"""Bodies that the operator's door takes, and the shapes of its answers for the OpenAPI document."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from safelight.api.checked import CheckedBody

Text = Annotated[str, StringConstraints(max_length=2_000, pattern=r"^[^\x00]*$")]
Name = Annotated[str, StringConstraints(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f]*$")]


class DecisionBody(CheckedBody):
    """A decision about a task in review, as it stood at `version`."""

    decision: Literal["check_again", "resubmit", "attach_result", "fail_and_release", "accept_as_done"]
    version: int = Field(ge=1, le=2**31 - 1, description="The task's, as you saw it: the fence.")
    reason_code: str = Field(
        "",
        max_length=50,
        description="resubmit: proved_absent, provider_confirmed or risk_accepted. "
        "fail_and_release: no_result or operator_decision.",
    )
    note: Text = Field("", description="Why; resubmit needs 10 characters.")
    urls: list[str] = Field([], max_length=1_000, description="attach_result: https or data URLs, in order.")


class ResolveBody(CheckedBody):
    """What came of a finding."""

    note: Text = Field(min_length=1)


class AccountBody(CheckedBody):
    """A new account."""

    name: Name


class GrantBody(CheckedBody):
    """Credits to add, or with a minus to take back."""

    amount: int = Field(ge=-(10**15), le=10**15, description="Not 0.")
    reason: Text = Field(min_length=1, description="It stays with the entry.")


class KeyBody(CheckedBody):
    """A new key; the name is for people."""

    name: Annotated[str, StringConstraints(max_length=200, pattern=r"^[^\x00-\x1f]*$")] = ""


class ViewingBody(CheckedBody):
    """A viewing needs nothing: who asks is known, and so is the task."""


class DecisionMade(BaseModel):
    """The record of a decision; `state` is where it left the task."""

    id: str
    task_id: UUID
    decision: str
    reason_code: str
    version: int
    state: str
    decided_by: str
    decided_at: datetime


class AdminPage(BaseModel):
    """A page of rows in our inner words."""

    data: list[dict[str, Any]]
    next_cursor: str | None


class WholeTask(BaseModel):
    """A task with its attempts, events, notices, entries, assets, inputs, decisions, findings and losses."""

    model_config = ConfigDict(extra="allow")

    id: UUID
    account_id: UUID
    state: str
    version: int
    attempts: list[dict[str, Any]]
    events: list[dict[str, Any]]
    notices: list[dict[str, Any]]
    entries: list[dict[str, Any]]
    assets: list[dict[str, Any]]
    inputs: list[dict[str, Any]]
    decisions: list[dict[str, Any]]
    findings: list[dict[str, Any]]
    losses: list[dict[str, Any]]


class Viewing(BaseModel):
    """Opens these pictures of a task, until it expires, to whoever began it; the id is that of its audit line."""

    id: str
    task_id: UUID
    pictures: list[UUID]
    expires_at: datetime


class AdminFigures(BaseModel):
    """Counts and quantiles of the tasks that were accepted in the last hours; `open` and `providers` are of now."""

    hours: int
    since: datetime
    open: dict[str, int]
    states: dict[str, int]
    endings: list[dict[str, Any]]
    waits: list[dict[str, Any]]
    runs: list[dict[str, Any]]
    providers: list[dict[str, Any]]


class FindingResolved(BaseModel):
    """Who resolved it."""

    id: str
    resolved_by: str


class OneAccount(BaseModel):
    """An account with its balance; endpoints that were deleted and keys that were revoked do not count."""

    id: UUID
    name: str
    available: int
    held: int
    open_tasks: int
    created_at: datetime
    endpoints_enabled: int
    endpoints_disabled: int
    keys_active: int


class AccountMade(BaseModel):
    """The new account."""

    id: UUID
    name: str


class Granted(BaseModel):
    """What was added, and what is available now."""

    account_id: UUID
    amount: int
    available: int


class KeyMade(BaseModel):
    """The key, which is shown this once."""

    key: str


ADMIN_SHAPES: tuple[type[BaseModel], ...] = (
    DecisionBody, ResolveBody, AccountBody, GrantBody, KeyBody, ViewingBody,
    DecisionMade, AdminPage, WholeTask, Viewing, AdminFigures, FindingResolved, OneAccount,
    AccountMade, Granted, KeyMade,
)  # fmt: skip
