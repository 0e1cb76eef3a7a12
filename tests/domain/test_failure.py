"""The four classes of failure and what each does."""

from __future__ import annotations

import pytest

from safelight.domain.failure import MAX_ATTEMPTS, MAX_SENDS, TREATMENTS, Failure, FailureClass


def test_a_task_has_three_attempts_of_five_sends() -> None:
    assert (MAX_ATTEMPTS, MAX_SENDS) == (3, 5)


@pytest.mark.parametrize(
    ("failure_class", "is_retried", "is_alerted", "opens_breaker", "may_customer_retry"),
    [
        ("invalid_request", False, False, False, False),
        ("content_blocked", False, False, False, False),
        ("upstream_fault", True, False, False, True),
        ("environment", True, True, True, True),
        ("canceled", False, False, False, False),
    ],
)
def test_each_class_has_its_treatment(
    failure_class: str, is_retried: bool, is_alerted: bool, opens_breaker: bool, may_customer_retry: bool
) -> None:
    treatment = TREATMENTS[FailureClass(failure_class)]
    assert (treatment.is_retried, treatment.is_alerted, treatment.opens_breaker) == (
        is_retried,
        is_alerted,
        opens_breaker,
    )
    failure = Failure(FailureClass(failure_class), "some_code")
    assert failure.is_retryable_by_customer is may_customer_retry
    assert failure.message == treatment.message


def test_every_class_has_a_message_of_its_own() -> None:
    assert set(TREATMENTS) == set(FailureClass)
    assert len({treatment.message for treatment in TREATMENTS.values()}) == len(FailureClass)
