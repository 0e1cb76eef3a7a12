"""Live events: each change once, in order, resumed without loss, and nobody else's."""

from __future__ import annotations

import asyncio
import dataclasses
import json
from uuid import UUID

import asyncpg
import pytest

from safelight.api.parts import ApiParts
from safelight.db import accounts, live
from safelight.db.database import SESSION
from safelight.domain.audit import Actor
from safelight.domain.keys import parse_key
from safelight.domain.task import STAGES, ReviewReason, State, public_stage
from safelight.lifecycle.live import BUFFER, Live, Opener
from safelight.lifecycle.restore import mark_restored
from tests.api.door import Caller, Door, running_door
from tests.api.streams import streaming
from tests.world import World

LAMP = {"model": "lab-sync", "prompt": "a lamp", "size": "64x64"}
SHOE = {"prompt": "a red shoe on white"}


async def submitted(door: Door, **change: object) -> str:
    answer = await door.submit({**SHOE, **change})
    assert answer.status == 202, answer.body
    task_id: str = answer.json["id"]
    return task_id


async def cancel(door: Door, task_id: str) -> None:
    assert (await door.request("POST", f"/v1/tasks/{task_id}/cancel")).status == 200


async def test_a_stream_of_a_task_tells_every_stage_once_and_ends_with_it(
    gallery: Door, world: World
) -> None:
    task_id = (await gallery.submit(LAMP)).json["id"]
    async with streaming(gallery, f"/v1/tasks/{task_id}/events") as stream:
        assert stream.answer.headers["Content-Type"].startswith("text/event-stream")
        first = await stream.next()
        assert (first.name, first.document["id"], first.stage) == ("task", task_id, "waiting")
        await world.dispatch("lab-sync")
        await world.archive_all()
        frames = [first, *await stream.rest()]
    assert [frame.stage for frame in frames] == ["waiting", "drawing", "saving", "done"]
    assert [frame.document["status"] for frame in frames] == ["processing"] * 3 + ["ready"]
    versions = [frame.document["version"] for frame in frames]
    numbers = [frame.number for frame in frames]
    assert versions == sorted(set(versions))
    assert numbers == sorted(set(numbers))
    assert frames[-1].document.keys() == {"id", "status", "version", "progress", "failure", "at"}


async def test_a_failure_is_told_with_its_reason(door: Door) -> None:
    task_id = await submitted(door)
    async with streaming(door, f"/v1/tasks/{task_id}/events") as stream:
        await stream.next()
        await cancel(door, task_id)
        (last,) = await stream.rest()
    assert (last.document["status"], last.document["failure"]["class"]) == ("failed", "canceled")


async def test_a_stream_of_the_account_tells_of_every_task_from_now_on(door: Door) -> None:
    before = await submitted(door)
    async with streaming(door, "/v1/events") as stream:
        start = await stream.next()
        assert (start.name, start.document) == ("start", {})
        ids = [await submitted(door) for _ in range(3)]
        await cancel(door, before)
        frames = await stream.take(4)
    assert [frame.document["id"] for frame in frames] == [*ids, before]
    assert [frame.number for frame in frames] == [start.number + place for place in (1, 2, 3, 4)]


async def test_who_comes_back_gets_what_was_missed_and_nothing_twice(door: Door) -> None:
    async with streaming(door, "/v1/events") as stream:
        start = await stream.next()
        first = await submitted(door)
        seen = await stream.next()
    missed = [await submitted(door) for _ in range(3)]
    async with streaming(door, "/v1/events", Last_Event_ID=str(seen.number)) as stream:
        later = await submitted(door)
        frames = await stream.take(4)
    assert [frame.document["id"] for frame in frames] == [*missed, later]
    async with streaming(door, f"/v1/events?last_event_id={start.number}") as stream:
        frames = await stream.take(5)
    assert [frame.document["id"] for frame in frames] == [first, *missed, later]


async def test_more_than_a_page_is_made_up_for(door: Door) -> None:
    async with streaming(door, "/v1/events") as stream:
        start = await stream.next()
    task_id = await submitted(door)
    count = live.ROOM + 50
    async with door.database.connection() as connection:
        await connection.execute(
            "INSERT INTO live_events (account_id, task_id, version, status, stage)"
            " SELECT $1, $2, 1, 'processing', 0 FROM generate_series(1, $3)",
            door.caller.account_id,
            UUID(task_id),
            count,
        )
    async with streaming(door, "/v1/events", Last_Event_ID=str(start.number)) as stream:
        frames = await stream.take(count + 1)
    assert [frame.number for frame in frames] == list(range(start.number + 1, start.number + count + 2))


