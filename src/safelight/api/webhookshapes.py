"""Bodies and answers of the webhook routes."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import BaseModel, Field, StringConstraints

from safelight.api.checked import CheckedBody
from safelight.domain.webhook import MAX_OVERLAP_S, OVERLAP_S

Url = Annotated[str, StringConstraints(min_length=1, max_length=2_048, pattern=r"^[^\x00-\x20]*$")]
Words = Annotated[str, StringConstraints(max_length=500, pattern=r"^[^\x00]*$")]
EventType = Literal["task.ready", "task.failed", "credits.low", "endpoint.disabled"]
Events = Annotated[list[EventType], Field(max_length=4)]
_WHICH = "Only these events; an empty list means all."


class EndpointBody(CheckedBody):
    """A new endpoint."""

    url: Url = Field(description="With TLS, on port 443 of a public address.")
    description: Words = ""
    events: Events = Field([], description=_WHICH)


class EndpointChangeBody(CheckedBody):
    """What is to change; what is left out stays."""

    url: Url | None = None
    description: Words | None = None
    events: Events | None = Field(None, description=_WHICH)


class RotateBody(CheckedBody):
    """How long the old secrets sign as well; 0 revokes them now."""

    overlap_s: int = Field(int(OVERLAP_S), ge=0, le=int(MAX_OVERLAP_S))


class RecoverBody(CheckedBody):
    """From when on failed deliveries are sent again."""

    since: str = Field(max_length=40, description="A time with its zone (RFC 3339).")


class ThresholdBody(CheckedBody):
    """Below which balance `credits.low` is sent; null for never."""

    threshold: int | None = Field(ge=1, le=10**15)


class Threshold(BaseModel):
    """Below which balance `credits.low` is sent."""

    threshold: int | None


class SecretTimes(BaseModel):
    """A secret in force; without an end until it is rotated."""

    created_at: datetime
    expires_at: datetime | None


class WebhookEndpoint(BaseModel):
    """An endpoint and how it has gone lately."""

    id: UUID
    url: str
    description: str
    events: list[EventType]
    status: Literal["enabled", "disabled"]
    disabled_reason: Literal["gone", "failing"] | None
    disabled_at: datetime | None
    failures_in_a_row: int
    failing_since: datetime | None
    last_success_at: datetime | None
    pending: int
    secrets: list[SecretTimes]
    created_at: datetime


class NewWebhookEndpoint(WebhookEndpoint):
    """The same with its secret, which is shown this once."""

    secret: str


class WebhookEndpointList(BaseModel):
    """Every endpoint of the account; there is one page."""

    data: list[WebhookEndpoint]
    next_cursor: None


class WebhookTry(BaseModel):
    """One try: what was sent, and what came back, redacted and capped."""

    number: int
    url: str
    headers: dict[str, str]
    status: int | None
    reason: str
    detail: str
    answer: str
    started_at: datetime
    ended_at: datetime


class Delivery(BaseModel):
    """One event on its way to one endpoint."""

    id: str
    event_id: str = Field(description="The `webhook-id` of every try.")
    type: str
    task_id: UUID | None
    status: Literal["pending", "delivered", "failed", "canceled"]
    reason: str
    next_try_at: datetime | None
    created_at: datetime
    ended_at: datetime | None
    body: dict[str, Any]
    tries: list[WebhookTry]


class DeliveryList(BaseModel):
    """A page of deliveries, newest first."""

    data: list[Delivery]
    next_cursor: str | None


class Recovered(BaseModel):
    """How many deliveries begin anew; more may be left after 10,000."""

    recovered: int


WEBHOOK_SHAPES: tuple[type[BaseModel], ...] = (
    EndpointBody, EndpointChangeBody, RotateBody, RecoverBody, ThresholdBody, Threshold, WebhookEndpoint,
    NewWebhookEndpoint, WebhookEndpointList, Delivery, DeliveryList, Recovered,
)  # fmt: skip
