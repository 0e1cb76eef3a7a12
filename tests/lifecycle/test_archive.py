"""Results into our own storage: a copy is retried, a generation never."""

from __future__ import annotations

import asyncio
import socket
from dataclasses import replace
from uuid import UUID

import pytest

from safelight.assets.store import staging_key
from safelight.domain.provider import Capabilities, Origin, Output
from safelight.domain.task import State
from safelight.errors import AssetError, ProviderError
from safelight.telemetry import set_fault_hook
from tests.lifecycle.invariants import assert_books, fingerprint, history
from tests.lifecycle.upstreams import (
    Scripted,
    done,
    in_turn,
    install,
    pass_until_due,
    picture,
    result_host,
    run_task,
    running,
)
from tests.world import Server, World, running_world

NAME = "lab-callback"
CALLS_BACK = Capabilities(calls_back=True)


class KilledError(BaseException):
    """Stands for a death at a fault point: no code of ours catches it."""


async def drawn(world: World, shape: str = "lab-poll", **wish: object) -> UUID:
    """A task whose results wait to be copied."""
    before = len((await world.lab_ledger())["items"])
    task_id = await run_task(world, shape, **wish)
    await world.until_drawn(before + 1)
    await pass_until_due(world, task_id)
    await world.look(shape)
    assert await world.state(task_id) is State.ARCHIVING
    return task_id


async def copy_again(world: World, task_id: UUID) -> None:
    """Wait for the next try, have the sweep wake it, and do its job."""
    await pass_until_due(world, task_id)
    await world.graph.sweep.wake()
    await world.archive_all()


async def ending(world: World, task_id: UUID) -> tuple[str, str | None, int, int]:
    (row,) = await world.rows(
        "SELECT state, failure_code, captured, released FROM tasks JOIN settlements ON task_id = id WHERE id = $1",
        task_id,
    )
    return row["state"], row["failure_code"], row["captured"], row["released"]


async def test_a_result_is_kept_byte_for_byte_before_the_task_is_ready(world: World) -> None:
    task_id = await drawn(world, n=2)
    await world.archive_all()
    assert await ending(world, task_id) == ("succeeded", None, 2, 0)
    assets = await world.rows(
        "SELECT store_key, bytes, sha256, width, height, content_type FROM assets ORDER BY position"
    )
    assert [(row["width"], row["height"], row["content_type"]) for row in assets] == [
        (64, 64, "image/png")
    ] * 2
    for row in assets:
        data = await world.graph.context.store.get(row["store_key"])
        assert len(data) == row["bytes"]
        assert row["store_key"].startswith(f"{world.account_id}/")


@pytest.mark.parametrize("step", ["html", "cut", "error"])
async def test_a_copy_that_went_wrong_is_tried_again_and_only_the_copy(server: Server, step: str) -> None:
    async with (
        result_host(step, step) as host,
        running_world(server, allowed_origins=(host.url,)) as world,
    ):
        provider = install(
            world, Scripted(NAME, CALLS_BACK, poll_does=in_turn(done(Output(url=f"{host.url}/1.png"))))
        )
        task_id = await run_task(world)
        await pass_until_due(world, task_id)
        await world.look()
        await world.archive_all()
        assert (await world.state(task_id), host.asked) == (State.ARCHIVING, 1)
        assert await world.balance() == (999, 1)
        for asked in (2, 3):
            await copy_again(world, task_id)
            assert host.asked == asked
        assert await ending(world, task_id) == ("succeeded", None, 1, 0)
        assert len(provider.submissions) == 1
        await assert_books(world)


@pytest.mark.parametrize("knob", ["html_result", "truncate_result"])
async def test_a_result_that_never_comes_whole_is_lost_and_released_but_not_drawn_again(
    world: World, knob: str
) -> None:
    await world.knobs(**{knob: 1})
    task_id = await drawn(world)
    await world.archive_all()
    tries = 1
    while await world.state(task_id) is State.ARCHIVING and tries < 12:
        await copy_again(world, task_id)
        tries += 1
    assert 3 <= tries <= 7
    assert await ending(world, task_id) == ("failed", "result_lost", 0, 1)
    await world.pass_time(seconds=200)
    await world.dispatch("lab-poll")
    assert (await world.lab_ledger())["accepted"] == 1


