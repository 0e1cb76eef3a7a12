"""The audit log's chain: who did what to what, and a hash that covers each line and all before it."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

NO_HASH = bytes(32)
"""What the first line is chained to."""
DONE = "done"
REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Actor:
    """Who does something: `admin:<key>` over HTTP, `os:<user>` on the command line; from where, in which request."""

    name: str
    address: str = ""
    request_id: str = ""


@dataclass(frozen=True, slots=True)
class AuditLine:
    """One line of the audit log. `object` is a kind and an id, as `task:0199…`; `detail` is JSON as it is kept."""

    id: int
    actor: str
    address: str
    request_id: str
    action: str
    object: str
    account_id: UUID | None
    outcome: str
    detail: str
    created_at: datetime

    def hash_after(self, previous: bytes) -> bytes:
        """SHA-256 over the hash before and this line, each field in its place: 32 bytes."""
        fields = [
            self.id,
            self.actor,
            self.address,
            self.request_id,
            self.action,
            self.object,
            str(self.account_id) if self.account_id else None,
            self.outcome,
            self.detail,
            self.created_at.isoformat(timespec="microseconds"),
        ]
        canonical = json.dumps(fields, ensure_ascii=False, separators=(",", ":"))
        return hashlib.sha256(previous + canonical.encode("utf-8", "surrogatepass")).digest()