async def test_a_commit_that_comes_late_is_not_skipped(door: Door) -> None:
    """The transaction that wrote first commits last: its event still comes, after the others."""
    held, other = await submitted(door), await submitted(door)
    async with streaming(door, "/v1/events") as stream:
        start = await stream.next()
        late = await asyncpg.connect(door.database.url, server_settings=SESSION)
        try:
            async with late.transaction():
                await late.execute("UPDATE tasks SET percent = 10 WHERE id = $1", UUID(held))
                await cancel_without_lock(door, other)
                first = await stream.next()
            second = await stream.next()
        finally:
            await late.close()
    assert (first.document["id"], second.document["id"]) == (other, held)
    assert (first.number, second.number) == (start.number + 1, start.number + 2)
    async with streaming(door, "/v1/events", Last_Event_ID=str(first.number)) as stream:
        assert (await stream.next()).document["id"] == held


async def cancel_without_lock(door: Door, task_id: str) -> None:
    async with door.database.connection() as connection:
        await connection.execute("UPDATE tasks SET percent = 20 WHERE id = $1", UUID(task_id))


async def test_progress_is_told_as_the_upstream_gives_it_and_never_goes_back(
    gallery: Door, world: World
) -> None:
    task_id = UUID((await gallery.submit(LAMP)).json["id"])
    async with streaming(gallery, f"/v1/tasks/{task_id}/events") as stream:
        await stream.next()
        async with world.database.connection() as connection:
            for percent, position in ((10, 5), (40, 2), (30, 4), (70, 0)):
                await connection.execute(
                    "UPDATE tasks SET percent = greatest(percent, $2), position = least(position, $3) WHERE id = $1",
                    task_id,
                    percent,
                    position,
                )
        frames = await stream.take(3)
    assert [frame.document["progress"]["percent"] for frame in frames] == [10, 40, 70]


async def test_two_processes_tell_the_same_numbers(parts: ApiParts, door: Door) -> None:
    async with running_door(parts) as second:
        async with (
            streaming(door, "/v1/events") as one,
            streaming(second, "/v1/events", by=door.caller) as two,
        ):
            assert (await one.next()).number == (await two.next()).number
            ids = [await submitted(door) for _ in range(10)]
            here, there = await one.take(10), await two.take(10)
        assert here == there
        assert [frame.document["id"] for frame in here] == ids
        async with streaming(second, "/v1/events", by=door.caller, Last_Event_ID=str(here[4].number)) as two:
            assert await two.take(5) == here[5:]


async def test_events_come_although_nobody_can_listen(parts: ApiParts) -> None:
    """A pooler between takes LISTEN and tells nothing: reading from time to time carries all."""
    database = parts.database
    database.direct_url = database.url.replace("/test_", "/no_such_")
    async with running_door(parts) as door, streaming(door, "/v1/events") as stream:
        await stream.next()
        task_id = await submitted(door)
        assert (await stream.next(30.0)).document["id"] == task_id


async def test_a_revoked_key_ends_its_streams_and_no_others(door: Door) -> None:
    async with door.database.connection() as connection:
        other = await accounts.create_key(connection, door.caller.account_id, "second", door.parts.pepper)
    async with (
        streaming(door, "/v1/events") as kept,
        streaming(door, "/v1/events", by=Caller(door.caller.account_id, other)) as lost,
    ):
        await kept.next()
        await lost.next()
        async with door.database.connection() as connection:
            assert await accounts.revoke_key(connection, other.removeprefix("sl_live_")[:12])
        assert await lost.rest() == []
        task_id = await submitted(door)
        assert (await kept.next()).document["id"] == task_id


async def test_signing_out_ends_the_session_s_streams_and_no_others(door: Door) -> None:
    kept_session, lost_session = await signed_in(door), await signed_in(door)
    ticket = await event_ticket(door, lost_session)
    async with (
        streaming(door, "/v1/events", key=False, Cookie=kept_session["Cookie"]) as kept,
        streaming(door, "/v1/events", key=False, Cookie=lost_session["Cookie"]) as lost,
        streaming(door, f"/v1/events?ticket={ticket}", key=False) as by_ticket,
        streaming(door, "/v1/events") as by_key,
    ):
        for stream in (kept, lost, by_ticket, by_key):
            await stream.next()
        unused = await event_ticket(door, lost_session)
        assert (await door.ask("DELETE", "/v1/session", headers=lost_session)).status == 204
        assert await lost.rest() == []
        assert await by_ticket.rest() == []
        task_id = await submitted(door)
        for stream in (kept, by_key):
            assert (await stream.next()).document["id"] == task_id
    assert (await door.ask("GET", f"/v1/events?ticket={unused}")).status == 401


