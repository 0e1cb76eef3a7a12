"""Copy results into our own storage; only then may anyone be told `ready`."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

import structlog

from safelight.assets.pictures import Picture
from safelight.assets.store import new_key
from safelight.db import gates, tasks
from safelight.db.group import Group
from safelight.db.statements import Connection
from safelight.db.tasks import AttemptRow, TaskRow, outputs_json
from safelight.domain.failure import Failure, FailureClass
from safelight.domain.ids import new_id
from safelight.domain.provider import Output, UpdateStatus
from safelight.domain.schedule import retry_after_s
from safelight.domain.task import ReviewReason, State
from safelight.errors import AssetError, ProviderError, StaleAttempt
from safelight.lifecycle.changes import AssetItem, Changes
from safelight.lifecycle.context import Context
from safelight.lifecycle.settle import Ending, Settle
from safelight.telemetry import COPIES, LATE_COPIES, point

log = structlog.get_logger()

COPY_LEASE_S = 20.0
"""A dead worker's copies are taken over after this; a living one renews its leases every 6 s."""
MAX_COPIES = 6
"""Tries to copy a result whose source keeps failing; about two minutes with the back-off."""
MAX_DECODE_TRIES = 3
"""Decodes after which a picture that keeps killing its worker is given up."""
STORAGE_PATIENCE_S = 3_600.0
"""How long our own storage may fail before a person looks at the task."""
STALE_SOURCE = frozenset({"expired", "address_refused", "bad_url", "unreachable", "tls"})
"""Failures of a copy after which the provider is asked for a fresh URL."""
RESULT_LOST = Failure(FailureClass.UPSTREAM_FAULT, "result_lost")


@dataclass(frozen=True, slots=True)
class _Copy:
    """One output, fetched and checked; or the error that stood in the way."""

    position: int
    data: bytes = b""
    picture: Picture | None = None
    error: AssetError | None = None


async def _note_decodes(connection: Connection, ids: Sequence[UUID]) -> Sequence[None]:
    await tasks.note_decode(connection, ids)
    return [None] * len(ids)


def _is_source_at_fault(copy: _Copy) -> bool:
    """Whether a fresh URL may help: it expired, or leads nowhere (any more)."""
    return copy.error is not None and copy.error.reason in STALE_SOURCE


