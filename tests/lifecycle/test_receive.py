"""Callbacks: verified over the raw bytes, applied once, in whatever order and number they come."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from safelight.domain.provider import Capabilities, Trust
from safelight.domain.task import State
from safelight.errors import AssetError, CallbackRejected
from tests.lifecycle.invariants import fingerprint, history
from tests.lifecycle.upstreams import (
    GENUINE,
    Headers,
    Scripted,
    accepted,
    always,
    call_back,
    done,
    finished,
    in_turn,
    install,
    pass_until_due,
    record_of,
    ref_of,
    run_task,
    signed,
    still_running,
    token_of,
    uncertain,
    verdicts,
)
from tests.world import World

NAME = "lab-callback"
CALLS_BACK = Capabilities(calls_back=True, trust=Trust.BODY)


def genuine(**body: Any) -> tuple[Headers, bytes]:
    return GENUINE, json.dumps(body).encode()


async def test_a_genuine_callback_is_applied_once_and_kept_with_its_verdict(world: World) -> None:
    task_id, record = await finished(world)
    headers, raw = signed(record)
    for _ in range(3):
        await call_back(world, token_of(world, task_id), (headers, raw))
    assert await world.state(task_id) is State.ARCHIVING
    assert await verdicts(world) == ["applied", "duplicate", "duplicate"]
    (row,) = await world.rows(
        "SELECT task_id, attempt, provider_ref, body FROM callbacks WHERE verdict = 'applied'"
    )
    assert (row["task_id"], row["attempt"], row["provider_ref"], row["body"]) == (
        task_id,
        1,
        record["id"],
        raw,
    )
    await world.archive_all()
    assert await history(world, task_id) == ["queued", "submitting", "running", "archiving", "succeeded"]


async def test_the_same_callback_a_hundred_times_at_once_has_one_effect(world: World) -> None:
    task_id, record = await finished(world)
    token, callback = token_of(world, task_id), signed(record)
    await asyncio.gather(*(call_back(world, token, callback) for _ in range(100)))
    assert await history(world, task_id) == ["queued", "submitting", "running", "archiving"]
    kept = await verdicts(world)
    assert kept.count("applied") == 1
    assert set(kept) == {"applied", "duplicate"}
    assert await world.value("SELECT count(*) FROM pgqueuer.pgqueuer WHERE entrypoint = 'archive'") == 1
    await world.archive_all()
    await call_back(world, token, callback)
    assert await world.balance() == (999, 0)
    assert await world.value("SELECT count(*) FROM assets") == 1


async def test_a_failure_reported_many_times_releases_once(world: World) -> None:
    await world.knobs(moderate=1)
    task_id, record = await finished(world)
    token, callback = token_of(world, task_id), signed(record)
    await asyncio.gather(*(call_back(world, token, callback) for _ in range(30)), world.look())
    assert await world.state(task_id) is State.BLOCKED
    assert await world.value("SELECT count(*) FROM entries WHERE kind = 'settle'") == 1
    assert await world.balance() == (1_000, 0)


async def test_stored_bodies_are_capped_for_each_attempt(world: World) -> None:
    task_id, record = await finished(world)
    token, callback = token_of(world, task_id), signed(record)
    for _ in range(3):
        await asyncio.gather(*(call_back(world, token, callback) for _ in range(30)))
    assert await world.value("SELECT count(*) FROM callbacks") <= 50 + 30


async def test_an_early_callback_finds_its_task_before_the_answer_is_recorded(world: World) -> None:
    """The upstream calls back inside the submit; only the committed intent and the token lead to the task."""
    await world.submit()
    (item,) = (await world.graph.dispatch.claim(NAME, 1)).items
    task_id = item.task.id

    async def submit(submission: Any) -> Any:
        assert submission.callback_url is not None
        token = submission.callback_url.rpartition("/")[2]
        await call_back(world, token, genuine(id="up-1", status="running"))
        await call_back(world, token, genuine(id="up-1", status="succeeded", pictures=1))
        assert await world.state(task_id) is State.ARCHIVING
        return accepted(submission.reference, provider_ref="up-1")

    install(world, Scripted(NAME, CALLS_BACK, submit))
    await world.graph.dispatch.send(item)
    assert await history(world, task_id) == ["queued", "submitting", "running", "archiving"]
    assert (await world.attempt(task_id)).provider_ref == "up-1"
    await world.archive_all()
    assert await world.balance() == (999, 0)


async def test_callbacks_out_of_order_never_take_a_task_back(world: World) -> None:
    task_id, record = await finished(world)
    token = token_of(world, task_id)
    await call_back(world, token, signed(record))
    await call_back(world, token, signed(still_running(record)))
    await world.archive_all()
    await call_back(world, token, signed(still_running(record, status="queued")))
    await call_back(world, token, signed({**record, "status": "failed", "images": []}))
    assert await world.state(task_id) is State.SUCCEEDED
    assert await verdicts(world) == ["applied", "out_of_order", "out_of_order", "out_of_order"]
    assert await world.balance() == (999, 0)
    assert await world.rows("SELECT kind FROM findings") == []


async def test_order_and_number_of_callbacks_do_not_change_the_outcome(world: World) -> None:
    ends = set()
    for order in ("srr", "rsr", "rrs", "ssr", "rs", "s"):
        task_id, record = await finished(world)
        bodies = {"s": record, "r": still_running(record)}
        for step in order:
            await call_back(world, token_of(world, task_id), signed(bodies[step]))
        await world.archive_all()
        (ending,) = await world.rows(
            "SELECT state, captured, released FROM tasks JOIN settlements ON task_id = id WHERE id = $1",
            task_id,
        )
        ends.add(tuple(ending))
    assert ends == {("succeeded", 1, 0)}


async def test_progress_never_goes_backwards(world: World) -> None:
    await world.knobs(latency_s=[60, 60])
    task_id = await run_task(world)
    record = await record_of(world, str((await world.attempt(task_id)).provider_ref))
    seen = []
    for progress, position in ((10, 5), (55, 2), (30, 4), (97, None), (0, 1)):
        notice = signed(still_running(record, progress=progress, position=position))
        await call_back(world, token_of(world, task_id), notice)
        task = await world.task(task_id)
        seen.append((task.percent, task.position))
    assert seen == [(10, 5), (55, 2), (55, 2), (97, 2), (97, 1)]
    assert await world.state(task_id) is State.RUNNING
    assert set(await verdicts(world)) == {"progress"}


async def test_a_success_after_the_release_is_an_orphan_and_moves_no_money(world: World) -> None:
    provider = install(world, Scripted(NAME, CALLS_BACK))
    task_id = await run_task(world)
    await world.pass_time(seconds=301)
    await world.look()
    await world.pass_time(hours=25)
    await world.look()
    assert await world.state(task_id) is State.FAILED
    assert await world.balance() == (1_000, 0)
    for _ in range(2):
        await call_back(
            world,
            token_of(world, task_id),
            genuine(id=ref_of(f"{task_id.hex}-1"), status="succeeded", pictures=1),
        )
    assert await world.state(task_id) is State.FAILED
    assert await world.balance() == (1_000, 0)
    assert [tuple(row) for row in await world.rows("SELECT kind, task_id, attempt FROM findings")] == [
        ("orphan_result", task_id, 1)
    ]
    assert provider.polls >= 1


async def test_a_callback_of_an_earlier_attempt_is_stale(world: World) -> None:
    await world.knobs(fail=1)
    task_id, record = await finished(world)
    await call_back(world, token_of(world, task_id), signed(record))
    assert await world.state(task_id) is State.RETRYING
    await world.knobs(fail=0, latency_s=[60, 60])
    await world.pass_time(seconds=10)
    await world.dispatch()
    assert (await world.attempt(task_id)).number == 2
    late = {**record, "status": "done", "images": [{"url": f"{world.lab_url}/results/x"}], "error": None}
    await call_back(world, token_of(world, task_id, 1), signed(late))
    await call_back(world, token_of(world, task_id, 1), signed(still_running(record)))
    assert await world.state(task_id) is State.RUNNING
    assert await verdicts(world) == ["applied", "stale", "stale"]
    assert [row["kind"] for row in await world.rows("SELECT kind FROM findings")] == ["orphan_result"]


async def test_a_callback_for_an_unknown_id_is_kept_and_matched_when_the_answer_arrives(world: World) -> None:
    provider = install(world, Scripted(NAME, CALLS_BACK))
    task_id = await world.submit()

    async def submit(submission: Any) -> Any:
        await call_back(world, None, genuine(id="up-7", status="succeeded", pictures=1))
        assert await verdicts(world) == ["unknown"]
        return accepted(submission.reference, provider_ref="up-7")

    provider.submit_does = submit
    await world.dispatch()
    assert await world.state(task_id) is State.ARCHIVING
    await world.archive_all()
    assert await world.state(task_id) is State.SUCCEEDED


async def test_a_kept_callback_of_a_provider_that_only_hints_is_not_applied_later(world: World) -> None:
    capabilities = Capabilities(calls_back=True, trust=Trust.HINT)
    provider = install(world, Scripted(NAME, capabilities))
    task_id = await world.submit()

    async def submit(submission: Any) -> Any:
        await call_back(world, None, genuine(id="up-7", status="failed"))
        return accepted(submission.reference, provider_ref="up-7")

    provider.submit_does = submit
    await world.dispatch()
    assert await world.state(task_id) is State.RUNNING
    assert await world.look() == 1, "it only brings the look forward"


async def test_no_credential_that_a_callback_repeats_is_kept(world: World) -> None:
    """Neither of one that is applied nor of one that waits for its answer, which is applied all the same."""
    provider = install(world, Scripted(NAME, CALLS_BACK, secret="canary-secret"))
    task_id = await world.submit()

    async def submit(submission: Any) -> Any:
        await call_back(world, None, genuine(id="up-7", status="running", key="canary-secret"))
        return accepted(submission.reference, provider_ref="up-7")

    provider.submit_does = submit
    await world.dispatch()
    assert (await world.attempt(task_id)).upstream_status == "running"
    last = genuine(id="up-7", status="succeeded", pictures=1, key="canary-secret")
    await call_back(world, token_of(world, task_id), last)
    assert await world.state(task_id) is State.ARCHIVING
    kept = [json.loads(row["body"]) for row in await world.rows("SELECT body FROM callbacks ORDER BY id")]
    assert kept == [
        {"id": "up-7", "status": "running", "key": "***"},
        {"id": "up-7", "status": "succeeded", "pictures": 1, "key": "***"},
    ]
    await world.archive_all()


async def test_unknown_callbacks_do_not_delay_a_good_one_and_are_forgotten_after_a_day(world: World) -> None:
    task_id, record = await finished(world)
    strangers = [signed({**record, "id": f"cal_{number}", "reference": "?"}) for number in range(100)]
    await asyncio.gather(*(call_back(world, None, stranger) for stranger in strangers))
    await call_back(world, None, signed(record))
    assert await world.state(task_id) is State.ARCHIVING
    assert (await verdicts(world)).count("unknown") == 100
    await world.archive_all()
    await world.pass_time(hours=25)
    await world.graph.sweep.tidy()
    assert await verdicts(world) == ["applied"]


async def test_tidying_takes_the_old_and_unclaimed_alone(world: World) -> None:
    task_id, record = await finished(world)
    await call_back(world, None, signed({**record, "id": "cal_old", "reference": "?"}))
    await world.pass_time(hours=23)
    await call_back(world, token_of(world, task_id), signed(record))
    await call_back(world, None, signed({**record, "id": "cal_young", "reference": "?"}))
    await world.pass_time(hours=2)
    await world.graph.sweep.tidy()
    assert await verdicts(world) == ["applied", "unknown"]
    assert await world.value("SELECT provider_ref FROM callbacks WHERE verdict = 'unknown'") == "cal_young"
    await world.archive_all()


async def test_a_callback_that_had_its_effect_is_a_duplicate_when_it_comes_again(world: World) -> None:
    install(world, Scripted(NAME, CALLS_BACK, always(uncertain())))
    task_id = await run_task(world)
    assert await world.state(task_id) is State.UNCERTAIN
    for _ in range(2):
        await call_back(world, token_of(world, task_id), genuine(id="up-1", status="running"))
    assert await verdicts(world) == ["applied", "duplicate"]
    assert await history(world, task_id) == ["queued", "submitting", "uncertain", "running"]


async def test_nothing_that_is_not_authentic_changes_a_single_row(world: World) -> None:
    task_id, record = await finished(world)
    token = token_of(world, task_id)
    headers, raw = signed(record)
    (kind, (name, mac)) = headers
    other = signed(record, secret=b"another secret")[0]
    empty = signed(record, secret=b"")[0]
    attempts: list[tuple[Headers, bytes]] = [
        ([kind], raw),
        ([kind, (name, b"")], raw),
        ([kind, (name, b"   ")], raw),
        ([kind, (name, mac[:-1])], raw),
        ([kind, (name, mac[:-1] + b"\xe9")], raw),
        ([kind, (name, b"sha256=\xe9")], raw),
        ([kind, (name, "４".encode() * 64)], raw),
        ([kind, (name, b"0" * 64)], raw),
        ([kind, (name, mac[::-1])], raw),
        (other, raw),
        (empty, raw),
        (headers, raw + b" "),
        (headers, b" " + raw),
        (headers, raw.replace(b": ", b":", 1)),
        (headers, raw.replace(b'"done"', b'"failed"')),
        (headers, raw[:-1]),
        (headers, b""),
    ]
    before = await fingerprint(world)
    for forged in attempts:
        for address in (token, None):
            with pytest.raises(CallbackRejected) as rejected:
                await call_back(world, address, forged)
            assert rejected.value.status == 401
    with pytest.raises(CallbackRejected):
        await call_back(world, token, (headers, raw), provider="nobody")
    assert await fingerprint(world) == before
    await call_back(world, token, (headers, raw))
    assert await world.state(task_id) is State.ARCHIVING, "and the genuine one still counts"


async def test_a_genuine_body_that_is_no_json_is_a_400_and_changes_nothing(world: World) -> None:
    task_id, _ = await finished(world)
    before = await fingerprint(world)
    for raw in (b"", b"{", b"[]", b"\xff\xfe", b"null", b"[" * 100_000):
        with pytest.raises(CallbackRejected) as rejected:
            await call_back(world, token_of(world, task_id), signed(raw))
        assert rejected.value.status == 400
    assert await fingerprint(world) == before


@pytest.mark.parametrize(
    "body",
    [
        b"{}",
        b'{"id": "ID"}',
        b'{"id": "ID", "images": [{"url": "https://cdn.example/1.png"}]}',
        b'{"id": "ID", "status": null}',
        b'{"id": "ID", "status": ""}',
        b'{"id": "ID", "status": ["done"]}',
        b'{"id": "ID", "status": "failed", "status": "done"}',
    ],
)
async def test_a_callback_without_a_usable_status_only_asks_for_a_look(world: World, body: bytes) -> None:
    await world.knobs(latency_s=[60, 60])
    task_id = await run_task(world)
    raw = body.replace(b"ID", str((await world.attempt(task_id)).provider_ref).encode())
    assert await world.look() == 0
    await call_back(world, token_of(world, task_id), signed(raw))
    assert await world.state(task_id) is State.RUNNING
    assert await verdicts(world) == ["hint"]
    assert await world.look() == 1


async def test_a_success_without_pictures_is_unusable_and_poisons_no_later_one(world: World) -> None:
    task_id, record = await finished(world)
    token = token_of(world, task_id)
    await call_back(world, token, signed({**record, "images": []}))
    assert (await world.state(task_id), await verdicts(world)) == (State.RUNNING, ["unusable"])
    await call_back(world, token, signed(record))
    assert (await world.state(task_id), await verdicts(world)) == (State.ARCHIVING, ["unusable", "applied"])
    await world.archive_all()


async def test_after_a_success_without_pictures_the_look_brings_them(world: World) -> None:
    task_id, record = await finished(world)
    await call_back(world, token_of(world, task_id), signed({**record, "images": []}))
    assert await world.look() == 1
    assert await world.state(task_id) is State.ARCHIVING
    await world.archive_all()


async def test_an_unsigned_kind_of_notice_only_brings_the_look_forward_and_not_too_often(
    world: World,
) -> None:
    provider = install(world, Scripted(NAME, Capabilities(calls_back=True, trust=Trust.HINT)))
    task_id = await run_task(world)
    notice = genuine(id="x", status="failed")
    for _ in range(5):
        await call_back(world, token_of(world, task_id), notice)
        await world.look()
    assert await world.state(task_id) is State.RUNNING
    assert provider.polls == 1, "at most one look in two seconds"
    await world.pass_time(seconds=2.1)
    await call_back(world, token_of(world, task_id), notice)
    await world.look()
    assert provider.polls == 2
    assert set(await verdicts(world)) == {"hint"}


async def test_a_second_id_for_the_same_task_is_applied_and_noted(world: World) -> None:
    task_id, record = await finished(world)
    await call_back(world, token_of(world, task_id), signed({**record, "id": "cal_alias"}))
    assert await world.state(task_id) is State.ARCHIVING
    assert (await world.attempt(task_id)).provider_ref == record["id"]
    assert [row["kind"] for row in await world.rows("SELECT kind FROM findings")] == ["provider_ref_conflict"]
    await world.archive_all()


async def test_a_callback_counts_although_the_clock_was_set_back(world: World) -> None:
    task_id, record = await finished(world)
    await world.pass_time(hours=-1)
    await call_back(world, token_of(world, task_id), signed({**record, "run_s": None}))
    assert await world.state(task_id) is State.ARCHIVING
    await world.archive_all()
    assert await world.state(task_id) is State.SUCCEEDED


async def test_a_callback_whose_pictures_cannot_be_stored_is_kept_as_a_hint(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    provider = install(world, Scripted(NAME, CALLS_BACK, poll_does=in_turn(done())))
    task_id = await run_task(world)
    store = world.graph.context.store
    put = store.put

    async def full(key: str, data: bytes) -> None:
        raise AssetError("storage", "disk full", is_retryable=True)

    monkeypatch.setattr(store, "put", full)
    await call_back(
        world,
        token_of(world, task_id),
        genuine(id=ref_of(f"{task_id.hex}-1"), status="succeeded", pictures=1),
    )
    assert (await world.state(task_id), await verdicts(world)) == (State.RUNNING, ["hint"])
    monkeypatch.setattr(store, "put", put)
    await pass_until_due(world, task_id)
    await world.look()
    await world.archive_all()
    assert (await world.state(task_id), provider.polls) == (State.SUCCEEDED, 1)


async def test_more_pictures_than_asked_for_are_dropped_and_noted(world: World) -> None:
    task_id = await run_task(world)
    install(world, Scripted(NAME, CALLS_BACK))
    await call_back(world, token_of(world, task_id), genuine(id="x", status="succeeded", pictures=3))
    await world.archive_all()
    assert await world.value("SELECT count(*) FROM assets") == 1
    assert await world.balance() == (999, 0)
    assert "surplus_outputs" in [row["kind"] for row in await world.rows("SELECT kind FROM findings")]


async def test_callback_and_poll_at_the_same_moment_settle_once(world: World) -> None:
    for _ in range(4):
        task_id, record = await finished(world)
        await world.pass_time(seconds=60)
        await asyncio.gather(call_back(world, token_of(world, task_id), signed(record)), world.look())
        await world.archive_all()
        assert await world.state(task_id) is State.SUCCEEDED
    assert await world.value("SELECT count(*) FROM entries WHERE kind = 'settle'") == 4
