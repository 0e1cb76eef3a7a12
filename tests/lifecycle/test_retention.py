"""Retention and erasure: what a task said and drew goes, what it cost and how it ended stays."""

from __future__ import annotations

import asyncio
import io
import os
from pathlib import Path
from typing import Any, cast
from uuid import UUID

import asyncpg
import pytest
from PIL import Image

from safelight.assets.local import LocalStore
from safelight.assets.store import new_key, staging_key, thumbnail_key
from safelight.db import retention as rows
from safelight.domain.task import State
from safelight.errors import AssetError, RequestError
from safelight.lifecycle.retention import Erase, Retention
from safelight.settings import Settings
from safelight.telemetry import set_fault_hook
from tests.lifecycle.invariants import history
from tests.world import World

SECRET_PROMPT = "a birthday card for Ottilie"
POLICIES = ("keep_tasks_days", "keep_assets_days", "keep_events_days", "keep_callbacks_days")


class Died(BaseException):
    """The process is gone at a named point."""


def retention(world: World, **days: int) -> Retention:
    """The worker's own, with these settings and no others."""
    none = dict.fromkeys(POLICIES, 0)
    settings = world.graph.settings.model_copy(update={**none, **days})
    return Retention(world.database, world.graph.context.store, settings)


async def finished(world: World, *, model: str = "lab-poll", **wish: Any) -> UUID:
    """A task with its picture, ended now."""
    task_id = await world.submit(model, prompt=SECRET_PROMPT, metadata={"order": "O-77"}, **wish)
    await world.dispatch(model)
    await world.until_drawn(1)
    await world.pass_time(minutes=5)
    await world.look(model)
    await world.archive_all()
    assert await world.state(task_id) is State.SUCCEEDED
    return task_id


async def erase(world: World, task_id: UUID, *, account_id: UUID | None = None) -> None:
    await Erase(world.database, world.graph.context.store).erase(account_id or world.account_id, task_id)


async def everything_said(world: World) -> str:
    """Every row of every table as text."""
    tables = await world.rows(
        "SELECT format('%I.%I', schemaname, tablename) AS name FROM pg_tables"
        " WHERE schemaname IN ('safelight', 'pgqueuer')"
    )
    texts = [
        await world.value(f"SELECT coalesce(string_agg(one::text, ' '), '') FROM {table['name']} AS one")
        for table in tables
    ]
    return " ".join(texts)


async def asset_of(world: World, task_id: UUID) -> asyncpg.Record:
    (asset,) = await world.rows("SELECT * FROM assets WHERE task_id = $1", task_id)
    return asset


async def test_an_erased_task_says_nothing_and_its_money_stays(world: World) -> None:
    task_id = await finished(world)
    asset = await asset_of(world, task_id)
    store = world.graph.context.store
    await store.put(thumbnail_key(asset["id"]), b"small")
    before = await world.balance()
    await erase(world, task_id)
    said = await everything_said(world)
    assert "Ottilie" not in said
    assert "O-77" not in said
    assert await world.balance() == before
    assert not await store.exists(asset["store_key"])
    assert not await store.exists(thumbnail_key(asset["id"]))
    assert await world.value("SELECT captured FROM settlements WHERE task_id = $1", task_id) == 1
    kept = await asset_of(world, task_id)
    assert (kept["sha256"], kept["bytes"]) == (asset["sha256"], asset["bytes"])
    assert kept["deleted_at"] >= kept["doomed_at"]
    assert await history(world, task_id) == ["queued", "submitting", "running", "archiving", "succeeded"]


async def test_erasing_again_changes_nothing(world: World) -> None:
    task_id = await finished(world)
    await erase(world, task_id)
    erased_at = await world.value("SELECT erased_at FROM tasks WHERE id = $1", task_id)
    await world.pass_time(hours=1)
    await erase(world, task_id)
    assert await world.value("SELECT erased_at FROM tasks WHERE id = $1", task_id) == erased_at


async def test_an_open_task_cannot_be_erased(world: World) -> None:
    task_id = await world.submit(prompt=SECRET_PROMPT)
    with pytest.raises(RequestError, match="when it has ended") as refused:
        await erase(world, task_id)
    assert refused.value.status == 409
    assert (await world.task(task_id)).prompt == SECRET_PROMPT


async def test_anothers_task_is_not_found(world: World) -> None:
    task_id = await finished(world)
    with pytest.raises(RequestError) as refused:
        await erase(world, task_id, account_id=UUID(int=1))
    assert refused.value.status == 404
    assert (await world.task(task_id)).prompt == SECRET_PROMPT


async def test_inputs_of_an_erased_task_are_deleted_and_those_of_an_open_one_stay(world: World) -> None:
    uploads = world.graph.uploads
    first = await uploads.keep(world.account_id, _png(3))
    second = await uploads.keep(world.account_id, _png(4))
    task_id = await world.submit(images=(first.id, second.id), operation="edit")
    waiting = await world.submit(images=(second.id,), operation="edit")
    await world.cancel.cancel(world.account_id, task_id)
    await erase(world, task_id)
    await uploads.expire()
    left = {row["id"] for row in await world.rows("SELECT id FROM uploads WHERE doomed_at IS NULL")}
    assert left == {second.id}
    assert not await world.graph.context.store.exists(first.store_key)
    assert (await world.task(waiting)).images == [second.id]


