"""Viewings: an operator looks at a task's pictures, and the audit log knows it before a byte is read."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

from safelight.db import adminviews, auditlog, tasks
from safelight.db.adminviews import TaskPicture
from safelight.db.database import Database
from safelight.db.statements import Connection
from safelight.domain.audit import Actor
from safelight.errors import RequestError
from safelight.lifecycle.once import Answered, Once, change_once

VIEWED = "pictures.view"
VIEWING_S = 900.0
"""How long a viewing opens its pictures."""


@dataclass(frozen=True, slots=True)
class Viewings:
    """A viewing is a line of the audit log: it opens the pictures that it names, to the operator whom it names."""

    database: Database

    async def open(self, task_id: UUID, by: Actor, once: Once | None = None) -> Answered:
        """Write down that somebody looks at the pictures of a task, and say which there are.

        Raises:
            RequestError: 404 no such task, 409 none of its pictures can be shown.
        """

        async def work(connection: Connection) -> dict[str, Any]:
            accounts = await tasks.accounts_of_tasks(connection, [task_id])
            if task_id not in accounts:
                raise RequestError(404, "not-found", "There is no such task.")
            found = await adminviews.pictures(connection, task_id)
            if not found:
                raise RequestError(409, "nothing-to-show", "No picture of this task is stored.")
            ids = [str(picture.stored.id) for picture in found]
            line = await auditlog.write_line(
                connection,
                by,
                VIEWED,
                _name_of(task_id),
                account_id=accounts[task_id],
                detail={"pictures": ids},
            )
            expires_at = line.created_at + timedelta(seconds=VIEWING_S)
            return {
                "id": str(line.id),
                "task_id": str(task_id),
                "pictures": ids,
                "expires_at": expires_at.isoformat().replace("+00:00", "Z"),
            }

        return await change_once(self.database, once, work)

    async def picture(
        self, task_id: UUID, picture_id: UUID, by: Actor, *, viewing_id: int | None
    ) -> TaskPicture:
        """One picture of a viewing, if it can still be shown.

        Raises:
            RequestError: 403 this operator has no such viewing of the task, or it is over; 404 no such picture in it.
        """
        async with self.database.connection() as connection:
            viewing = None
            if viewing_id is not None:
                viewing = await auditlog.read_line(
                    connection, viewing_id, by, VIEWED, _name_of(task_id), within_s=VIEWING_S
                )
            if viewing is None:
                detail = "A task's pictures are read with a viewing of your own, which ends after a while."
                raise RequestError(403, "viewing-needed", detail)
            found = await adminviews.pictures(connection, task_id)
        for picture in found:
            if picture.stored.id == picture_id and str(picture_id) in viewing["pictures"]:
                return picture
        raise RequestError(404, "not-found", "There is no such picture in this viewing.")


def _name_of(task_id: UUID) -> str:
    return f"task:{task_id}"