class Archive:
    """Archives one task at a time; a paid picture is never generated again because a copy failed."""

    def __init__(self, context: Context, settle: Settle) -> None:
        self._context = context
        self._settle = settle
        self._decodes: Group[UUID, None] = Group(context.database, _note_decodes, name="decode")

    async def claim(self, room: int) -> list[tuple[TaskRow, AttemptRow]]:
        """Take tasks whose copy is due, those whose results die first at the front; the claim is the lease."""
        async with self._context.database.transaction() as connection:
            claimed = await tasks.claim_copies(connection, room=room, lease_s=COPY_LEASE_S)
            point("before_copy_claim_commit")
        point("after_copy_claim_commit")
        return claimed

    async def renew(self, ids: Sequence[UUID]) -> None:
        """Prolong the leases of copies under way."""
        async with self._context.database.connection() as connection:
            await tasks.renew_copies(connection, ids, lease_s=COPY_LEASE_S)

    async def archive(self, task_id: UUID) -> None:
        """Copy one task's results now. Does nothing if its state no longer asks for it."""
        async with self._context.database.connection() as connection:
            claimed = await tasks.claim_copy(connection, task_id, lease_s=COPY_LEASE_S)
        if claimed is not None:
            await self.copy(*claimed)

    async def copy(self, task: TaskRow, attempt: AttemptRow) -> None:
        """Copy a claimed task's results and settle it."""
        waited_s = (task.now - task.state_since).total_seconds()
        if waited_s > self._context.lifetime_s(attempt.provider) / 2.0:
            LATE_COPIES.labels(attempt.provider).inc()
            log.error(
                "archive_late", task_id=str(task.id), provider=attempt.provider, waited_s=round(waited_s)
            )
        if task.decode_tries >= MAX_DECODE_TRIES:
            log.error("picture_kills_worker", task_id=str(task.id))
            await self._end(task, [], attempt.outputs)
            return
        copies = await self._copy_all(task, attempt.outputs[: task.n])
        if any(_is_source_at_fault(copy) for copy in copies):
            fresh = await self._fresh_outputs(task, attempt)
            if fresh is None and task.copies < MAX_COPIES:
                await self._copy_later(task)
                return
            if fresh:
                copies = await self._copy_all(task, fresh[: task.n])
        await self._conclude(task, attempt, copies)

    async def _copy_all(self, task: TaskRow, outputs: Sequence[Output]) -> list[_Copy]:
        point("before_fetch")
        bodies = await asyncio.gather(*(self._fetch(place, output) for place, output in enumerate(outputs)))
        point("after_fetch")
        await self._decodes.do(task.id)
        point("before_decode")
        checked = [await self._check(body) for body in bodies]
        point("after_decode")
        for copy in checked:
            COPIES.labels(copy.error.reason if copy.error else "copied").inc()
        return checked

    async def _fetch(self, position: int, output: Output) -> _Copy:
        if output.data is not None:
            return _Copy(position, output.data)
        try:
            if output.staged_key is not None:
                return _Copy(position, await self._context.store.get(output.staged_key))
            return _Copy(position, await self._context.fetcher.fetch(output.url or ""))
        except AssetError as error:
            return _Copy(position, error=error)

    async def _check(self, copy: _Copy) -> _Copy:
        if copy.error is not None:
            return copy
        try:
            return _Copy(copy.position, copy.data, await self._context.pictures.check(copy.data))
        except AssetError as error:
            return _Copy(copy.position, error=error)

    async def _fresh_outputs(self, task: TaskRow, attempt: AttemptRow) -> tuple[Output, ...] | None:
        """Ask the provider for fresh URLs: an empty tuple if it has none to give, None if it cannot be asked now."""
        provider = self._context.providers.get(attempt.provider)  # its key may have been taken away
        if provider is None or not provider.capabilities.can_poll or attempt.provider_ref is None:
            return ()
        try:
            point("before_refresh")
            update = await provider.poll(task.reference_of(attempt))
            point("after_refresh")
        except ProviderError as error:
            log.warning("refresh_failed", task_id=str(task.id), provider=provider.name, code=error.code)
            return None
        if update.status is not UpdateStatus.SUCCEEDED or not update.outputs:
            return ()
        if all(output.data is None for output in update.outputs):
            async with self._context.database.transaction() as connection:
                patch = {
                    "task_id": task.id,
                    "number": attempt.number,
                    "outputs": outputs_json(update.outputs),
                }
                await tasks.patch_attempts(connection, [patch])
                point("before_refresh_commit")
            point("after_refresh_commit")
        return update.outputs

    async def _conclude(self, task: TaskRow, attempt: AttemptRow, copies: Sequence[_Copy]) -> None:
        errors = [copy.error for copy in copies if copy.error is not None]
        for error in errors:
            log.warning(
                "copy_failed",
                task_id=str(task.id),
                reason=error.reason,
                detail=str(error),
                is_retryable=error.is_retryable,
            )
        in_storage = next((error for error in errors if error.reason == "storage"), None)
        if in_storage is not None:
            await self._wait_for_storage(task, in_storage)
            return
        may_wait = task.copies < MAX_COPIES and any(error.is_retryable for error in errors)
        if may_wait:
            await self._copy_later(task)
            return
        good = [copy for copy in copies if copy.picture is not None]
        try:
            items = [await self._keep(task, copy) for copy in good]
        except AssetError as error:
            await self._wait_for_storage(task, error)
            return
        await self._end(task, items, attempt.outputs)

    async def _keep(self, task: TaskRow, copy: _Copy) -> AssetItem:
        picture = copy.picture
        if picture is None:
            raise StaleAttempt("only checked pictures are kept")
        if picture.is_uniform:
            # Perhaps a blocked picture painted over; perhaps what was asked for. It is delivered, and told.
            log.warning("picture_is_uniform", task_id=str(task.id), position=copy.position)
        key = new_key(task.account_id, suffix=picture.suffix)
        point("before_put")
        await self._context.store.put(key, copy.data)
        point("after_put")
        return AssetItem(
            id=new_id(),
            position=copy.position,
            store_key=key,
            content_type=picture.content_type,
            width=picture.width,
            height=picture.height,
            bytes=picture.bytes,
            sha256=picture.sha256.hex(),
        )

    async def _end(self, task: TaskRow, items: Sequence[AssetItem], outputs: Sequence[Output]) -> None:
        target = State.SUCCEEDED if items else State.FAILED
        ending = Ending(
            task.id,
            task.attempt,
            frozenset({State.ARCHIVING}),
            target,
            cause="archived" if items else "result_lost",
            failure=None if items else RESULT_LOST,
            assets=tuple(items),
            is_staged=any(output.staged_key for output in outputs),
        )
        try:
            await self._settle.settle(ending)
        except StaleAttempt:
            log.info("archived_already", task_id=str(task.id))

    async def unstage(self, task_id: UUID) -> None:
        """Delete the staged bytes of a settled task; those of an open one are never touched."""
        async with self._context.database.connection() as connection:
            outputs = await tasks.staged_outputs(connection, task_id)
        for output in outputs:
            if output.staged_key is not None:
                point("before_unstage")
                await self._context.store.delete(output.staged_key)
                point("after_unstage")

    async def _copy_later(self, task: TaskRow) -> None:
        async with self._context.database.transaction() as connection:
            wake_in_s = retry_after_s(task.copies)
            note = {"id": task.id, "version": task.version, "wake_in_s": wake_in_s}
            await tasks.note_progress(connection, [note])
            await tasks.forget_decode(connection, task.id)
            point("before_copy_later_commit")
        point("after_copy_later_commit")

    async def _wait_for_storage(self, task: TaskRow, error: AssetError) -> None:
        """Our own storage fails: the breaker opens, the copy waits, and after an hour a person looks."""
        waited_s = (task.now - task.state_since).total_seconds()
        log.error("storage_unavailable", reason=error.reason, detail=str(error), task_id=str(task.id))
        async with self._context.database.transaction() as connection:
            for_s = retry_after_s(min(task.copies, 6))
            await gates.close_gate(
                connection, gates.STORAGE, for_s=for_s, reason=error.reason, is_failure=True
            )
            await tasks.forget_decode(connection, task.id)
            point("before_storage_commit")
            if waited_s < STORAGE_PATIENCE_S:
                note = {"id": task.id, "version": task.version, "wake_in_s": for_s}
                await tasks.note_progress(connection, [note])
                return
            changes = Changes(await tasks.lock_tasks(connection, [task.id]))
            if changes.rows[task.id].version == task.version:
                decide_in_s = self._context.settings.decide_by_s
                changes.move(
                    task.id,
                    State.REVIEW,
                    cause="storage",
                    wake_in_s=min(600.0, decide_in_s),
                    review_reason=ReviewReason.ARCHIVE_STUCK,
                    decide_in_s=decide_in_s,
                )
                await changes.write(connection)
