"""The Python client: creates tasks, waits for them, saves their pictures; it knows the HTTP API alone."""

from safelight.client.errors import (
    ApiError,
    ClientError,
    DownloadError,
    FileUnreadable,
    ServiceUnreachable,
)
from safelight.client.tasks import AsyncClient, TaskFields
from safelight.client.threads import Client
from safelight.client.values import (
    Asset,
    Balance,
    Batch,
    BatchItem,
    BatchReceipt,
    Credits,
    Event,
    Failure,
    Page,
    Progress,
    Receipt,
    Task,
    Upload,
)
from safelight.client.webhooks import WebhookEvent, WebhookRejected, verify_webhook

__all__ = [
    "ApiError",
    "Asset",
    "AsyncClient",
    "Balance",
    "Batch",
    "BatchItem",
    "BatchReceipt",
    "Client",
    "ClientError",
    "Credits",
    "DownloadError",
    "Event",
    "Failure",
    "FileUnreadable",
    "Page",
    "Progress",
    "Receipt",
    "ServiceUnreachable",
    "Task",
    "TaskFields",
    "Upload",
    "WebhookEvent",
    "WebhookRejected",
    "verify_webhook",
]
