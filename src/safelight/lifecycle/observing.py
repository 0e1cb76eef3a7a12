"""Callbacks of a provider that is only observed: judged as if they were applied, while nothing changes."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

from safelight.db import inbox
from safelight.db.statements import Connection
from safelight.domain.news import Standing, Verdict, decide
from safelight.domain.provider import ProviderUpdate
from safelight.domain.task import UPSTREAM, State

_OPEN = UPSTREAM | {State.REVIEW}


class Observation:
    """What the observed callbacks of one batch's attempts have come to so far."""

    def __init__(self) -> None:
        self._statuses: set[tuple[UUID, int, str]] = set()
        self._would_be: dict[tuple[UUID, int], State] = {}

    async def learn(self, connection: Connection, attempts: set[tuple[UUID, int]]) -> None:
        """Read what was observed of these attempts before."""
        for task_id, number, status, state in await inbox.observed_before(connection, sorted(attempts)):
            self._note((task_id, number), status, state)

    def judge(
        self, key: tuple[UUID, int], standing: Standing, update: ProviderUpdate
    ) -> tuple[Verdict, State | None]:
        """What the update would have been, and where it would have taken the task.

        The task stands where the callbacks before it would have taken it, unless polling has been faster.
        """
        if (*key, update.upstream_status) in self._statuses:
            return Verdict.DUPLICATE, None
        if key in self._would_be and standing.state in _OPEN:
            standing = replace(standing, state=self._would_be[key])
        decision = decide(standing, key[1], update)
        if decision.verdict is not Verdict.APPLIED:
            return decision.verdict, None
        target = decision.path[-1]
        self._note(key, update.upstream_status, target)
        return Verdict.WOULD_APPLY, target

    def _note(self, key: tuple[UUID, int], status: str, state: State) -> None:
        self._statuses.add((*key, status))
        self._would_be[key] = state
