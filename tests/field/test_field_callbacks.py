"""Callbacks from the field, part two: many, late, early, out of order, and about whom."""

from __future__ import annotations

import asyncio
import json
from typing import Any
from uuid import UUID

from safelight.domain.provider import AttemptRef, Capabilities, ProviderUpdate, Trust
from safelight.domain.task import State
from tests.field.scene import NAME, Line, Scene, assert_calm, running_scene, said
from tests.lifecycle.upstreams import (
    GENUINE,
    Scripted,
    install,
    pass_until_due,
    ref_of,
    run_task,
    running,
    signed,
    token_of,
    verdicts,
)
from tests.providers.upstream import CREDENTIALS, Upstream, provider_of
from tests.world import Server

CALLS_BACK = Capabilities(calls_back=True, trust=Trust.BODY)
THEIR_SECRET = CREDENTIALS["callback_secret"].get_secret_value().encode()


def genuine(task_id: UUID, status: str, **more: Any) -> tuple[list[tuple[bytes, bytes]], bytes]:
    body = {"id": ref_of(f"{task_id.hex}-1"), "status": status, **more}
    return GENUINE, json.dumps(body).encode()


async def test_B04_a_failed_task_is_not_revived_by_what_comes_late(server: Server, logs: list[Line]) -> None:
    async with running_scene(server, decide_by_s=0.0) as scene:
        install(scene.world, Scripted(NAME, CALLS_BACK))
        task_id = await run_task(scene.world)
        for _ in range(2):  # the deadline, then the end of the time to decide, which is none
            await scene.world.pass_time(seconds=301)
            await scene.world.look()
        assert await scene.ending(task_id) == ("failed", 0, 1)
        for status in ("running", "succeeded"):
            assert await scene.called_back(task_id, genuine(task_id, status, pictures=1)) == 202
        assert await scene.ending(task_id) == ("failed", 0, 1)
        assert await verdicts(scene.world) == ["out_of_order", "out_of_order"]
        assert await scene.findings() == ["orphan_result"]
        assert [line["kind"] for line in said(logs, "finding")] == ["orphan_result"]
        assert (await scene.view(task_id))["assets"] == []


async def test_B05_twenty_equal_callbacks_at_once_and_one_an_hour_later_are_all_answered_well(
    scene: Scene, logs: list[Line]
) -> None:
    task_id, record = await scene.drawn()
    callback = signed(record)
    answers = await asyncio.gather(*(scene.called_back(task_id, callback) for _ in range(20)))
    await scene.world.archive_all()
    await scene.world.pass_time(hours=1)
    assert {*answers, await scene.called_back(task_id, callback)} == {202}
    assert await scene.ending(task_id) == ("succeeded", 1, 0)
    assert await scene.settled(task_id) == 1
    assert len((await scene.view(task_id))["assets"]) == 1
    kept = await verdicts(scene.world)
    assert (kept.count("applied"), kept.count("duplicate")) == (1, 20)
    assert [line["verdict"] for line in said(logs, "news_without_effect")] == ["duplicate"] * 20
    assert_calm(logs)


async def test_B07_what_was_answered_is_there_for_the_process_after_a_kill(scene: Scene) -> None:
    task_id, record = await scene.drawn()
    assert await scene.called_back(task_id, signed(record)) == 202
    # From here on nothing of the process that has answered is used any more.
    assert await verdicts(scene.world) == ["applied"]
    async with scene.another_process() as graph:
        await graph.archive.archive(task_id)
    assert await scene.ending(task_id) == ("succeeded", 1, 0)
    assert await scene.settled(task_id) == 1


async def test_B08_a_callback_whose_answer_nobody_heard_is_sent_again_without_effect(scene: Scene) -> None:
    task_id, record = await scene.drawn()
    headers, raw = signed(record)
    token = token_of(scene.world, task_id)
    head = f"POST /callbacks/{NAME}/{token} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(raw)}\r\n"
    lines = b"".join(name + b": " + value + b"\r\n" for name, value in headers)
    await scene.door.break_off(head.encode() + lines + b"\r\n" + raw)
    async with asyncio.timeout(60):
        while await verdicts(scene.world) != ["applied"]:  # noqa: ASYNC110 - the door tells nobody
            await asyncio.sleep(0.02)
    assert await scene.called_back(task_id, (headers, raw)) == 202
    assert await verdicts(scene.world) == ["applied", "duplicate"]
    await scene.world.archive_all()
    assert await scene.ending(task_id) == ("succeeded", 1, 0)


async def test_B14_a_success_that_comes_while_the_last_look_is_under_way_counts(server: Server) -> None:
    async with running_scene(server, decide_by_s=0.0) as scene:
        provider = install(scene.world, Scripted(NAME, CALLS_BACK))
        task_id = await run_task(scene.world)

        async def poll(_: AttemptRef) -> ProviderUpdate:
            assert await scene.called_back(task_id, genuine(task_id, "succeeded", pictures=1)) == 202
            return running()

        provider.poll_does = poll
        await scene.world.pass_time(seconds=301)
        await scene.world.look()
        assert await scene.world.state(task_id) is State.ARCHIVING
        await scene.world.archive_all()
        await scene.world.pass_time(hours=1)
        await scene.world.look()
        assert await scene.ending(task_id) == ("succeeded", 1, 0)
        assert await scene.settled(task_id) == 1


async def test_B14_a_success_after_the_last_look_has_lost(server: Server) -> None:
    async with running_scene(server, decide_by_s=0.0) as scene:
        install(scene.world, Scripted(NAME, CALLS_BACK))
        task_id = await run_task(scene.world)
        await scene.world.pass_time(seconds=301)
        await asyncio.gather(*(scene.world.look() for _ in range(3)))
        await pass_until_due(scene.world, task_id)
        await scene.world.look()
        assert await scene.called_back(task_id, genuine(task_id, "succeeded", pictures=1)) == 202
        assert await scene.ending(task_id) == ("failed", 0, 1)
        assert await scene.settled(task_id) == 1


async def test_B15_an_id_is_the_exact_text_of_its_token(scene: Scene, upstream: Upstream) -> None:
    """A number beyond a double, leading zeros, and the case of hexadecimal digits."""
    install(scene.world, provider_of(NAME, scene.world.session, upstream.base_url))
    tasks = {}
    for told in (b"653247040368672768", b'"007"', b'"9F3A"'):
        upstream.answers(201, b'{"id": ' + told + b', "status": "queued"}')
    for known in ("653247040368672768", "007", "9F3A"):
        tasks[known] = await run_task(scene.world)
        assert (await scene.world.attempt(tasks[known])).provider_ref == known
    for strange in ("653247040368672770", "7", "9f3a"):
        body = {"id": strange, "status": "failed"}
        assert await scene.called_back(None, signed(body, THEIR_SECRET)) == 202
    assert await verdicts(scene.world) == ["unknown"] * 3
    for known, task_id in tasks.items():
        assert await scene.world.state(task_id) is State.RUNNING
        body = {"id": known, "status": "blocked"}
        assert await scene.called_back(None, signed(body, THEIR_SECRET)) == 202
        assert await scene.ending(task_id) == ("blocked", 0, 1)
