"""The client: one key for every try, patience with bounds, and bytes that are the right ones."""

from __future__ import annotations

import asyncio
import inspect
import json
import os
import socket
from collections.abc import AsyncIterator
from itertools import islice
from pathlib import Path

import pytest

from safelight.client import ApiError, AsyncClient, Client, ClientError, DownloadError, ServiceUnreachable
from safelight.client.endpoints import PlainWebhookEndpoints, WebhookEndpoints
from safelight.client.pace import MAX_TRIES, gap_before_retry, gaps_between_looks, seconds_of
from tests.client.fake_api import KEY, PICTURE, FakeApi


@pytest.fixture
async def client(api: FakeApi) -> AsyncIterator[AsyncClient]:
    """A client of the fake API."""
    async with AsyncClient(api.url, KEY) as client:
        yield client


def names_in(folder: Path) -> list[str]:
    """What lies there, half-written files too."""
    return sorted(entry.name for entry in folder.iterdir())


async def test_a_submit_is_sent_with_its_fields_and_no_empty_ones(client: AsyncClient, api: FakeApi) -> None:
    receipt = await client.create("ein röter Schuh", n=2, model=None, options={"lab": {"fail": 1}})
    assert (receipt.id, receipt.status, receipt.is_replayed) == ("task-1", "processing", False)
    assert receipt.key == api.keys[0]
    assert json.loads(api.bodies[0]) == {
        "operation": "generate",
        "prompt": "ein röter Schuh",
        "n": 2,
        "options": {"lab": {"fail": 1}},
    }


@pytest.mark.parametrize("trouble", ["drop", 409, 429, 500, 502, 503, 504])
async def test_every_try_of_a_submit_carries_the_same_key_and_body(
    client: AsyncClient, api: FakeApi, trouble: str | int
) -> None:
    api.submits = [trouble, trouble]
    receipt = await client.create("a red shoe")
    assert api.keys == [receipt.key] * 3
    assert len(set(api.bodies)) == 1


async def test_two_submits_have_two_keys_and_a_given_key_is_used(client: AsyncClient, api: FakeApi) -> None:
    await client.create("a red shoe")
    await client.create("a red shoe")
    await client.create("a red shoe", idempotency_key="order-1001")
    assert len(set(api.keys)) == 3
    assert api.keys[2] == "order-1001"


@pytest.mark.parametrize("key", ["", "two words", "é", "x" * 256, "line\nbreak"])
async def test_a_key_that_cannot_be_one_is_refused_before_it_is_sent(
    client: AsyncClient, api: FakeApi, key: str
) -> None:
    with pytest.raises(ApiError, match="idempotency-key-invalid"):
        await client.create("a red shoe", idempotency_key=key)
    assert api.keys == []


async def test_a_refusal_is_not_repeated_and_tells_why(client: AsyncClient, api: FakeApi) -> None:
    api.submits = [402]
    with pytest.raises(ApiError) as caught:
        await client.create("a red shoe")
    error = caught.value
    assert (error.status, error.code, error.detail, error.request_id) == (
        402,
        "told-so",
        "As it was told.",
        "request-1",
    )
    assert len(api.keys) == 1


