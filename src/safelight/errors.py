"""The error tree: every error that safelight raises on purpose, with its stable code."""

from __future__ import annotations

from typing import ClassVar


class ConfigurationError(Exception):
    """The installation is set up wrongly; nothing that tolerates trouble may swallow it.

    Deliberately not a `SafelightError`: retry loops and batch fall-backs catch that one.
    """


class SafelightError(Exception):
    """Anything that went wrong while safelight did its work."""

    code: ClassVar[str] = "internal"


class RequestError(SafelightError):
    """The caller asked for something that cannot be done.

    `status` is the HTTP status, `problem_code` the stable code of the problem document, `detail` one
    sentence for the caller. `retry_after_s` (seconds) is set where asking again later makes sense.
    """

    code = "request"

    def __init__(
        self, status: int, problem_code: str, detail: str, *, retry_after_s: int | None = None
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.problem_code = problem_code
        self.detail = detail
        self.retry_after_s = retry_after_s


class ProviderError(SafelightError):
    """A call to a provider failed.

    `excerpt` is a short, redacted piece of what it said; `retry_after_s` is its own wish in seconds.
    """

    code = "provider"

    def __init__(
        self, detail: str, *, provider: str = "", excerpt: str = "", retry_after_s: float | None = None
    ) -> None:
        super().__init__(detail)
        self.provider = provider
        self.excerpt = excerpt
        self.retry_after_s = retry_after_s


class ProviderRefused(ProviderError):
    """A definite no in the provider's own words: this attempt is over and was not accepted, or has failed.

    `failure_class` is one of the four class words of `domain.failure`; `failure_code` is our stable code.
    """

    code = "provider_refused"

    def __init__(
        self,
        detail: str,
        *,
        failure_class: str,
        failure_code: str,
        provider: str = "",
        excerpt: str = "",
        retry_after_s: float | None = None,
    ) -> None:
        super().__init__(detail, provider=provider, excerpt=excerpt, retry_after_s=retry_after_s)
        self.failure_class = failure_class
        self.failure_code = failure_code


class ProviderUnavailable(ProviderError):
    """Certainly not accepted: not sent, or turned away for now. The same attempt may be sent again.

    `reason` says which gate it concerns: `not_sent` (network), `rate_limited` (close the provider's gate
    until `retry_after_s`), `credentials` or `funds` (open the breaker and alert).
    """

    code = "provider_unavailable"

    def __init__(
        self,
        detail: str,
        *,
        reason: str,
        provider: str = "",
        excerpt: str = "",
        retry_after_s: float | None = None,
    ) -> None:
        super().__init__(detail, provider=provider, excerpt=excerpt, retry_after_s=retry_after_s)
        self.reason = reason


class SubmissionUncertain(ProviderError):
    """The provider may have accepted the attempt: never send it again blindly."""

    code = "submission_uncertain"


class CallbackRejected(SafelightError):
    """A callback that is not authentic, or cannot be read. `reason` is for counters, never for the sender."""

    code = "callback_rejected"

    def __init__(self, reason: str, *, status: int = 401) -> None:
        super().__init__(reason)
        self.reason = reason
        self.status = status


class StaleAttempt(SafelightError):
    """The fence was lost: another step moved the task on. Stop quietly."""

    code = "stale_attempt"


class AssetError(SafelightError):
    """Bytes could not be fetched, checked or stored.

    `reason` is a stable word (`expired`, `address_refused`, `truncated`, `not_an_image`, `too_large`,
    `timeout`, `storage`, …); `is_retryable` says whether the same copy may be tried again.
    """

    code = "asset"

    def __init__(self, reason: str, detail: str, *, is_retryable: bool) -> None:
        super().__init__(detail)
        self.reason = reason
        self.is_retryable = is_retryable


class LedgerError(SafelightError):
    """A movement of credits that the ledger refuses."""

    code = "ledger"
