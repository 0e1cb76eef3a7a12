"""What can go wrong for a client: the service said no, could not be reached, or sent damaged bytes."""

from __future__ import annotations


class ClientError(Exception):
    """Anything that a client reports."""


class ServiceUnreachable(ClientError):
    """No answer came, after every try. Whether the last request was carried out is not known."""


class FileUnreadable(ClientError):
    """A picture of the caller's own cannot be read; no task was submitted."""


class DownloadError(ClientError):
    """The bytes of an asset are not those that its hash names."""


class ApiError(ClientError):
    """The service refused a request.

    `status` is the HTTP status, `code` the stable word of the problem document, `detail` one sentence for
    people, `request_id` what the operator can look for, `retry_after_s` the wait that the service asked for.
    """

    def __init__(
        self,
        status: int,
        code: str,
        detail: str,
        *,
        request_id: str | None = None,
        retry_after_s: float | None = None,
    ) -> None:
        super().__init__(f"{status} {code}: {detail}")
        self.status = status
        self.code = code
        self.detail = detail
        self.request_id = request_id
        self.retry_after_s = retry_after_s