async def test_some_of_several_pictures_are_delivered_and_the_rest_is_released(world: World) -> None:
    await world.knobs(partial=1)
    task_id = await drawn(world, n=6)
    delivered = (await world.lab_ledger())["items"][0]["billed"]
    assert 1 <= delivered < 6
    await world.archive_all()
    assert await ending(world, task_id) == ("succeeded", None, delivered, 6 - delivered)
    assert await world.balance() == (1_000 - delivered, 0)


async def test_the_pictures_that_could_be_copied_are_delivered_when_others_are_lost(server: Server) -> None:
    async with result_host() as host, running_world(server, allowed_origins=(host.url,)) as world:
        outputs = (
            Output(url=f"{host.url}/1.png"),
            Output(url="https://127.0.0.1/2.png"),
            Output(url=f"{host.url}/3.png"),
        )
        install(world, Scripted(NAME, CALLS_BACK, poll_does=in_turn(done(*outputs))))
        task_id = await run_task(world, n=3)
        await pass_until_due(world, task_id)
        await world.look()
        await world.archive_all()
        assert await ending(world, task_id) == ("succeeded", None, 2, 1)
        assert [row["position"] for row in await world.rows("SELECT position FROM assets ORDER BY 1")] == [
            0,
            2,
        ]
        await assert_books(world)


async def test_an_expired_url_is_replaced_by_a_fresh_one_of_another_look(world: World) -> None:
    await world.knobs(expire_result_s=0.05)
    task_id = await drawn(world)
    before = (await world.lab_ledger())["polls"]
    await asyncio.sleep(0.06)  # the lab's own clock: its URLs really expire
    await world.knobs(expire_result_s=None)
    await world.archive_all()
    assert (await world.lab_ledger())["polls"] == before + 1
    assert await ending(world, task_id) == ("succeeded", None, 1, 0)
    assert (await world.lab_ledger())["accepted"] == 1


async def test_an_expired_url_without_a_fresh_one_is_a_lost_result(server: Server) -> None:
    async with (
        result_host(*["gone"] * 9) as host,
        running_world(server, allowed_origins=(host.url,)) as world,
    ):
        url = Output(url=f"{host.url}/1.png")
        provider = install(world, Scripted(NAME, CALLS_BACK, poll_does=in_turn(done(url))))
        task_id = await run_task(world)
        await pass_until_due(world, task_id)
        await world.look()
        await world.archive_all()
        assert provider.polls == 2
        assert await ending(world, task_id) == ("failed", "result_lost", 0, 1)
        assert len(provider.submissions) == 1
        await assert_books(world)


async def test_a_provider_that_cannot_be_asked_for_a_fresh_url_just_now_is_asked_later(
    server: Server,
) -> None:
    async with (
        result_host("gone", "gone") as host,
        running_world(server, allowed_origins=(host.url,)) as world,
    ):
        url = done(Output(url=f"{host.url}/1.png"))
        install(world, Scripted(NAME, CALLS_BACK, poll_does=in_turn(url, ProviderError("502"), url)))
        task_id = await run_task(world)
        await pass_until_due(world, task_id)
        await world.look()
        await world.archive_all()
        assert await world.state(task_id) is State.ARCHIVING, (
            "a poll error is no verdict: the picture is paid for"
        )
        for _ in range(2):
            await copy_again(world, task_id)
        assert await ending(world, task_id) == ("succeeded", None, 1, 0)
        await assert_books(world)


