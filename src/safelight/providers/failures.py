"""Decides what an answer without success means: may the attempt have been accepted?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from safelight.domain.failure import Failure, FailureClass
from safelight.domain.retryafter import read_retry_after
from safelight.errors import ProviderError, ProviderRefused, ProviderUnavailable, SubmissionUncertain
from safelight.providers.declaration import ErrorOutcome, ErrorRule, Errors, Phase
from safelight.providers.documents import Unreadable, parse_object, parse_text, pick
from safelight.providers.exchange import Answered, NotSent, SentWithoutAnswer
from safelight.providers.redaction import Redactor

MAX_RETRY_AFTER_S = 86_400.0

_REFUSALS: dict[ErrorOutcome, tuple[FailureClass, str]] = {
    "invalid_request": (FailureClass.INVALID_REQUEST, "invalid_request"),
    "content_blocked": (FailureClass.CONTENT_BLOCKED, "content_blocked"),
    "upstream_fault": (FailureClass.UPSTREAM_FAULT, "generation_failed"),
}
_UNAVAILABLE: dict[ErrorOutcome, str] = {
    "rate_limited": "rate_limited",
    "concurrency_limited": "rate_limited",
    "credentials": "credentials",
    "funds": "funds",
}
"""Outcomes that turn a call away, and the gate's reason for each."""
_STATUS_DEFAULTS: dict[int, ErrorOutcome] = {
    400: "invalid_request",
    404: "invalid_request",
    413: "invalid_request",
    415: "invalid_request",
    422: "invalid_request",
    401: "credentials",
    403: "credentials",
    402: "funds",
    429: "rate_limited",
}
_NO_STATUSES = frozenset({400, 404, 405, 409, 410, 422})


@dataclass(frozen=True, slots=True)
class Judgement:
    """What an answer without success means; `ends_task` says that it is the end of the attempt itself."""

    outcome: ErrorOutcome
    code: str | None = None
    ends_task: bool = False

    @property
    def failure(self) -> Failure:
        """The failure of an attempt that has ended so."""
        failure_class, code = _REFUSALS[self.outcome]
        return Failure(failure_class, self.code or code)


