"""Tells the operator of reviews and findings: one signed call for all that came up, at most one a minute."""

from __future__ import annotations

import base64
import hmac
import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

import structlog

from safelight.assets.fetch import Fetcher
from safelight.assets.reading import FetchLimits
from safelight.assets.urls import parse_target
from safelight.db import alerts
from safelight.db.alerts import AlertRow
from safelight.db.database import Database
from safelight.domain.ids import new_id
from safelight.errors import AssetError
from safelight.settings import Settings
from safelight.telemetry import ALERTS, point

log = structlog.get_logger()

GAP_S = 60.0
ROOM = 1_000
LISTED = 50
"""Named one by one; the rest is counted."""
KEEP_S = 86_400.0
"""What could not be told within a day is not told any more; the log and the metrics had it at once."""
_LIMITS = FetchLimits(total_s=15.0)


class Alerts:
    """Sends what is untold to `alert_url`; without one nothing is kept."""

    def __init__(self, database: Database, settings: Settings) -> None:
        self._database = database
        self._url = settings.alert_url
        secret = settings.alert_secret.get_secret_value() if settings.alert_secret else ""
        self._secret = base64.b64decode(secret.removeprefix("whsec_"))
        # The operator chose the address, so it may be private; no other is reached, and no redirect is followed.
        origins = [str(parse_target(self._url).origin)] if self._url else []
        self._fetcher = Fetcher(origins, limits=_LIMITS)

    async def tell(self) -> None:
        """Tell what is untold, if the last call is a minute ago.

        A call that fails is logged, and its alerts come with those of the next minute.
        """
        async with self._database.transaction() as connection:
            await alerts.drop_alerts(connection, keep_s=KEEP_S if self._url else 0.0)
            found = await alerts.claim_alerts(connection, gap_s=GAP_S, room=ROOM) if self._url else []
        if not found or self._url is None:
            return
        point("before_alert")
        if not await self._send(self._url, found):
            return
        point("after_alert")
        async with self._database.transaction() as connection:
            await alerts.drop_told(connection, [alert.id for alert in found])

    async def aclose(self) -> None:
        """Let go of connections."""
        await self._fetcher.aclose()

    async def _send(self, url: str, found: Sequence[AlertRow]) -> bool:
        body = json.dumps(_document(found), separators=(",", ":")).encode()
        message_id = f"msg_{new_id().hex}"
        headers = self._headers(message_id, int(found[0].told_at.timestamp()), body)
        try:
            status = await self._fetcher.post(url, body, headers)
        except AssetError as error:
            ALERTS.labels(error.reason).inc()
            log.error("alert_failed", reason=error.reason, alerts=len(found))
            return False
        ALERTS.labels(str(status)).inc()
        if not 200 <= status < 300:
            log.error("alert_failed", reason="status", status=status, alerts=len(found))
            return False
        return True

    def _headers(self, message_id: str, timestamp: int, body: bytes) -> dict[str, str]:
        """The headers of Standard Webhooks."""
        signed = f"{message_id}.{timestamp}.".encode() + body
        signature = base64.b64encode(hmac.digest(self._secret, signed, "sha256")).decode()
        return {
            "content-type": "application/json",
            "webhook-id": message_id,
            "webhook-timestamp": str(timestamp),
            "webhook-signature": f"v1,{signature}",
        }


def _document(found: Sequence[AlertRow]) -> dict[str, Any]:
    counts: dict[str, Counter[str]] = {"review": Counter(), "finding": Counter()}
    for alert in found:
        counts[alert.kind][alert.reason] += 1
    return {
        "type": "operator.alert",
        "timestamp": found[0].told_at.isoformat().replace("+00:00", "Z"),
        "data": {
            "counts": {kind: dict(by_reason) for kind, by_reason in counts.items()},
            "alerts": [
                {
                    "kind": alert.kind,
                    "reason": alert.reason,
                    "provider": alert.provider,
                    "task_id": str(alert.task_id) if alert.task_id else None,
                    "at": alert.created_at.isoformat().replace("+00:00", "Z"),
                }
                for alert in found[:LISTED]
            ],
        },
    }