async def test_bytes_that_cannot_be_deleted_now_are_deleted_by_a_worker(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    task_id = await finished(world)
    store = cast("LocalStore", world.graph.context.store)
    asset = await asset_of(world, task_id)

    async def fail(key: str) -> None:
        raise AssetError("storage", f"no {key}", is_retryable=True)

    with monkeypatch.context() as patched:
        patched.setattr(store, "delete", fail)
        await erase(world, task_id)
    kept = await asset_of(world, task_id)
    assert kept["doomed_at"] is not None
    assert kept["deleted_at"] is None
    await retention(world).step()
    assert (await asset_of(world, task_id))["deleted_at"] is not None
    assert not await store.exists(asset["store_key"])


@pytest.mark.parametrize("place", ["after_erase", "after_bytes_deleted"])
async def test_a_death_in_an_erasure_is_made_up_for(world: World, place: str) -> None:
    task_id = await finished(world)

    def die(name: str) -> None:
        if name == place:
            raise Died

    set_fault_hook(die)
    try:
        with pytest.raises(Died):
            await erase(world, task_id)
    finally:
        set_fault_hook(None)
    assert "Ottilie" not in await everything_said(world)
    await retention(world).step()
    assert (await asset_of(world, task_id))["deleted_at"] is not None


async def test_policies_take_what_is_old_enough_and_leave_what_is_younger(world: World) -> None:
    old = await finished(world)
    await world.pass_time(days=31)
    young = await finished(world)
    await retention(world, keep_tasks_days=30, keep_events_days=30, keep_callbacks_days=30).step()
    assert (await world.task(old)).prompt == ""
    assert (await world.task(young)).prompt == SECRET_PROMPT
    assert await history(world, old) == []
    assert await history(world, young) != []
    assert (await asset_of(world, old))["deleted_at"] is not None
    assert (await asset_of(world, young))["doomed_at"] is None
    await _forget(world, old)


async def test_pictures_may_go_before_the_words(world: World) -> None:
    task_id = await finished(world)
    await world.pass_time(days=8)
    await retention(world, keep_assets_days=7, keep_tasks_days=30).step()
    assert (await asset_of(world, task_id))["deleted_at"] is not None
    assert (await world.task(task_id)).prompt == SECRET_PROMPT


async def test_for_ever_is_for_ever(world: World) -> None:
    task_id = await finished(world)
    await world.pass_time(days=5_000)
    await retention(world).step()
    assert (await world.task(task_id)).prompt == SECRET_PROMPT
    assert (await asset_of(world, task_id))["doomed_at"] is None
    assert await history(world, task_id) != []


async def test_what_is_open_is_never_taken(world: World) -> None:
    task_id = await world.submit(prompt=SECRET_PROMPT)
    await world.pass_time(days=40)
    await retention(world, keep_tasks_days=1, keep_events_days=1).step()
    assert (await world.task(task_id)).prompt == SECRET_PROMPT
    assert await history(world, task_id) == ["queued"]


async def test_a_thousand_tasks_go_in_batches_oldest_first(world: World) -> None:
    tasks = [await world.submit(prompt=SECRET_PROMPT) for _ in range(260)]
    for task_id in tasks:
        await world.cancel.cancel(world.account_id, task_id)
    await world.pass_time(days=2)
    async with world.database.transaction() as connection:
        taken = await rows.take_due(connection, "tasks", keep_days=1, room=100)
    oldest = await world.rows("SELECT id FROM tasks ORDER BY finished_at, id LIMIT 100")
    assert set(taken) == {row["id"] for row in oldest}
    await retention(world, keep_tasks_days=1).step()
    left = await world.value("SELECT count(*) FROM tasks WHERE erased_at IS NULL")
    assert left == 100  # those taken above, whose transaction erased nothing


async def test_a_policy_whose_lease_is_held_does_nothing_until_it_ends(world: World) -> None:
    await finished(world)
    await world.pass_time(days=2)
    async with world.database.connection() as connection:
        assert await rows.lease(connection, "tasks", lease_s=60.0)
        assert not await rows.lease(connection, "tasks", lease_s=60.0)
    await retention(world, keep_tasks_days=1).step()
    assert await world.value("SELECT count(*) FROM tasks WHERE erased_at IS NULL") == 1
    await world.pass_time(seconds=61)
    await retention(world, keep_tasks_days=1).step()
    assert await world.value("SELECT count(*) FROM tasks WHERE erased_at IS NULL") == 0


async def test_two_workers_at_once_erase_every_task_once(world: World) -> None:
    tasks = [await world.submit(prompt=SECRET_PROMPT) for _ in range(20)]
    for task_id in tasks:
        await world.cancel.cancel(world.account_id, task_id)
    await world.pass_time(days=2)
    policies = [retention(world, keep_tasks_days=1, keep_events_days=0) for _ in range(3)]
    await asyncio.gather(*(policy.step() for policy in policies))
    assert await world.value("SELECT count(*) FROM tasks WHERE erased_at IS NULL") == 0


async def test_a_history_cannot_be_deleted_by_the_way(world: World) -> None:
    task_id = await finished(world)
    with pytest.raises(asyncpg.RestrictViolationError, match="append-only"):
        await world.value("DELETE FROM task_events WHERE task_id = $1", task_id)


@pytest.mark.parametrize("table", ["entries", "settlements", "assets", "decisions", "audit_lines"])
async def test_money_and_audit_cannot_be_deleted_even_by_retention(world: World, table: str) -> None:
    task_id = await finished(world)
    if table in ("decisions", "audit_lines"):
        has_rule = await world.value(
            "SELECT count(*) FROM pg_trigger WHERE tgname = $1", f"{table}_append_only"
        )
        assert has_rule == 1
        return
    deletion = f"SET LOCAL safelight.retention = 'on'; DELETE FROM {table} WHERE task_id = '{task_id}'"
    async with world.database.connection() as connection:
        with pytest.raises(asyncpg.RestrictViolationError, match="append-only"):
            await connection.execute(deletion)


@pytest.mark.parametrize(
    "change",
    ["bytes = 1", "doomed_at = NULL", "deleted_at = NULL", "doomed_at = clock_now() + interval '1 day'"],
)
async def test_the_record_of_a_deleted_picture_does_not_change(world: World, change: str) -> None:
    await erase(world, await finished(world))
    with pytest.raises(asyncpg.RestrictViolationError, match="append-only"):
        await world.value(f"UPDATE assets SET {change}")


async def test_a_receipt_answers_until_its_days_are_over_although_its_task_is_erased(world: World) -> None:
    task_id = await finished(world)
    await erase(world, task_id)
    fingerprint = await world.value("SELECT fingerprint FROM receipts WHERE task_id = $1", task_id)
    await world.pass_time(days=29)
    await retention(world).step()
    again = await world.accept.find_receipt(world.account_id, "key-1", fingerprint)
    assert again is not None
    assert again.task_id == task_id
    await world.pass_time(days=2)
    await retention(world).step()
    assert await world.value("SELECT count(*) FROM receipts") == 0


async def test_a_receipt_outlives_its_days_while_its_task_is_open(world: World) -> None:
    task_id = await world.submit()
    fingerprint = await world.value("SELECT fingerprint FROM receipts WHERE task_id = $1", task_id)
    await world.pass_time(days=40)
    await retention(world).step()
    again = await world.accept.find_receipt(world.account_id, "key-1", fingerprint)
    assert again is not None
    await world.cancel.cancel(world.account_id, task_id)
    await retention(world).step()
    assert await world.accept.find_receipt(world.account_id, "key-1", fingerprint) is not None
    await world.pass_time(hours=25)
    await retention(world).step()
    assert await world.value("SELECT count(*) FROM receipts") == 0


async def test_stray_bytes_are_deleted_once_a_day_and_nothing_else(world: World) -> None:
    task_id = await finished(world)
    waiting = await world.submit()
    store = cast("LocalStore", world.graph.context.store)
    kept = [(await asset_of(world, task_id))["store_key"], staging_key(waiting, 1, 0)]
    upload = await world.graph.uploads.keep(world.account_id, _png(5))
    strays = [new_key(world.account_id, suffix="png"), staging_key(task_id, 1, 0), thumbnail_key(task_id)]
    for key in (kept[1], *strays):
        await store.put(key, b"x")
    for key in (*kept, *strays, upload.store_key):
        _age(store._root / key, days=3)
    await retention(world).prune()
    assert [await store.exists(key) for key in strays] == [False, False, False]
    assert all([await store.exists(key) for key in (*kept, upload.store_key)])
    await store.put(strays[0], b"x")
    _age(store._root / strays[0], days=3)
    await retention(world).prune()
    assert await store.exists(strays[0])  # once a day


def test_days_are_never_negative(tmp_path: Path) -> None:
    for name in (*POLICIES, "keep_receipts_days"):
        with pytest.raises(ValueError, match=name):
            Settings(data_dir=tmp_path, **{name: -1})


async def _forget(world: World, task_id: UUID) -> None:
    """Whole: the fixture compares every history with its row."""
    async with world.database.transaction() as connection:
        await connection.execute("SET LOCAL session_replication_role = replica")
        for table in ("task_events", "assets", "settlements", "entries", "receipts", "attempts", "callbacks"):
            await connection.execute(f"DELETE FROM {table} WHERE task_id = $1", task_id)
        await connection.execute("DELETE FROM tasks WHERE id = $1", task_id)
        await connection.execute(
            "UPDATE accounts SET available = (SELECT sum(available_delta) FROM entries),"
            " held = (SELECT sum(held_delta) FROM entries)"
        )


def _png(side: int) -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (side, side), (20 * side, 30, 30)).save(file, "PNG")
    return file.getvalue()


def _age(path: Path, *, days: int) -> None:
    modified = path.stat().st_mtime - days * 86_400
    os.utime(path, (modified, modified))
