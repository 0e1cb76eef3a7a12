"""Field cases K09 to K13: streams of live events."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses

import pytest

from safelight.telemetry import STREAMS
from tests.api.door import Caller, Door, running_door
from tests.api.streams import Stream, streaming
from tests.field.scene import Scene

LAMP = {"model": "lab-sync", "prompt": "a lamp", "size": "64x64"}


async def made(door: Door, *, by: Caller | None = None) -> str:
    answer = await door.submit(LAMP, by=by)
    assert answer.status == 202, answer.body
    task_id: str = answer.json["id"]
    return task_id


async def finished(scene: Scene) -> str:
    task_id = await made(scene.door)
    await scene.world.dispatch("lab-sync")
    await scene.world.archive_all()
    return task_id


async def test_K09_each_event_leaves_at_once_and_no_proxy_is_given_a_reason_to_gather(scene: Scene) -> None:
    async with streaming(scene.door, "/v1/events", Accept_Encoding="gzip, br, zstd") as stream:
        headers = stream.answer.headers
        assert headers["Content-Type"].startswith("text/event-stream")
        assert {"no-cache", "no-transform"} <= set(headers["Cache-Control"].split(", "))
        assert headers["X-Accel-Buffering"] == "no"
        assert "Content-Encoding" not in headers
        assert "Content-Length" not in headers
        await stream.next()
        for _ in range(3):
            # The next is made only when this one has come.
            task_id = await made(scene.door)
            assert (await stream.next()).document["id"] == task_id


async def test_K09_an_idle_stream_is_not_silent(scene: Scene) -> None:
    settings = scene.door.parts.settings.model_copy(update={"stream_heartbeat_s": 0.05})
    async with (
        running_door(dataclasses.replace(scene.door.parts, settings=settings)) as door,
        streaming(door, "/v1/events") as stream,
    ):
        for _ in range(3):
            await stream.until_comment()
    assert scene.door.parts.settings.stream_heartbeat_s == 15.0


@pytest.mark.parametrize("last", [None, "999", "abc", "", "-1", "1.5", "9" * 30, "\u0662"])
async def test_K11_a_finished_task_is_told_at_once_whatever_was_seen_last(
    scene: Scene, last: str | None
) -> None:
    task_id = await finished(scene)
    path = f"/v1/tasks/{task_id}/events"
    opened = streaming(scene.door, path) if last is None else streaming(scene.door, path, Last_Event_ID=last)
    async with opened as stream:
        (only,) = await stream.rest()
    assert (only.document["id"], only.document["status"]) == (task_id, "ready")
    async with scene.door.session.get(
        f"{scene.door.url}/v1/tasks/{task_id}/events",
        headers={**scene.door.caller.headers, "Last-Event-ID": str(only.number)},
    ) as answer:
        assert answer.status == 204  # a browser stops coming back


async def test_K11_a_task_whose_events_are_gone_is_told_as_it_stands(scene: Scene) -> None:
    task_id = await finished(scene)
    await scene.world.pass_time(hours=25)
    await scene.world.graph.retention.step()
    async with streaming(scene.door, f"/v1/tasks/{task_id}/events", Last_Event_ID="0") as stream:
        (only,) = await stream.rest()
    assert (only.document["status"], only.stage) == ("ready", "done")


@pytest.mark.parametrize("last", ["999", "abc", ""])
async def test_K11_a_number_that_never_was_brings_a_reset_and_what_comes_then(
    scene: Scene, last: str
) -> None:
    async with streaming(scene.door, "/v1/events", Last_Event_ID=last) as stream:
        assert (await stream.next()).name == "reset"
        task_id = await made(scene.door)
        assert (await stream.next()).document["id"] == task_id


async def test_K12_a_number_of_somebody_else_brings_nothing_of_his(scene: Scene) -> None:
    other = await scene.door.new_caller()
    async with streaming(scene.door, "/v1/events") as stream:
        start = await stream.next()
        theirs = [await made(scene.door) for _ in range(5)]
        seen = await stream.take(5)
    for number in (start.number, seen[0].number, seen[-1].number):
        for end in ("/v1/events", "/v1/tasks/{}/events"):
            own = await made(scene.door, by=other)
            path = end.format(own)
            async with streaming(scene.door, path, by=other, Last_Event_ID=str(number)) as stream:
                task_id = await made(scene.door, by=other)
                await made(scene.door)
                await scene.door.request("POST", f"/v1/tasks/{own}/cancel", by=other)
                found = await frames_until(stream, {own, task_id})
                assert not found & set(theirs)
    foreign = await scene.door.request("GET", f"/v1/tasks/{theirs[0]}/events", by=other)
    assert (foreign.status, foreign.code) == (404, "not-found")


async def frames_until(stream: Stream, wanted: set[str]) -> set[str]:
    """The tasks that were told of, up to the first of these, or the end."""
    found: set[str] = set()
    with contextlib.suppress(AssertionError):
        while not found & wanted:
            found |= {(await stream.next()).document.get("id", "")} - {""}
    return found


async def test_K13_clients_that_hang_up_leave_no_stream_behind(scene: Scene) -> None:
    before = STREAMS._value.get()
    callers = [await scene.door.new_caller() for _ in range(10)]
    async with contextlib.AsyncExitStack() as stack:
        for caller in callers * 5:
            stream = await stack.enter_async_context(streaming(scene.door, "/v1/events", by=caller))
            await stream.next()
        assert STREAMS._value.get() == before + 50
    for _ in range(500):
        if STREAMS._value.get() == before:
            break
        await asyncio.sleep(0.02)
    assert STREAMS._value.get() == before


async def test_K13_stopping_ends_every_stream_with_a_hint_when_to_come_back(scene: Scene) -> None:
    callers = [await scene.door.new_caller() for _ in range(10)]
    async with running_door(scene.door.parts) as door, contextlib.AsyncExitStack() as stack:
        streams = [
            await stack.enter_async_context(streaming(door, "/v1/events", by=caller))
            for caller in callers * 5
        ]
        assert [await stream.answer.content.read(7) for stream in streams] == [b"retry: "] * 50
        door.stop()
        for stream in streams:
            assert all(frame.name == "start" for frame in await stream.rest())