@pytest.mark.parametrize(
    "url",
    [
        "https://127.0.0.1/1.png",
        "https://10.0.0.7/1.png",
        "https://169.254.169.254/latest/meta-data",
        "https://[::1]/1.png",
        "https://[64:ff9b::a00:1]/1.png",
        "http://127.0.0.1:9/1.png",
        "ftp://example.com/1.png",
        "file:///etc/passwd",
        "https://ex\0ample.com/1.png",
        "https://\ud800.example.com/1.png",
        "",
    ],
)
async def test_a_result_at_an_address_we_never_fetch_is_lost_without_a_connection(
    world: World, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(
        world, Scripted(NAME, CALLS_BACK, poll_does=in_turn(done(Output(url=url), links={"result": url})))
    )
    task_id = await run_task(world)
    await pass_until_due(world, task_id)
    await world.look()
    connected: list[object] = []
    connect = socket.socket.connect

    def watched(self: socket.socket, address: object) -> None:
        connected.append(address)
        connect(self, address)  # type: ignore[arg-type]  # whatever the caller passes on

    monkeypatch.setattr(socket.socket, "connect", watched)
    await world.graph.archive.archive(task_id)
    assert connected == []
    assert await ending(world, task_id) == ("failed", "result_lost", 0, 1)


async def test_a_failing_storage_stops_dispatch_everywhere_and_recovers(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    task_id = await drawn(world)
    store = world.graph.context.store
    put = store.put

    async def full(key: str, data: bytes) -> None:
        raise AssetError("storage", "disk full", is_retryable=True)

    monkeypatch.setattr(store, "put", full)
    waiting = await world.submit()
    for _ in range(8):
        await copy_again(world, task_id)
    assert await world.state(task_id) is State.ARCHIVING, "our own trouble is no lost result"
    (gate,) = await world.rows(
        "SELECT closed_until > clock_now() AS is_closed, reason FROM gates WHERE name = 'storage'"
    )
    assert tuple(gate) == (True, "storage")
    await world.dispatch()
    assert await world.state(waiting) is State.QUEUED
    monkeypatch.setattr(store, "put", put)
    await world.pass_time(seconds=80)
    await world.graph.sweep.tidy()
    await world.dispatch()
    assert await world.state(waiting) is State.RUNNING
    await world.archive_all()
    assert await ending(world, task_id) == ("succeeded", None, 1, 0)
    assert await world.value("SELECT failures FROM gates WHERE name = 'storage'") == 0


async def test_after_an_hour_of_failing_storage_a_person_looks_and_the_picture_still_comes(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    task_id = await drawn(world)
    store = world.graph.context.store
    put = store.put

    async def full(key: str, data: bytes) -> None:
        raise AssetError("storage", "disk full", is_retryable=True)

    monkeypatch.setattr(store, "put", full)
    await world.pass_time(seconds=3_601)
    await world.archive_all()
    (row,) = await world.rows("SELECT state, review_reason FROM tasks")
    assert tuple(row) == ("review", "archive_stuck")
    assert await world.balance() == (999, 1)
    monkeypatch.setattr(store, "put", put)
    await pass_until_due(world, task_id)
    await world.look("lab-poll")
    await world.archive_all()
    assert await ending(world, task_id) == ("succeeded", None, 1, 0)


async def test_a_staged_picture_that_waits_for_a_person_is_archived_once_the_storage_works(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A synchronous upstream brings no more news; the bytes lie in our own staging area."""
    task_id = await run_task(world, "lab-sync")
    store = world.graph.context.store
    put = store.put

    async def full(key: str, data: bytes) -> None:
        raise AssetError("storage", "disk full", is_retryable=True)

    monkeypatch.setattr(store, "put", full)
    await world.pass_time(seconds=3_601)
    await world.archive_all()
    assert await world.state(task_id) is State.REVIEW
    monkeypatch.setattr(store, "put", put)
    for _ in range(2):
        await pass_until_due(world, task_id)
        await world.graph.sweep.tidy()
        await world.look("lab-sync")
        await world.archive_all()
    assert await world.state(task_id) is State.SUCCEEDED


async def test_a_job_that_runs_twice_or_late_does_no_harm(world: World) -> None:
    task_id = await drawn(world, n=2)
    await asyncio.gather(*(world.graph.archive.archive(task_id) for _ in range(4)))
    assert await ending(world, task_id) == ("succeeded", None, 2, 0)
    before = await fingerprint(world)
    await world.graph.archive.archive(task_id)
    await world.graph.archive.archive(UUID(int=5))
    assert await fingerprint(world) == before
    assert await world.value("SELECT count(*) FROM assets") == 2


@pytest.mark.parametrize("place", ["before_decode", "after_decode", "after_put", "before_settle_commit"])
async def test_a_death_during_archiving_costs_only_the_copy(world: World, place: str) -> None:
    task_id = await drawn(world)

    def die(name: str) -> None:
        if name == place:
            raise KilledError

    set_fault_hook(die)
    try:
        with pytest.raises(KilledError):
            await world.graph.archive.archive(task_id)
    finally:
        set_fault_hook(None)
    assert await world.state(task_id) is State.ARCHIVING
    assert await world.value("SELECT count(*) FROM assets") == 0
    await copy_again(world, task_id)
    assert await ending(world, task_id) == ("succeeded", None, 1, 0)
    assert (await world.lab_ledger())["accepted"] == 1


async def test_a_picture_that_kills_its_worker_is_given_up_at_the_third_try(world: World) -> None:
    task_id = await drawn(world)

    def die(name: str) -> None:
        if name == "before_decode":
            raise KilledError

    set_fault_hook(die)
    try:
        for _ in range(3):
            with pytest.raises(KilledError):
                await world.graph.archive.archive(task_id)
    finally:
        set_fault_hook(None)
    good = await drawn(world)
    await world.archive_all()
    assert await ending(world, task_id) == ("failed", "result_lost", 0, 1)
    assert (await ending(world, good))[0] == "succeeded"


async def test_ordinary_retries_do_not_count_as_deaths(server: Server) -> None:
    async with (
        result_host(*["cut"] * 4) as host,
        running_world(server, allowed_origins=(host.url,)) as world,
    ):
        install(world, Scripted(NAME, CALLS_BACK, poll_does=in_turn(done(Output(url=f"{host.url}/1.png")))))
        task_id = await run_task(world)
        await pass_until_due(world, task_id)
        await world.look()
        await world.archive_all()
        for _ in range(4):
            await copy_again(world, task_id)
        assert await ending(world, task_id) == ("succeeded", None, 1, 0)
        await assert_books(world)


async def test_staged_bytes_go_when_the_task_is_settled_and_never_before(world: World) -> None:
    task_id = await run_task(world, "lab-sync")
    store, key = world.graph.context.store, staging_key(task_id, 1, 0)
    await world.graph.archive.unstage(task_id)
    assert await store.exists(key)
    await world.archive_all()
    assert await world.value("SELECT count(*) FROM pgqueuer.pgqueuer WHERE entrypoint = 'unstage'") == 1
    await world.graph.archive.unstage(task_id)
    assert not await store.exists(key)
    (asset,) = await world.rows("SELECT store_key FROM assets")
    assert await store.exists(asset["store_key"])


async def test_pictures_inside_a_fresh_look_are_kept_too(server: Server) -> None:
    """The URL has expired, and the upstream now answers with the picture itself."""
    async with result_host("gone") as host, running_world(server, allowed_origins=(host.url,)) as world:
        first, fresh = done(Output(url=f"{host.url}/1.png")), done(Output(data=picture()))
        install(world, Scripted(NAME, CALLS_BACK, poll_does=in_turn(first, fresh)))
        task_id = await run_task(world)
        await pass_until_due(world, task_id)
        await world.look()
        await world.archive_all()
        assert await ending(world, task_id) == ("succeeded", None, 1, 0)
        await assert_books(world)


async def test_a_success_without_a_picture_fails_and_is_not_drawn_again(world: World) -> None:
    empty = replace(done(), outputs=())
    provider = install(world, Scripted(NAME, CALLS_BACK, poll_does=in_turn(running(), empty)))
    task_id = await run_task(world)
    for _ in range(2):
        await pass_until_due(world, task_id)
        await world.look()
    assert await ending(world, task_id) == ("failed", "result_unusable", 0, 1)
    assert len(provider.submissions) == 1
    assert (await history(world, task_id))[-2:] == ["running", "failed"]
    assert empty.origin is Origin.POLL
