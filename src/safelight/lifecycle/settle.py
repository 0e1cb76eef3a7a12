"""The only way to an end: terminal state, ledger, assets and event in one transaction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from safelight.db import ledger, tasks
from safelight.db.database import Database
from safelight.db.group import Group
from safelight.db.statements import Connection
from safelight.domain.failure import Failure
from safelight.domain.task import State
from safelight.errors import StaleAttempt
from safelight.lifecycle.changes import AssetItem, Changes
from safelight.telemetry import point


@dataclass(frozen=True, slots=True)
class Ending:
    """How a task is to end, and from which states and attempt only (the fence)."""

    task_id: UUID
    attempt: int
    sources: frozenset[State]
    target: State
    cause: str
    failure: Failure | None = None
    assets: tuple[AssetItem, ...] = ()
    is_staged: bool = False


class Settle:
    """T5 as a list verb: concurrent endings share a commit."""

    def __init__(self, database: Database) -> None:
        self._group: Group[Ending, State] = Group(database, self._settle_many, name="settle")

    async def settle(self, ending: Ending) -> State:
        """End a task; when this returns it is committed.

        Raises:
            StaleAttempt: the task has moved on; nothing was changed.
        """
        state = await self._group.do(ending)
        point("after_settle_commit")
        return state

    async def _settle_many(
        self, connection: Connection, endings: Sequence[Ending]
    ) -> Sequence[State | Exception]:
        ids = sorted({ending.task_id for ending in endings})
        accounts = await tasks.accounts_of_tasks(connection, ids)
        await ledger.lock_accounts(connection, set(accounts.values()))
        changes = Changes(await tasks.lock_tasks(connection, ids))
        results: list[State | Exception] = []
        for ending in endings:
            row = changes.rows.get(ending.task_id)
            if row is None or row.attempt != ending.attempt or changes.state_of(row.id) not in ending.sources:
                results.append(StaleAttempt(f"task {ending.task_id} has moved on"))
                continue
            changes.settle(
                row.id,
                ending.target,
                cause=ending.cause,
                failure=ending.failure,
                assets=ending.assets,
                is_staged=ending.is_staged,
            )
            results.append(ending.target)
        await changes.write(connection)
        point("before_settle_commit")
        return results