class ErrorReader:
    """Reads one provider's error answers by its ordered rules, then by status."""

    def __init__(self, provider: str, errors: Errors, redactor: Redactor) -> None:
        self._provider = provider
        self._errors = errors
        self._redactor = redactor

    def judge(self, phase: Phase, answer: Answered) -> Judgement | None:
        """What the answer means; None for one that neither a rule nor its status speaks about.

        A status counts only with the provider's own JSON beneath it: a gateway's page of the same status
        says nothing about what happened behind the gateway.
        """
        rules = [rule for rule in self._errors.rules if rule.speaks_of(phase, answer.status)]
        default = _STATUS_DEFAULTS.get(answer.status)
        if not rules and default is None:
            return None
        body = self._body_of(answer)
        for rule in rules:
            if self._holds(rule, answer, body):
                return Judgement(rule.outcome, rule.code, rule.ends_task)
        return Judgement(default) if default is not None and self._is_own(body) else None

    def is_definite_no(self, phase: Phase, answer: Answered) -> bool:
        """Whether the upstream itself says that it will not do what a call other than a submit asks for."""
        judged = self.judge(phase, answer)
        if judged is not None and judged.outcome in _UNAVAILABLE:
            return False
        is_no = answer.status in _NO_STATUSES and self._is_own(self._body_of(answer))
        return is_no or (judged is not None and judged.outcome in ("not_found", "invalid_request"))

    def submit_error(self, answer: Answered, *secrets: str | None) -> ProviderError:
        """The error for a submit that was answered without success."""
        judged = self.judge("submit", answer)
        if judged is None or judged.outcome in ("ambiguous", "not_found"):
            return self._uncertain(
                f"the submit was answered {answer.status} without a verdict", answer, *secrets
            )
        if judged.outcome in _UNAVAILABLE:
            return self._unavailable(judged.outcome, answer, *secrets)
        return ProviderRefused(
            f"{self._provider} refused the submit ({answer.status})",
            failure_class=judged.failure.failure_class,
            failure_code=judged.failure.code,
            provider=self._provider,
            excerpt=self.excerpt(answer, *secrets),
            retry_after_s=self.retry_after_s(answer),
        )

    def call_error(self, phase: Phase, answer: Answered) -> ProviderError:
        """The error for any other call: it never says that the attempt has failed."""
        judged = self.judge(phase, answer)
        if judged is not None and judged.outcome in _UNAVAILABLE:
            return self._unavailable(judged.outcome, answer)
        return ProviderError(
            f"{self._provider} answered {phase} with {answer.status}",
            provider=self._provider,
            excerpt=self.excerpt(answer),
            retry_after_s=self.retry_after_s(answer),
        )

    def unreadable_submit(self, reason: str, answer: Answered, *secrets: str | None) -> SubmissionUncertain:
        """The error for a success that cannot be used: the upstream has probably accepted."""
        return self._uncertain(f"the submit's answer is unreadable: {reason}", answer, *secrets)

    def unreadable_call(self, phase: Phase, reason: str, answer: Answered) -> ProviderError:
        """The error for an answer to any other call that cannot be used."""
        detail = f"{self._provider} answered {phase} unreadably: {reason}"
        return ProviderError(detail, provider=self._provider, excerpt=self.excerpt(answer))

    def network_error(self, phase: Phase, outcome: NotSent | SentWithoutAnswer) -> ProviderError:
        """The error for a call without any answer."""
        if isinstance(outcome, NotSent):
            detail = f"{self._provider} could not be reached: {outcome.reason}"
            return ProviderUnavailable(detail, reason="not_sent", provider=self._provider)
        detail = f"{self._provider} gave no answer to {phase}: {outcome.reason}"
        kind = SubmissionUncertain if phase == "submit" else ProviderError
        return kind(detail, provider=self._provider)

    def redacted(self, text: str) -> str:
        """A text of the upstream, fit to be kept."""
        return self._redactor.excerpt(text)

    def excerpt(self, answer: Answered, *secrets: str | None) -> str:
        """The upstream's message, else the beginning of its body, fit to be kept."""
        body = self._body_of(answer)
        message = pick(self._errors.message, body) if body is not None else None
        return self._redactor.excerpt(message if isinstance(message, str) else answer.body, *secrets)

    def retry_after_s(self, answer: Answered) -> float | None:
        """How long the upstream wants to be left alone, if it says so sensibly."""
        errors = self._errors
        if errors.retry_after_ms_header is not None:
            milliseconds = read_wait(answer.headers.get(errors.retry_after_ms_header.lower()))
            if milliseconds is not None:
                return milliseconds / 1000
        seconds = read_wait(answer.headers.get(errors.retry_after_header.lower()))
        if seconds is None and errors.retry_after is not None:
            told = pick(errors.retry_after, self._body_of(answer) or {})
            seconds = read_wait(str(told).strip().removesuffix("s")) if told is not None else None
        return seconds

    def _holds(self, rule: ErrorRule, answer: Answered, body: Mapping[str, Any] | None) -> bool:
        if not rule.compares:
            return True
        if rule.header is not None:
            return rule.fits(answer.headers.get(rule.header.lower()))
        return body is not None and rule.fits(pick(rule.path or self._errors.code, body))

    def _is_own(self, body: Mapping[str, Any] | None) -> bool:
        if body is None:
            return False
        if self._errors.takes_text and "text" in body:
            return True
        paths = [path for path in (self._errors.code, self._errors.message) if path]
        return not paths or any(pick(path, body) is not None for path in paths)

    def _uncertain(self, detail: str, answer: Answered, *secrets: str | None) -> SubmissionUncertain:
        return SubmissionUncertain(
            f"{self._provider}: {detail}",
            provider=self._provider,
            excerpt=self.excerpt(answer, *secrets),
            retry_after_s=self.retry_after_s(answer),
        )

    def _body_of(self, answer: Answered) -> dict[str, Any] | None:
        """The upstream's own words: its JSON, or its plain text where it speaks in that."""
        try:
            return parse_object(answer.body)
        except Unreadable:
            return parse_text(answer.body) if self._errors.takes_text else None

    def _unavailable(
        self, outcome: ErrorOutcome, answer: Answered, *secrets: str | None
    ) -> ProviderUnavailable:
        return ProviderUnavailable(
            f"{self._provider} turned the call away ({answer.status}): {outcome}",
            reason=_UNAVAILABLE[outcome],
            provider=self._provider,
            excerpt=self.excerpt(answer, *secrets),
            retry_after_s=self.retry_after_s(answer),
        )


def read_wait(value: str | None, now: datetime | None = None) -> float | None:
    """Seconds that an upstream asks for, as a number or an HTTP date; None unless within the next day."""
    seconds = read_retry_after(value, now or datetime.now(UTC))
    return seconds if seconds is not None and seconds <= MAX_RETRY_AFTER_S else None
