"""Webhooks on the receiver's side: prove that a call is the service's, and read the event in it."""

from __future__ import annotations

import base64
import binascii
import hmac
import json
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from safelight.client.errors import ClientError

TOLERANCE_S = 300
"""How far the time of a call may be from ours, on either side: an older one may be played again."""
_MAX_SIGNATURES = 32


class WebhookRejected(ClientError):
    """The call is not the service's, or is too old: answer 400 and do nothing else."""


@dataclass(frozen=True, slots=True)
class WebhookEvent:
    """What happened. `id` is the same however often it comes: remember it, and act once.

    `type` is such as `task.ready`; `data` has `task_id`, `status`, `version`, `failure`, `assets` and `credits`. Ignore
    types that you do not know.
    """

    id: str
    type: str
    timestamp: datetime
    data: Mapping[str, Any]
    raw: Mapping[str, Any] = field(repr=False, compare=False)

    @property
    def task_id(self) -> str | None:
        """The task that this is about, if it is about one."""
        return self.data.get("task_id")


def verify_webhook(
    headers: Mapping[str, str],
    body: bytes,
    secrets: str | Iterable[str],
    *,
    now: float | None = None,
    tolerance_s: int = TOLERANCE_S,
) -> WebhookEvent:
    """Verify a call and return its event.

    `body` are the raw bytes as they arrived: JSON that was parsed and written again is another text. `secrets` is one
    secret, or all those that may be in force while one is rotated. `headers` may have names in any case.

        event = verify_webhook(request.headers, await request.body(), os.environ["SAFELIGHT_WEBHOOK_SECRET"])

    Raises:
        WebhookRejected: no secret proves it, its time is more than `tolerance_s` seconds off, or it cannot be read.
    """
    if not isinstance(body, bytes | bytearray | memoryview):
        raise TypeError("body must be the raw bytes of the request")
    keys = [_key_of(secret) for secret in ([secrets] if isinstance(secrets, str) else secrets)]
    if not keys:
        raise ValueError("there is no secret to verify with")
    given = {str(name).lower(): value for name, value in headers.items()}
    event_id, stamp, signatures = (
        given.get(f"webhook-{name}", "") for name in ("id", "timestamp", "signature")
    )
    if not event_id or not signatures or not (stamp.isascii() and stamp.isdigit() and len(stamp) < 12):
        raise WebhookRejected("a header of Standard Webhooks is missing or malformed")
    if abs((time.time() if now is None else now) - int(stamp)) > tolerance_s:
        raise WebhookRejected("the call is too old, or from the future")
    signed = f"{event_id}.{stamp}.".encode() + bytes(body)
    if not _is_proved(signed, signatures, keys):
        raise WebhookRejected("no signature matches")
    return _read(event_id, bytes(body))


def _is_proved(signed: bytes, signatures: str, keys: Iterable[bytes]) -> bool:
    expected = [base64.b64encode(hmac.digest(key, signed, "sha256")) for key in keys]
    offered = [
        word.removeprefix("v1,").encode("utf-8", "replace")
        for word in signatures.split(" ")[:_MAX_SIGNATURES]
        if word.startswith("v1,")
    ]
    return any(hmac.compare_digest(one, right) for one in offered for right in expected)


def _key_of(secret: str) -> bytes:
    try:
        key = base64.b64decode(secret.strip().removeprefix("whsec_"), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if len(key) < 16:
        # An empty secret would let everybody sign.
        raise ValueError("a secret is whsec_ and base64, as it was shown when it was made")
    return key


def _read(event_id: str, body: bytes) -> WebhookEvent:
    try:
        raw = json.loads(body)
        moment = datetime.fromisoformat(raw["timestamp"])
        return WebhookEvent(event_id, str(raw["type"]), moment, dict(raw["data"]), raw)
    except (ValueError, KeyError, TypeError):
        raise WebhookRejected("the body is no event") from None
