"""Tasks in review for every reason, and what a person may do about them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, cast
from uuid import UUID

import pytest

from safelight.domain.audit import Actor
from safelight.domain.provider import Capabilities, Origin, Output, Provider, Trust
from safelight.domain.review import Choice
from safelight.domain.task import ReviewReason, State
from safelight.errors import RequestError
from safelight.lifecycle.looks import Looks
from safelight.lifecycle.once import Once
from safelight.lifecycle.review import Ruling
from tests.lifecycle.upstreams import (
    GENUINE,
    Scripted,
    always,
    call_back,
    done,
    install,
    picture,
    ref_of,
    run_task,
    token_of,
    uncertain,
)
from tests.world import World

NAME = "lab-callback"
CALLS_BACK = Capabilities(calls_back=True, trust=Trust.BODY)
OPERATOR = Actor("admin:test", "192.0.2.1", "request-1")
WORDS: dict[Choice, dict[str, Any]] = {
    Choice.CHECK_AGAIN: {},
    Choice.RESUBMIT: {"reason_code": "risk_accepted", "note": "the shop waits for it"},
    Choice.ATTACH_RESULT: {"files": [picture()]},
    Choice.FAIL_AND_RELEASE: {"reason_code": "operator_decision"},
    Choice.ACCEPT_AS_DONE: {},
}
"""What has to be said with each decision."""


@dataclass
class Desk:
    """One task in review, its provider, and a person before it."""

    world: World
    provider: Scripted
    task_id: UUID
    version: int
    said: list[dict[str, Any]] = field(default_factory=list)

    async def decide(
        self, choice: Choice, *, by: Actor = OPERATOR, once: Once | None = None, **words: Any
    ) -> dict[str, Any]:
        """Decide, with the usual words unless others are given."""
        values = {"version": self.version, **WORDS[choice], **words}
        answer = await self.world.graph.review.decide(Ruling(self.task_id, choice=choice, **values), by, once)
        document: dict[str, Any] = json.loads(answer.body)
        self.said.append(document)
        return document

    async def state(self) -> State:
        return await self.world.state(self.task_id)

    async def call_back(self, status: str = "succeeded", pictures: int = 1, attempt: int = 1) -> None:
        """A genuine callback about one attempt arrives."""
        body = {"status": status, "id": ref_of(f"{self.task_id.hex}-{attempt}"), "pictures": pictures}
        await call_back(
            self.world, token_of(self.world, self.task_id, attempt), (GENUINE, json.dumps(body).encode())
        )

    async def look(self) -> None:
        await self.world.look(NAME)

    async def findings(self) -> list[str]:
        rows = await self.world.rows("SELECT kind FROM findings WHERE task_id = $1 ORDER BY id", self.task_id)
        return [row["kind"] for row in rows]


async def in_review(world: World, reason: ReviewReason, *, n: int = 1) -> Desk:
    """A task that came to review for this reason, from the state that such a task comes from."""
    provider = install(world, Scripted(NAME, CALLS_BACK))
    if reason is ReviewReason.SUBMIT_UNCERTAIN:
        provider.submit_does = always(uncertain())
    task_id = await run_task(world, NAME, n=n)
    if reason is ReviewReason.ARCHIVE_STUCK:
        outputs = await staged(world, task_id, n)
        provider.poll_does = always_says(done(*outputs))
        await world.graph.advance.advance(_news(task_id, outputs))
        assert await world.state(task_id) is State.ARCHIVING
    await to_review(world, task_id, reason)
    if reason is ReviewReason.PROVIDER_GONE:
        cast("dict[str, Provider]", world.graph.context.providers).pop(NAME)
    task = await world.task(task_id)
    assert task.state is State.REVIEW
    return Desk(world, provider, task_id, task.version)


async def to_review(world: World, task_id: UUID, reason: ReviewReason) -> None:
    """Hand a task to a person, as the looks do."""
    graph = world.graph
    looks = Looks(graph.context, graph.advance, graph.dispatch)
    await looks.to_review(await world.task(task_id), reason)


async def staged(world: World, task_id: UUID, count: int) -> Sequence[Output]:
    """Pictures that lie in our storage, as a synchronous answer leaves them."""
    update = await world.graph.dispatch.stage(
        task_id, 1, done(*(Output(data=picture(60 + place)) for place in range(count)))
    )
    return update.outputs


def always_says(update: Any) -> Any:
    """A poll that gives this answer every time."""

    async def poll(_: Any) -> Any:
        return update

    return poll


def _news(task_id: UUID, outputs: Sequence[Output]) -> Any:
    from safelight.lifecycle.advance import News

    return News(task_id, 1, update=done(*outputs, origin=Origin.POLL))


async def stored(world: World) -> list[str]:
    """Everything that lies in our storage."""
    keys = world.graph.context.store.keys()
    return sorted([key async for key, _, _ in keys])


async def refused(desk: Desk, choice: Choice, **words: Any) -> tuple[int, str]:
    """Decide in vain: the status and the code."""
    before = await desk.world.task(desk.task_id)
    lines = await desk.world.value("SELECT count(*) FROM audit_lines")
    with pytest.raises(RequestError) as caught:
        await desk.decide(choice, **words)
    after = await desk.world.task(desk.task_id)
    assert (after.state, after.version) == (before.state, before.version)
    assert await desk.world.value("SELECT count(*) FROM audit_lines") == lines
    return caught.value.status, caught.value.problem_code
