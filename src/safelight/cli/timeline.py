"""How a task came to where it is: every move and attempt on the service's own machine, stages elsewhere."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID

from safelight.cli.output import clean, print_line, print_table
from safelight.cli.running import settings_of
from safelight.errors import ConfigurationError

if TYPE_CHECKING:
    from safelight.client import Task
    from safelight.settings import Settings


@dataclass(frozen=True, slots=True)
class Timeline:
    """Moves and attempts, oldest first. A public one has stages only, as moves with `at` and `stage`."""

    moves: Sequence[Mapping[str, Any]]
    attempts: Sequence[Mapping[str, Any]] = ()

    def as_json(self) -> dict[str, Any]:
        """Both lists, beside the public fields of the task."""
        return {"timeline": list(self.moves), "attempts": list(self.attempts)}

    def print(self) -> None:
        """For people, with the time since the first move."""
        first = self.moves[0]["at"] if self.moves else None
        for move in self.moves:
            print_line(_line_of(move, first))
        if not self.attempts:
            return
        print_line()
        columns = [
            "attempt",
            "provider",
            "sent",
            "sends",
            "accepted",
            "ended",
            "noticed by",
            "outcome",
            "said",
            "",
        ]
        print_table(columns, [_row_of(attempt, first) for attempt in self.attempts])


def read_timeline(data_dir: Path | None, task_id: str) -> Timeline | None:
    """The inner timeline from the database itself; None if that, or the task in it, cannot be had here."""
    settings = settings_of(data_dir)
    try:
        is_here = settings.database_url is not None or (settings.data_dir / "postgres").is_dir()
        return asyncio.run(_read(settings, UUID(task_id))) if is_here else None
    except (ConfigurationError, OSError, ValueError):
        return None


def public_timeline(task: Task) -> Timeline:
    """What customers see: the stages that the service tells, else beginning and end."""
    stages = task.raw.get("timeline")
    if stages:
        return Timeline([{**stage, "at": datetime.fromisoformat(stage["at"])} for stage in stages])
    moves: list[dict[str, Any]] = [{"at": task.created_at, "stage": "accepted"}]
    if task.finished_at is not None:
        moves.append({"at": task.finished_at, "stage": task.status})
    return Timeline(moves)


async def _read(settings: Settings, task_id: UUID) -> Timeline | None:
    # Not through the composition root, which takes seconds to import; and a look migrates nothing.
    import asyncpg

    from safelight.db import audit, views
    from safelight.db.database import Database
    from safelight.db.embedded import start_embedded

    database = Database(settings.database_url or await start_embedded(settings.data_dir), pool_size=2)
    await database.open()
    try:
        async with database.connection() as connection:
            events = await views.timeline(connection, None, task_id)
            attempts = await audit.attempts_of(connection, task_id)
    except asyncpg.UndefinedTableError:
        return None
    except views.UNREACHABLE as error:
        raise ConfigurationError(str(error)) from None
    finally:
        await database.close()
    moves = [{"at": event.created_at, **asdict(event)} for event in events]
    return Timeline(moves, attempts) if moves else None


def _line_of(move: Mapping[str, Any], first: datetime | None) -> str:
    when = f"{_since(move['at'], first):>12}"
    if "stage" in move:
        return clean(f"{when}  {move['stage']}")
    attempt = f", attempt {move['attempt']}" if move["attempt"] else ""
    detail = f": {move['detail']}" if move["detail"] else ""
    return clean(f"{when}  {move['target']:<11} {move['cause']}{attempt}{detail}")


def _row_of(attempt: Mapping[str, Any], first: datetime | None) -> list[Any]:
    outcome = attempt["outcome"] or "open"
    code = f" ({attempt['failure_code']})" if attempt["failure_code"] else ""
    return [
        attempt["number"],
        attempt["provider"],
        _since(attempt["sent_at"], first),
        attempt["sends"],
        _since(attempt["accepted_at"], first),
        _since(attempt["ended_at"], first),
        attempt["noticed_by"],
        outcome + code,
        attempt["upstream_status"],
        attempt["provider_ref"] or attempt["excerpt"],
    ]


def _since(moment: datetime | None, first: datetime | None) -> str:
    if moment is None or first is None:
        return ""
    return f"+{(moment - first).total_seconds():,.3f} s"
