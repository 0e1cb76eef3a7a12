"""An operator before the door: asks with a key of its own kind."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from safelight.domain.audit import Actor
from safelight.domain.keys import ADMIN_PREFIX, ID_LENGTH
from tests.api.door import Answer, Door

TESTS = Actor("tests")


@dataclass
class Operator:
    """An operator's key, and the door it fits."""

    door: Door
    key: str

    @classmethod
    async def at(cls, door: Door, name: str = "") -> Operator:
        key = await door.parts.administration.create_admin_key(name, TESTS)
        assert key is not None
        return cls(door, key)

    @property
    def id(self) -> str:
        return self.key.removeprefix(ADMIN_PREFIX)[:ID_LENGTH]

    @property
    def name(self) -> str:
        """As the audit log names it."""
        return f"admin:{self.id}"

    async def get(self, path: str) -> Answer:
        return await self.door.ask("GET", path, headers={"Authorization": f"Bearer {self.key}"})

    async def post(self, path: str, body: Any = None, *, key: str | None = None) -> Answer:
        """Change something; `key` is the idempotency key."""
        headers = {"Authorization": f"Bearer {self.key}"}
        if key is not None:
            headers["Idempotency-Key"] = key
        if body is None:
            return await self.door.ask("POST", path, headers=headers)
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        headers["Content-Type"] = "application/json"
        return await self.door.ask("POST", path, headers=headers, data=raw)

    async def audit(self, object_: str) -> list[dict[str, Any]]:
        """What the audit log says of one object, newest first."""
        answer = await self.get(f"/admin/audit?object={object_}")
        assert answer.status == 200
        found: list[dict[str, Any]] = answer.json["data"]
        return found