async def test_a_session_that_has_had_its_time_ends_its_streams(gallery: Door, world: World) -> None:
    session = await signed_in(gallery)
    async with streaming(gallery, "/v1/events", key=False, Cookie=session["Cookie"]) as stream:
        await stream.next()
        await world.pass_time(hours=12, seconds=1)
        assert await stream.rest() == []


async def test_signing_out_at_one_process_ends_the_streams_at_another(parts: ApiParts, door: Door) -> None:
    session = await signed_in(door)
    async with (
        running_door(parts) as second,
        streaming(second, "/v1/events", key=False, Cookie=session["Cookie"]) as stream,
    ):
        await stream.next()
        assert (await door.ask("DELETE", "/v1/session", headers=session)).status == 204
        assert await stream.rest() == []


async def test_the_session_that_a_ticket_names_cannot_be_left_out(door: Door) -> None:
    ticket = await event_ticket(door, await signed_in(door))
    for changed in (ticket[:43], ticket[:-1], ticket[:43] + ticket[:43]):
        assert (await door.ask("GET", f"/v1/events?ticket={changed}")).status == 401


async def signed_in(door: Door) -> dict[str, str]:
    """What a browser of ours sends once the caller has signed in with the key."""
    opened = await door.request(
        "POST", "/v1/session", data=b"{}", headers={"Content-Type": "application/json"}
    )
    cookie = opened.headers["Set-Cookie"].partition(";")[0]
    return {"Cookie": cookie, "X-CSRF-Token": opened.json["csrf_token"]}


async def event_ticket(door: Door, session: dict[str, str]) -> str:
    """A ticket for one stream, asked for in a session."""
    ticket: str = (await door.ask("POST", "/v1/event-tickets", headers=session)).json["ticket"]
    return ticket


def key_id_of(caller: Caller) -> str:
    parsed = parse_key(caller.key)
    assert parsed is not None
    return parsed.id


async def test_a_ticket_opens_one_stream_once(door: Door) -> None:
    answer = await door.request("POST", "/v1/event-tickets")
    assert answer.status == 201
    path = f"/v1/events?ticket={answer.json['ticket']}"
    async with streaming(door, path, key=False) as stream:
        await stream.next()
        task_id = await submitted(door)
        assert (await stream.next()).document["id"] == task_id
    again = await door.ask("GET", path)
    assert (again.status, again.code) == (401, "unauthorized")


async def test_a_ticket_ends_after_a_minute_and_with_its_key(gallery: Door, world: World) -> None:
    old = (await gallery.request("POST", "/v1/event-tickets")).json["ticket"]
    await world.pass_time(seconds=61)
    assert (await gallery.ask("GET", f"/v1/events?ticket={old}")).status == 401
    fresh = (await gallery.request("POST", "/v1/event-tickets")).json["ticket"]
    async with world.database.connection() as connection:
        await accounts.revoke_key(connection, gallery.caller.key.removeprefix("sl_live_")[:12])
    assert (await gallery.ask("GET", f"/v1/events?ticket={fresh}")).status == 401


@pytest.mark.parametrize("ticket", ["", "x", "a" * 43, "%00", "../../etc"])
async def test_what_is_no_ticket_opens_nothing(door: Door, ticket: str) -> None:
    assert (await door.ask("GET", f"/v1/events?ticket={ticket}")).status == 401


async def test_an_account_has_so_many_streams_and_a_closed_one_makes_room(door: Door) -> None:
    async with asyncio.TaskGroup() as group:
        done = asyncio.Event()
        opened = [asyncio.Event() for _ in range(door.parts.settings.max_streams)]

        async def watch(is_open: asyncio.Event) -> None:
            async with streaming(door, "/v1/events") as stream:
                await stream.next()
                is_open.set()
                await done.wait()

        for each in opened:
            group.create_task(watch(each))
        await asyncio.gather(*(each.wait() for each in opened))
        refused = await door.request("GET", "/v1/events")
        assert (refused.status, refused.code) == (429, "too-many-streams")
        other = await door.new_caller()
        async with streaming(door, "/v1/events", by=other) as stream:
            await stream.next()
        done.set()
    status = 0
    async with asyncio.timeout(60):
        for _ in range(100):
            if (status := await opened_again(door)) == 200:
                break
            await asyncio.sleep(0.05)
    assert status == 200


async def opened_again(door: Door) -> int:
    async with door.session.get(door.url + "/v1/events", headers=door.caller.headers) as answer:
        return answer.status


