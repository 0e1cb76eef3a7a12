"""Upstreams from the field: their words, their errors, their limits, and what must never come through."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from safelight.domain.provider import Capabilities
from safelight.domain.task import State
from safelight.errors import ProviderUnavailable
from tests.field.scene import CALLS_BACK, NAME, Line, Scene, assert_calm, running_scene, said
from tests.lifecycle.upstreams import (
    Scripted,
    in_turn,
    install,
    pass_until_due,
    picture,
    result_host,
    run_task,
    signed,
)
from tests.providers.upstream import CREDENTIALS, Upstream, error, provider_of
from tests.world import Server

POLLED = "lab-poll"
INLINE = {"url": "data:image/png;base64," + base64.b64encode(picture()).decode()}


def told(**changes: Any) -> dict[str, Any]:
    """A record without an echo of our reference."""
    return {"id": "j1", "status": "running", "images": [], **changes}


async def accepted_task(scene: Scene, upstream: Upstream, **wish: Any) -> UUID:
    """A task that the scripted upstream has in its line."""
    install(scene.world, provider_of(POLLED, scene.world.session, upstream.base_url))
    upstream.answers(202, told(status="queued"))
    task_id = await run_task(scene.world, POLLED, **wish)
    upstream._answers.clear()
    return task_id


async def look(scene: Scene, task_id: UUID) -> State:
    """Look when it is due; returns where the task stands then."""
    await pass_until_due(scene.world, task_id)
    assert await scene.world.look(POLLED) == 1
    return await scene.world.state(task_id)


async def assert_looks_say_nothing(
    scene: Scene, upstream: Upstream, task_id: UUID, answers: list[tuple[int, bytes | Mapping[str, Any]]]
) -> None:
    """None of these answers moves the task; a good one after them does."""
    for status, body in answers:
        upstream.answers(status, body)
    upstream.answers(200, told(status="done", images=[INLINE]))
    for _ in answers:
        assert await look(scene, task_id) is State.RUNNING
        assert (await scene.view(task_id))["status"] == "processing"
    assert await look(scene, task_id) is State.ARCHIVING
    await scene.world.archive_all()
    assert await scene.ending(task_id) == ("succeeded", 1, 0)
    assert await scene.settled(task_id) == 1


async def test_E05_pages_instead_of_json_are_no_verdict(
    scene: Scene, upstream: Upstream, logs: list[Line]
) -> None:
    task_id = await accepted_task(scene, upstream)
    page = b"<html><body>Just a moment" + b"." * 2_000
    answers: list[tuple[int, bytes | Mapping[str, Any]]] = [(502, page), (200, page), (200, b""), (204, b"")]
    await assert_looks_say_nothing(scene, upstream, task_id, answers)
    lines = said(logs, "poll_failed")
    assert len(lines) == 4
    assert max(len(line["excerpt"]) for line in lines) <= 300
    assert_calm(logs)


async def test_E07_a_byte_order_mark_does_no_harm(scene: Scene, upstream: Upstream) -> None:
    mark = b"\xef\xbb\xbf"
    polled = await accepted_task(scene, upstream)
    upstream.answers(200, mark + json.dumps(told(status="done", images=[INLINE])).encode())
    assert await look(scene, polled) is State.ARCHIVING
    called_back, record = await scene.drawn()
    assert await scene.called_back(called_back, signed(mark + json.dumps(record).encode())) == 202
    await scene.world.archive_all()
    for task_id in (polled, called_back):
        assert await scene.ending(task_id) == ("succeeded", 1, 0)


async def test_E08_an_answer_that_breaks_parsers_is_only_unreadable(
    scene: Scene, upstream: Upstream, logs: list[Line]
) -> None:
    task_id = await accepted_task(scene, upstream)
    bombs: list[tuple[int, bytes | Mapping[str, Any]]] = [
        (200, b'{"id": "j1", "status": "done", "seed": ' + b"9" * 5_000 + b"}"),
        (200, b"[" * 100_000),
        (200, b" " * 3_000_000),
    ]
    await assert_looks_say_nothing(scene, upstream, task_id, bombs)
    assert len(said(logs, "poll_failed")) == 3
    assert_calm(logs)


async def test_E09_a_date_in_retry_after_is_waited_for(
    scene: Scene, upstream: Upstream, logs: list[Line]
) -> None:
    install(scene.world, provider_of(POLLED, scene.world.session, upstream.base_url))
    forms = ("%a, %d %b %Y %H:%M:%S GMT", "%a %b %d %H:%M:%S %Y", "%a, %d %b %Y %H:%M:%S -0000")
    for form in forms:
        # By the process's own time, as the header is; the extra seconds are for a busy machine.
        moment = datetime.now(UTC) + timedelta(seconds=60 + 30 * len(upstream.asked))
        upstream.answers(429, error("rate_limited"), {"Retry-After": moment.strftime(form)})
    upstream.answers(202, told(status="queued"))
    task_id = await scene.world.submit(POLLED)
    for count in (1, 2, 3):
        await scene.world.dispatch(POLLED)
        assert len(upstream.asked) == count
        await scene.world.pass_time(seconds=15)
        await scene.world.dispatch(POLLED)
        assert len(upstream.asked) == count, "not before its time"
        assert await scene.world.balance() == (999, 1)
        await scene.world.pass_time(seconds=60)
    await scene.world.dispatch(POLLED)
    assert await scene.world.state(task_id) is State.RUNNING
    waits = [line["closed_s"] for line in said(logs, "gate_closed")]
    assert len(waits) == 3
    assert all(20 < wait <= 75 for wait in waits), waits
    assert len({asked.body["reference"] for asked in upstream.asked}) == 1, "a limit uses up no attempt"


async def test_E12_every_process_keeps_to_one_limit_and_one_pause(scene: Scene) -> None:
    limited = ProviderUnavailable("slow down", reason="rate_limited", retry_after_s=10.0)
    provider = install(scene.world, Scripted(POLLED, Capabilities(calls_per_s=2.0)))
    for _ in range(9):
        await scene.world.submit(POLLED)
    async with scene.another_process(provider) as second, scene.another_process(provider) as third:
        processes = (scene.world.graph, second, third)
        claims = [claim for one in processes for claim in (await one.dispatch.claim(POLLED, 64)).items]
        assert len(claims) == 2, "over all of them together"
        provider.submit_does = in_turn(limited)
        await second.dispatch.send(claims[0])
        await scene.world.pass_time(seconds=5)
        assert [len((await one.dispatch.claim(POLLED, 64)).items) for one in processes] == [0, 0, 0]
        await scene.world.pass_time(seconds=10)
        assert sum([len((await one.dispatch.claim(POLLED, 64)).items) for one in processes]) == 2
    assert await scene.world.balance() == (991, 9)


async def test_E13_what_an_upstream_says_of_our_account_reaches_nobody(
    scene: Scene, upstream: Upstream, logs: list[Line]
) -> None:
    install(scene.world, provider_of(POLLED, scene.world.session, upstream.base_url))
    key = CREDENTIALS["api_key"].get_secret_value()
    upstream.answers(422, error("invalid_size", "width must be a multiple of 8 (account acct_9)"))
    upstream.answers(
        500, error("generation_failed", "node-7.internal: https://cdn.example/x.png?X-Sig=abcdef failed")
    )
    upstream.answers(401, error("invalid_api_key", f"Incorrect API key provided: {key}"))
    refused = await run_task(scene.world, POLLED)
    broken = await run_task(scene.world, POLLED)
    unpaid = await run_task(scene.world, POLLED)
    assert await scene.ending(refused) == ("failed", 0, 1)
    assert await scene.world.state(broken) is State.RETRYING
    assert await scene.world.state(unpaid) is State.RETRYING
    failure = (await scene.view(refused))["failure"]
    assert failure["class"] == "invalid_request"
    assert [line["reason"] for line in said(logs, "gate_closed")] == ["credentials"]
    bodies = b"".join([(await scene.get(f"/v1/tasks/{one}")).body for one in (refused, broken, unpaid)])
    for secret in (key, "acct_9", "internal", "X-Sig", "cdn.example", "multiple of 8", POLLED + "/"):
        assert secret.encode() not in bodies, secret
    for secret in (key, "abcdef"):
        assert secret not in repr(logs), secret
    excerpts = [line["excerpt"] for line in said(logs, "send_failed")]
    assert "multiple of 8" in excerpts[0], "the operator reads the cause in the log"
    await scene.world.pass_time(hours=2)
    await scene.world.graph.sweep.tidy()
    for task_id in (broken, unpaid):
        assert await scene.ending(task_id) == ("failed", 0, 1)
        assert (await scene.view(task_id))["failure"]["class"] == "environment"


async def test_E14_a_look_that_cannot_see_the_task_has_not_seen_it_fail(
    scene: Scene, upstream: Upstream
) -> None:
    task_id = await accepted_task(scene, upstream)
    away = error("task_not_found")
    answers: list[tuple[int, bytes | Mapping[str, Any]]] = [(500, b""), (429, away), (404, away), (404, away)]
    await assert_looks_say_nothing(scene, upstream, task_id, answers)


async def test_E15_a_task_that_cannot_be_seen_yet_is_not_lost(scene: Scene, upstream: Upstream) -> None:
    task_id = await accepted_task(scene, upstream)
    upstream.answers(404, error("not_found"))
    upstream.answers(200, told(status="running"))
    assert await look(scene, task_id) is State.RUNNING
    assert await look(scene, task_id) is State.RUNNING
    assert await scene.world.balance() == (999, 1)
    (row,) = await scene.world.rows("SELECT upstream_status FROM attempts")
    assert row["upstream_status"] == "running"


async def test_E19_a_success_far_beyond_the_usual_time_counts(scene: Scene) -> None:
    """At three times the P95, and once more after a person has been called at the deadline."""
    provider = install(scene.world, Scripted(NAME, CALLS_BACK))
    late, later = await run_task(scene.world), await run_task(scene.world)
    await scene.world.pass_time(seconds=15)
    body = {"id": provider.submissions[0].reference, "status": "succeeded", "pictures": 1}
    genuine = [(b"x-genuine", b"yes")]
    assert await scene.called_back(late, (genuine, json.dumps(body).encode())) == 202
    await scene.world.pass_time(seconds=300)
    await scene.world.look()
    assert await scene.world.state(later) is State.REVIEW
    assert (await scene.view(later))["status"] == "processing"
    body["id"] = provider.submissions[1].reference
    assert await scene.called_back(later, (genuine, json.dumps(body).encode())) == 202
    await scene.world.archive_all()
    for task_id in (late, later):
        assert await scene.ending(task_id) == ("succeeded", 1, 0)


async def test_E20_an_error_is_classed_by_its_real_status(
    scene: Scene, upstream: Upstream, logs: list[Line]
) -> None:
    install(scene.world, provider_of(POLLED, scene.world.session, upstream.base_url))
    for status in (422, 503, 401):
        upstream.answers(status, error("any"))
    tasks = [await run_task(scene.world, POLLED) for _ in range(3)]
    # 503 without a word that its declaration knows proves nothing: it may have been accepted.
    expected = [State.FAILED, State.UNCERTAIN, State.RETRYING]
    assert [await scene.world.state(task_id) for task_id in tasks] == expected
    for status, line in zip((422, 503, 401), said(logs, "send_failed"), strict=True):
        assert str(status) in line["detail"]
    assert await scene.world.balance() == (998, 2)


async def test_E21_a_success_whose_pictures_lie_elsewhere_is_told_by_the_names_of_its_members(
    scene: Scene, upstream: Upstream, logs: list[Line]
) -> None:
    shapes: tuple[dict[str, Any], ...] = ({"images": []}, {"images": None}, {"pictures": [INLINE]})
    for number, shape in enumerate(shapes):
        install(scene.world, provider_of(POLLED, scene.world.session, upstream.base_url))
        bare = {"id": f"j{number}", "status": "done"}
        upstream.answers(202, {"id": f"j{number}", "status": "queued"})
        upstream.answers(200, {**bare, **shape})
        task_id = await run_task(scene.world, POLLED)
        assert await look(scene, task_id) is State.FAILED
        assert await scene.ending(task_id) == ("failed", 0, 1)
        assert (await scene.view(task_id))["failure"]["code"] == "result_unusable"
        assert said(logs, "success_without_pictures")[-1]["keys"] == sorted({*bare, *shape})
        upstream._answers.clear()
    assert len(upstream.asked) == 2 * len(shapes), "and nothing is generated again"


async def test_F13_a_data_url_among_others_is_a_picture(server: Server, upstream: Upstream) -> None:
    async with result_host() as host, running_scene(server, allowed_origins=(host.url,)) as scene:
        task_id = await accepted_task(scene, upstream, n=2)
        upstream.answers(200, told(status="done", images=[INLINE, {"url": f"{host.url}/x.png"}]))
        assert await look(scene, task_id) is State.ARCHIVING
        await scene.world.archive_all()
        assert await scene.ending(task_id) == ("succeeded", 2, 0)
        assert host.asked == 1


async def test_F13_other_schemes_are_refused_and_never_opened(
    server: Server, upstream: Upstream, logs: list[Line]
) -> None:
    async with running_scene(server, decide_by_s=0.0) as scene:
        task_id = await accepted_task(scene, upstream)
        for url in ("file:///etc/passwd", "ftp://cdn.example/x.png", "blob:https://cdn.example/1"):
            upstream.answers(200, told(status="done", images=[{"url": url}]))
            assert await look(scene, task_id) is State.RUNNING
        await scene.world.pass_time(seconds=301)
        await scene.world.look(POLLED)
        await look(scene, task_id)
        assert await scene.ending(task_id) == ("failed", 0, 1)
        assert len(said(logs, "poll_failed")) == 5
