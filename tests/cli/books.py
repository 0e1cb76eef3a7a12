"""Small true books for the doctor: an account, tasks in four states, a picture; and how to falsify them."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from PIL import Image

from safelight.assets.checking import check_picture
from safelight.assets.local import LocalStore
from safelight.assets.store import new_key
from safelight.db import accounts, ledger, tasks
from safelight.db.database import Database
from safelight.domain.catalog import Model
from safelight.domain.ids import new_id
from safelight.lifecycle.accept import Accept, Wish
from safelight.lifecycle.doctor import Books as Audited
from safelight.lifecycle.doctor import Finding, Outcome, audit_books, examine
from safelight.settings import Settings

MODEL = Model(
    name="lab-callback", provider="lab-callback", upstream_model="callback", operations=("generate",), price=3
)


@dataclass(slots=True)
class Books:
    """A database and a store with: a queued task, one being submitted, a succeeded and a failed one."""

    database: Database
    store: LocalStore
    account: UUID
    queued: UUID
    submitting: UUID
    succeeded: UUID
    failed: UUID
    picture: str

    async def falsify(self, statement: str, *values: Any) -> None:
        """Change rows past every trigger, foreign key and append-only rule, as a broken disk might."""
        async with self.database.transaction() as connection:
            await connection.execute("SET LOCAL session_replication_role = replica")
            await connection.execute(statement, *values)

    async def outcomes(
        self, *, shown: int = 20, with_bytes: bool = True, providers: list[str] | None = None
    ) -> list[Outcome]:
        """What came of every check."""
        audited = audit_books(
            Audited(self.database, self.store, providers), with_bytes=with_bytes, shown=shown
        )
        return [outcome async for outcome in audited]

    async def outcome(self, check: str, *, shown: int = 20, providers: list[str] | None = None) -> Outcome:
        """What came of one check."""
        made = await self.outcomes(shown=shown, providers=providers)
        return next(outcome for outcome in made if outcome.check.name == check)

    async def findings(self, check: str | None = None, *, with_bytes: bool = True) -> list[Finding]:
        """What the doctor says, of one check or of all."""
        found = [finding async for finding in examine(self.database, self.store, with_bytes=with_bytes)]
        return [finding for finding in found if check in (None, finding.check)]


async def write_books(database: Database, store: LocalStore, settings: Settings) -> Books:
    """Let four tasks come to where they are by the ordinary verbs and statements."""
    async with database.transaction() as connection:
        account = await accounts.create_account(connection, "default")
        await ledger.grant(connection, account, 1_000)
    accept = Accept(database, settings)
    accepted = [
        await accept.accept(Wish(account, f"key-{number}", bytes(32), MODEL, "generate", "a red shoe", n=2))
        for number in range(4)
    ]
    queued, submitting, succeeded, failed = (answer.task_id for answer in accepted)
    async with database.transaction() as connection:
        await connection.execute(
            "UPDATE tasks SET wake_at = wake_at + interval '1 hour' WHERE id = $1", queued
        )
        await tasks.claim_fairest(
            connection, "lab-callback", calls_free=9, images_free=99, is_idle=True, answer_in_s=60.0
        )
    key = await _let_succeed(database, store, account, succeeded)
    await _let_fail(database, failed)
    return Books(database, store, account, queued, submitting, succeeded, failed, key)


def png(side: int = 8) -> bytes:
    """A small picture."""
    file = io.BytesIO()
    Image.new("RGB", (side, side), (200, 30, 30)).save(file, "PNG")
    return file.getvalue()


async def _let_succeed(database: Database, store: LocalStore, account: UUID, task_id: UUID) -> str:
    data = png()
    picture = check_picture(data)
    key = new_key(account, suffix="png")
    await store.put(key, data)
    asset = {
        "id": str(new_id()),
        "position": 0,
        "store_key": key,
        "content_type": picture.content_type,
        "width": picture.width,
        "height": picture.height,
        "bytes": picture.bytes,
        "sha256": picture.sha256.hex(),
    }
    async with database.transaction() as connection:
        move = {"id": task_id, "version": 2, "source": "submitting", "target": "archiving", "cause": "answer"}
        await tasks.move(connection, [{**move, "wake_in_s": 60.0}])
        end = {"task_id": task_id, "number": 1, "outcome": "succeeded", "run_s": 1.0}
        await tasks.patch_attempts(connection, [end])
    async with database.transaction() as connection:
        ending = {
            "id": task_id,
            "version": 3,
            "source": "archiving",
            "target": "succeeded",
            "cause": "archived",
        }
        await ledger.settle(connection, [{**ending, "captured": 3, "released": 3, "assets": [asset]}])
    return key


async def _let_fail(database: Database, task_id: UUID) -> None:
    ending = {"id": task_id, "version": 2, "source": "submitting", "target": "failed", "cause": "answer"}
    failure = {"failure_class": "invalid_request", "failure_code": "size_refused"}
    async with database.transaction() as connection:
        await tasks.patch_attempts(
            connection, [{"task_id": task_id, "number": 1, "outcome": "refused", **failure}]
        )
        await ledger.settle(connection, [{**ending, **failure, "captured": 0, "released": 6, "assets": []}])