async def test_tries_are_bounded(client: AsyncClient, api: FakeApi, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("safelight.client.pace.FIRST_GAP_S", 0.001)
    api.submits = [503] * 50
    with pytest.raises(ApiError, match="503"):
        await client.create("a red shoe")
    assert len(api.keys) == MAX_TRIES


async def test_a_service_that_wants_us_away_for_long_is_believed(client: AsyncClient, api: FakeApi) -> None:
    api.submits, api.retry_after = [429] * 50, "3600"
    with pytest.raises(ApiError) as caught:
        await client.create("a red shoe")
    assert caught.value.retry_after_s == 3600
    assert len(api.keys) == 1


def test_retry_after_is_never_undercut_and_gaps_grow() -> None:
    assert all(2.0 <= (gap_before_retry(1, 2.0) or 0) <= 2.4 for _ in range(100))
    assert (gap_before_retry(4) or 0) >= 1.6
    assert gap_before_retry(MAX_TRIES) is None
    assert gap_before_retry(1, 31.0) is None


def test_gaps_between_looks_grow_from_a_fifth_of_a_second_to_two() -> None:
    gaps = list(islice(gaps_between_looks(), 60))
    assert 0.16 <= gaps[0] <= 0.24
    assert all(1.6 <= gap <= 2.4 for gap in gaps[20:])
    assert max(gaps[20:]) - min(gaps[20:]) > 0.2


@pytest.mark.parametrize(
    ("header", "seconds"), [("5", 5.0), (None, None), ("-1", None), ("Wed, 21 Oct", None), ("²", None)]
)
def test_a_retry_after_is_read_only_as_seconds(header: str | None, seconds: float | None) -> None:
    assert seconds_of(header) == seconds


async def test_nobody_at_the_address_is_said_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("safelight.client.pace.FIRST_GAP_S", 0.001)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        async with AsyncClient(f"http://127.0.0.1:{taken.getsockname()[1]}", KEY) as client:
            with pytest.raises(ServiceUnreachable, match=r"http://127\.0\.0\.1"):
                await client.get("task-1")


@pytest.mark.parametrize("url", ["", "localhost:8000", "ftp://x", "http://", "http://x:99999", "file:///etc"])
def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(ClientError, match="no address"):
        AsyncClient(url, KEY)


@pytest.mark.parametrize("key", ["", " ", "two words", "line\nbreak", "é"])
def test_an_api_key_that_cannot_be_one_is_refused_and_not_shown(key: str) -> None:
    with pytest.raises(ClientError, match="no API key"):
        AsyncClient("http://127.0.0.1:8000", key)


@pytest.mark.parametrize("task_id", ["", "..", "../balance", "a/b", "a?b", "a%2Fb", "x" * 200])
async def test_an_id_cannot_leave_its_place_in_the_path(
    client: AsyncClient, api: FakeApi, task_id: str
) -> None:
    with pytest.raises(ApiError) as caught:
        await client.get(task_id)
    assert caught.value.status == 404
    assert api.heard == []


async def test_an_answer_of_another_shape_is_one_error(client: AsyncClient, api: FakeApi) -> None:
    api.looks = [{"credits": None}]
    with pytest.raises(ApiError, match="unreadable-answer"):
        await client.get("task-1")


async def test_a_watch_yields_what_it_sees_and_ends_with_the_task(client: AsyncClient, api: FakeApi) -> None:
    api.looks = [api.processing("waiting"), api.processing(percent=40), {}]
    seen = [
        (task.status, task.progress.stage, task.progress.percent) async for task in client.watch("task-1")
    ]
    assert seen == [("processing", "waiting", None), ("processing", "drawing", 40), ("ready", "done", None)]


async def test_a_wait_survives_a_restart_of_the_service(client: AsyncClient, api: FakeApi) -> None:
    api.looks = [api.processing(), "drop", 503, {}]
    assert (await client.wait("task-1")).status == "ready"


async def test_a_wait_outlasts_a_service_that_is_down_for_longer_than_a_call(
    client: AsyncClient, api: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("safelight.client.pace.FIRST_GAP_S", 0.001)
    api.looks = [api.processing(), *["drop"] * (MAX_TRIES * 2 + 1), {}]
    assert (await client.wait("task-1")).status == "ready"


async def test_a_wait_ends_after_its_time(client: AsyncClient, api: FakeApi) -> None:
    api.looks = [api.processing()]
    with pytest.raises(TimeoutError):
        await client.wait("task-1", timeout_s=0.3)


async def test_a_failed_task_tells_why(client: AsyncClient, api: FakeApi) -> None:
    api.looks = [api.failed()]
    task = await client.wait("task-1")
    assert task.is_finished
    assert task.failure is not None
    assert (task.failure.failure_class, task.failure.is_retryable) == ("content_blocked", False)


async def test_a_cancel_that_comes_too_late_is_not_repeated(client: AsyncClient, api: FakeApi) -> None:
    api.submits = [409]
    with pytest.raises(ApiError, match="not-cancelable"):
        await client.cancel("task-1")
    assert len(api.heard) == 1


async def test_a_cancel_says_how_the_task_stands_then(client: AsyncClient, api: FakeApi) -> None:
    api.looks = [api.processing()]
    assert (await client.cancel("task-1")).status == "processing"


async def test_an_erased_task_is_shown_as_it_is_then(client: AsyncClient, api: FakeApi) -> None:
    erased = await client.erase("task-1")
    assert (erased.status, erased.prompt, erased.assets) == ("ready", "", ())
    assert [method for method, _, _ in api.heard] == ["POST", "GET"]


async def test_a_task_under_way_is_not_erased_and_not_asked_for_twice(
    client: AsyncClient, api: FakeApi
) -> None:
    api.submits = [409]
    with pytest.raises(ApiError, match="not-erasable"):
        await client.erase("task-1")
    assert len(api.heard) == 1


@pytest.mark.parametrize("damaged", [b"", PICTURE[:-1], PICTURE + b"more", b"x" * len(PICTURE), 503])
async def test_damaged_bytes_are_fetched_again(
    client: AsyncClient, api: FakeApi, damaged: bytes | int
) -> None:
    api.downloads = [damaged]
    (asset,) = (await client.get("task-1")).assets
    assert await client.download(asset) == PICTURE


async def test_bytes_that_stay_damaged_are_refused(
    client: AsyncClient, api: FakeApi, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("safelight.client.pace.FIRST_GAP_S", 0.001)
    api.downloads = [b"something else"] * 50
    (asset,) = (await client.get("task-1")).assets
    with pytest.raises(DownloadError, match="do not match"):
        await client.save(asset, tmp_path / "shoe.png")
    assert names_in(tmp_path) == []


async def test_a_save_replaces_the_file_as_a_whole_and_keeps_its_mode(
    client: AsyncClient, tmp_path: Path
) -> None:
    (asset,) = (await client.get("task-1")).assets
    path, link = tmp_path / "shoe.png", tmp_path / "link.png"
    path.write_bytes(b"an older and much longer picture" * 10)
    path.chmod(0o640)
    link.symlink_to(path)
    await client.save(asset, link)
    assert path.read_bytes() == PICTURE
    assert path.stat().st_mode & 0o777 == 0o640
    assert link.is_symlink()
    assert names_in(tmp_path) == ["link.png", "shoe.png"]


async def test_a_pipe_is_written_to_and_not_replaced(client: AsyncClient, tmp_path: Path) -> None:
    (asset,) = (await client.get("task-1")).assets
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read = asyncio.create_task(asyncio.to_thread(pipe.read_bytes))
    await client.save(asset, pipe)
    assert await read == PICTURE
    assert pipe.is_fifo()


async def test_lists_come_page_by_page(client: AsyncClient, api: FakeApi) -> None:
    first = await client.list(limit=1, status="ready")
    second = await client.list(cursor=first.next_cursor)
    assert [task.id for task in (*first.data, *second.data)] == ["task-1", "task-2"]
    assert second.next_cursor is None
    assert [query for _, _, query in api.heard] == [{"limit": "1", "status": "ready"}, {"cursor": "more"}]


async def test_balance_and_entries_are_read(client: AsyncClient) -> None:
    balance = await client.balance()
    assert (balance.available, balance.held) == (990, 10)
    assert [entry["kind"] for entry in (await client.entries()).data] == ["grant"]


def test_the_plain_client_does_the_same_without_a_loop(api: FakeApi, tmp_path: Path) -> None:
    api.looks = [api.processing(), {}]
    with Client(api.url, KEY) as client:
        receipt = client.create("a red shoe", n=1)
        assert [task.status for task in client.watch(receipt.id)] == ["processing", "ready"]
        task = client.wait(receipt.id)
        client.save(task.assets[0], tmp_path / "shoe.png")
        assert client.balance().available == 990
        with pytest.raises(ApiError):
            client.get("task-9")
    assert (tmp_path / "shoe.png").read_bytes() == PICTURE


@pytest.mark.parametrize(
    ("plain", "asynchronous"), [(Client, AsyncClient), (PlainWebhookEndpoints, WebhookEndpoints)]
)
def test_the_plain_client_has_every_call_with_the_same_parameters(plain: type, asynchronous: type) -> None:
    def calls(owner: type) -> dict[str, list[inspect.Parameter]]:
        return {
            name: list(inspect.signature(call).parameters.values())
            for name, call in inspect.getmembers(owner, inspect.isfunction)
            if not name.startswith("_")
        }

    assert calls(plain) == calls(asynchronous)


async def test_the_plain_client_works_inside_a_running_loop(api: FakeApi) -> None:
    with Client(api.url, KEY) as client:
        assert client.get("task-1").status == "ready"
    client.close()
