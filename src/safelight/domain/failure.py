"""The four failure classes and what each of them does."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class FailureClass(StrEnum):
    """Why a task could not deliver; `canceled` joins them in the customer's view only."""

    INVALID_REQUEST = "invalid_request"
    CONTENT_BLOCKED = "content_blocked"
    UPSTREAM_FAULT = "upstream_fault"
    ENVIRONMENT = "environment"
    CANCELED = "canceled"


@dataclass(frozen=True, slots=True)
class Treatment:
    """What a class does to a task: whether another attempt may follow, and whether an operator is alerted."""

    is_retried: bool
    is_alerted: bool
    opens_breaker: bool
    message: str


TREATMENTS: dict[FailureClass, Treatment] = {
    FailureClass.INVALID_REQUEST: Treatment(
        is_retried=False,
        is_alerted=False,
        opens_breaker=False,
        message="The model does not accept this input. Change it and submit a new task.",
    ),
    FailureClass.CONTENT_BLOCKED: Treatment(
        is_retried=False,
        is_alerted=False,
        opens_breaker=False,
        message="The content policy blocked this. Change the prompt and submit a new task.",
    ),
    FailureClass.UPSTREAM_FAULT: Treatment(
        is_retried=True,
        is_alerted=False,
        opens_breaker=False,
        message="The picture could not be made this time. No credits were charged; try again.",
    ),
    FailureClass.ENVIRONMENT: Treatment(
        is_retried=True,
        is_alerted=True,
        opens_breaker=True,
        message="The service could not finish this task. No credits were charged; try again later.",
    ),
    FailureClass.CANCELED: Treatment(
        is_retried=False,
        is_alerted=False,
        opens_breaker=False,
        message="The task was canceled.",
    ),
}

MAX_ATTEMPTS = 3
"""References a task may have at one route (design, section 5)."""

MAX_ATTEMPTS_IN_ALL = 6
"""References a task may have over all its routes; one that was only ever turned away for its key does not count."""

MAX_SENDS = 5
"""HTTP tries within one attempt; a try that the provider turned away for its rate does not count."""


@dataclass(frozen=True, slots=True)
class Failure:
    """Why an attempt or a task failed.

    `code` is stable and safe to show; `message` is our own sentence, never the provider's text.
    """

    failure_class: FailureClass
    code: str

    @property
    def message(self) -> str:
        return TREATMENTS[self.failure_class].message

    @property
    def is_retryable_by_customer(self) -> bool:
        """Whether submitting the same thing again may work: true unless the input itself is at fault."""
        return self.failure_class in (FailureClass.UPSTREAM_FAULT, FailureClass.ENVIRONMENT)
