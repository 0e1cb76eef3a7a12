"""What the two sides say afterwards: our tasks by the API, the lab's jobs by its ledger."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from types import TracebackType
from typing import Any
from uuid import UUID

import aiohttp

from safelight.cli.measure.instance import Instance
from safelight.errors import ConfigurationError

LOOK_EVERY_S = 0.25
PAGE = 100


@dataclass(frozen=True, slots=True)
class Ended:
    """A task as the API shows it after its end: Unix seconds."""

    is_ready: bool
    created_at: float
    finished_at: float


@dataclass(frozen=True, slots=True)
class Books:
    """The lab's ledger: when each of our tasks was done there (Unix seconds), and all polls so far."""

    polls: int
    done_at: Mapping[UUID, float]


class Witness:
    """Asks both sides; cheap while tasks are under way, thorough when they have ended."""

    def __init__(self, instance: Instance) -> None:
        self._url = instance.url
        self._lab_url = instance.lab_url
        self._session = aiohttp.ClientSession(trust_env=False)
        self._headers = {"Authorization": f"Bearer {instance.key}"}

    async def __aenter__(self) -> Witness:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._session.close()

    async def check_credits(self, needed: int) -> None:
        """Refuse before the first task what could not be paid to the last.

        Raises:
            ConfigurationError: fewer are available.
        """
        available = (await self._balance())["available"]
        if available < needed:
            raise ConfigurationError(
                f"the measurement takes up to {needed} credits and the account has {available}: "
                "grant some with `safelight credits grant`"
            )

    async def knobs(self) -> dict[str, Any]:
        """The lab's knobs as they are."""
        knobs: dict[str, Any] = await self._ask(f"{self._lab_url}/lab/knobs")
        return knobs

    async def turn_knobs(self, **knobs: Any) -> None:
        """Set the lab's knobs from now on."""
        async with self._session.post(f"{self._lab_url}/lab/knobs", json=knobs) as answer:
            if answer.status != 200:
                raise ConfigurationError(f"the lab refuses its knobs: {await answer.text()}")

    async def held(self) -> int:
        """Credits held: those of open tasks."""
        held: int = (await self._balance())["held"]
        return held

    async def wait_until_held(self, credits_: int, within_s: float) -> bool:
        """Wait until no more than these are held, that is, until every task of ours has ended."""
        loop = asyncio.get_running_loop()
        until = loop.time() + within_s
        while await self.held() > credits_:
            if loop.time() > until:
                return False
            await asyncio.sleep(LOOK_EVERY_S)
        return True

    async def ended(self, ids: Iterable[UUID]) -> dict[UUID, Ended]:
        """Those of the tasks that have ended."""
        wanted, found, cursor = set(ids), dict[UUID, Ended](), ""
        while wanted:
            page = await self._ask(f"{self._url}/v1/tasks?limit={PAGE}{cursor}")
            for task in page["data"]:
                task_id = UUID(task["id"])
                if task_id in wanted and task["finished_at"]:
                    found[task_id] = _ended(task)
                wanted.discard(task_id)
            if not page["next_cursor"]:
                break
            cursor = f"&cursor={page['next_cursor']}"
        return found

    async def books(self) -> Books:
        """The lab's ledger now."""
        ledger = await self._ask(f"{self._lab_url}/lab/ledger")
        done_at = {
            _task_of(item["reference"]): item["done_at"]
            for item in ledger["items"]
            if item["done_at"] is not None
        }
        return Books(ledger["polls"], done_at)

    async def _balance(self) -> dict[str, int]:
        balance: dict[str, int] = await self._ask(f"{self._url}/v1/balance")
        return balance

    async def _ask(self, url: str) -> Any:
        headers = self._headers if url.startswith(self._url) else {}
        async with self._session.get(url, headers=headers) as answer:
            if answer.status != 200:
                raise ConfigurationError(f"{url} answers {answer.status}: {(await answer.text())[:200]}")
            return await answer.json()


def _ended(task: Mapping[str, Any]) -> Ended:
    return Ended(
        is_ready=task["status"] == "ready",
        created_at=datetime.fromisoformat(task["created_at"]).timestamp(),
        finished_at=datetime.fromisoformat(task["finished_at"]).timestamp(),
    )


def _task_of(reference: str) -> UUID:
    """A reference is the task's id and the number of the attempt; one that is not ours stands for nobody."""
    try:
        return UUID(reference.partition("-")[0])
    except ValueError:
        return UUID(int=0)