async def test_an_idle_stream_says_that_it_lives_and_ends_in_time(parts: ApiParts) -> None:
    settings = parts.settings.model_copy(update={"stream_heartbeat_s": 0.1, "stream_max_s": 1.0})
    async with (
        running_door(dataclasses.replace(parts, settings=settings)) as door,
        streaming(door, "/v1/events") as stream,
    ):
        await stream.next()
        await stream.until_comment()
        assert await stream.rest() == []


async def test_stopping_ends_every_stream_cleanly(parts: ApiParts) -> None:
    async with running_door(parts) as door, streaming(door, "/v1/events") as stream:
        await stream.next()
        door.stop()
        # The body ends as a whole one, not as one that broke off.
        assert await stream.rest() == []
        refused = await door.request("GET", "/v1/events")
        assert refused.status == 429


async def test_a_reader_that_is_too_slow_is_let_go_and_resumes(door: Door) -> None:
    live_events = Live(door.database)
    account_id = door.caller.account_id
    opener = Opener(account_id, key_id_of(door.caller))
    subscription = await live_events.join(opener)
    since = subscription.since
    try:
        task_id = UUID(await submitted(door))
        async with door.database.connection() as connection:
            await connection.execute(
                "INSERT INTO live_events (account_id, task_id, version, status, stage)"
                " SELECT $1, $2, 1, 'processing', 0 FROM generate_series(1, $3)",
                account_id,
                task_id,
                BUFFER + 10,
            )
        for _ in range(1_000):
            if subscription.closed:
                break
            await asyncio.sleep(0.01)
        assert subscription.closed == "slow"
        assert await subscription.take(0.1) == []
        again = await live_events.join(opener)
        missed = await live_events.missed(again, since)
        live_events.leave(again)
    finally:
        live_events.leave(subscription)
    assert [event.number for event in missed] == list(range(since + 1, since + BUFFER + 12))


async def test_events_go_after_a_day_and_their_readers_are_told(gallery: Door, world: World) -> None:
    async with streaming(gallery, "/v1/events") as stream:
        start = await stream.next()
        await gallery.submit(LAMP)
        seen = await stream.next()
    await gallery.submit(LAMP)  # read by nobody, and so never numbered
    await world.pass_time(hours=25)
    await world.graph.retention.step()
    assert await world.value("SELECT count(*) FROM live_events") == 0
    later = seen
    for number in (start.number, seen.number):
        async with streaming(gallery, "/v1/events", Last_Event_ID=str(number)) as stream:
            reset = await stream.next()
            assert reset.name == "reset"
            await gallery.submit(LAMP)
            later = await stream.next()
            assert (later.name, later.number) == ("task", reset.number + 1)
    async with streaming(gallery, "/v1/events", Last_Event_ID=str(later.number)) as stream:
        task_id = (await gallery.submit(LAMP)).json["id"]
        assert (await stream.next()).document["id"] == task_id


async def test_what_can_be_resumed_is_kept(gallery: Door, world: World) -> None:
    async with streaming(gallery, "/v1/events") as stream:
        start = await stream.next()
    task_id = (await gallery.submit(LAMP)).json["id"]
    await world.pass_time(hours=23)
    await world.graph.retention.step()
    async with streaming(gallery, "/v1/events", Last_Event_ID=str(start.number)) as stream:
        assert (await stream.next()).document["id"] == task_id


async def test_after_a_restore_every_reader_begins_anew(gallery: Door, world: World) -> None:
    async with streaming(gallery, "/v1/events") as stream:
        start = await stream.next()
    await mark_restored(world.database, Actor("os:root"))
    async with streaming(gallery, "/v1/events", Last_Event_ID=str(start.number)) as stream:
        assert (await stream.next()).name == "reset"


async def test_the_database_shows_the_stages_that_the_rules_name(door: Door) -> None:
    async with door.database.connection() as connection:
        for state in State:
            for reason in (None, *ReviewReason):
                said = await connection.fetchval("SELECT stage_of($1, $2)", str(state), reason)
                assert STAGES[said] == public_stage(state, reason)


async def test_frames_hold_json_of_one_line(door: Door) -> None:
    task_id = await submitted(door, metadata={"note": "two\nlines"})
    async with door.session.get(
        f"{door.url}/v1/tasks/{task_id}/events", headers=door.caller.headers
    ) as answer:
        lines = [await answer.content.readline() for _ in range(6)]
    data = next(line for line in lines if line.startswith(b"data: "))
    assert json.loads(data[6:])["id"] == task_id
