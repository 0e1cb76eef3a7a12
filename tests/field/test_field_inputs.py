"""Inputs from the field: text that breaks stores and logs, numbers that are none, pictures of strangers."""

from __future__ import annotations

import asyncio
from typing import Any

from structlog.processors import JSONRenderer

from tests.api.door import Door
from tests.api.pictures import png
from tests.assets.conftest import Stranger, reply
from tests.field.scene import NAME, Line, Scene, assert_calm, running_scene, said
from tests.lifecycle.upstreams import Scripted, install, run_task
from tests.providers.upstream import Upstream, error, provider_of
from tests.world import Server

SHOE = {"model": NAME, "prompt": "a red shoe on white", "size": "64x64"}
POLLED = "lab-poll"


async def assert_refused(door: Door, body: Any, status: int = 422) -> None:
    """Refused in text that can be read back, and nothing is kept."""
    before = await door.rows()
    answer = await door.submit(body)
    assert answer.status == status, answer.body
    answer.body.decode("utf-8")
    assert b"\\u0000" not in answer.body
    assert b"\\ud8" not in answer.body
    assert await door.rows() == before


async def stored_excerpt(scene: Scene, upstream: Upstream, message: str) -> str:
    """What is kept of an upstream's error text."""
    install(scene.world, provider_of(POLLED, scene.world.session, upstream.base_url))
    upstream.answers(422, error("invalid_size", message))
    task_id = await run_task(scene.world, POLLED)
    assert await scene.ending(task_id) == ("failed", 0, 1)
    excerpt: str = await scene.world.value("SELECT excerpt FROM attempts WHERE task_id = $1", task_id)
    return excerpt


async def test_H07_a_nul_is_refused_of_customers_and_cleaned_of_upstreams(
    scene: Scene, upstream: Upstream, logs: list[Line]
) -> None:
    for change in ({"prompt": "a\x00b"}, {"metadata": {"a\x00b": 1}}, {"metadata": {"a": ["\x00"]}}):
        await assert_refused(scene.door, {**SHOE, **change})
    broken = await scene.door.raw(
        b"POST /v1/tasks HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nIdempotency-Key: a\x00b\r\n\r\n{}"
    )
    assert broken.split(b" ")[1] == b"400"
    assert await stored_excerpt(scene, upstream, "no\x00 such size") == "no such size"
    assert_calm(logs)


async def test_H08_half_a_pair_is_refused_of_customers_and_replaced_for_upstreams(
    scene: Scene, upstream: Upstream, logs: list[Line]
) -> None:
    for raw in (
        rb'{"model": "lab-callback", "prompt": "cut \ud83d"}',
        rb'{"model": "lab-callback", "prompt": "x", "metadata": {"\ud83d": 1}}',
        rb'{"model": "lab-callback", "prompt": "x", "\ud83d": 1}',
    ):
        await assert_refused(scene.door, raw)
    excerpt = await stored_excerpt(scene, upstream, "no such \ud83d size")
    assert excerpt.encode("utf-8").startswith(b"no such ")
    assert_calm(logs)


async def test_H10_any_text_within_the_limits_is_passed_on_as_it_is(scene: Scene, logs: list[Line]) -> None:
    provider = install(scene.world, Scripted(NAME))
    prompts = [
        "right \u202e to left",
        'line\r\n{"event": "admin_logged_in", "level": "info"}',
        "a" + "\u0301" * 900,
        "tab\tand\u2028separator\u2029and\u200bnothing",
    ]
    tasks = []
    for prompt in prompts:
        answer = await scene.door.submit({**SHOE, "prompt": prompt})
        assert answer.status == 202, answer.body
        tasks.append(answer.json["id"])
    await scene.world.dispatch()
    assert sorted(sent.prompt for sent in provider.submissions) == sorted(prompts)
    assert [(await scene.get(f"/v1/tasks/{one}")).json["prompt"] for one in tasks] == prompts
    assert "admin_logged_in" not in repr(logs), "prompts are in no log line"
    line = JSONRenderer()(None, "", {"event": "x", "excerpt": prompts[1]})
    assert len(str(line).splitlines()) == 1, "and a text that is in one cannot make another"


async def test_H11_an_input_is_fetched_by_get_alone_and_judged_by_its_bytes(
    server: Server, stranger: Stranger
) -> None:
    async def endless(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: image/png\r\n\r\n\x89PNG\r\n\x1a\n")
        for _ in range(160):  # forty megabytes, beyond every cap
            writer.write(bytes(262_144))
            await writer.drain()

    stranger.answers |= {
        "/good.png": reply(png()),
        "/page.png": reply(b"<html>no</html>", Content_Type="image/png"),
        "/long.png": b"HTTP/1.1 200 OK\r\nContent-Length: 26214401\r\n\r\n",
        "/endless.png": endless,
    }
    async with running_scene(server, allowed_origins=(stranger.origin,)) as scene:
        body = {**SHOE, "operation": "edit"}
        for name in ("page", "long", "endless"):
            before = await scene.door.rows()
            answer = await scene.door.submit({**body, "images": [f"{stranger.origin}/{name}.png"]})
            assert answer.status in (400, 413, 422), (name, answer.body)
            assert await scene.door.rows() == before
        assert await scene.world.balance() == (1_000, 0)
        answer = await scene.door.submit({**body, "images": [f"{stranger.origin}/good.png"]})
        assert answer.status == 202, answer.body
    assert {head.split(" ")[0] for head in stranger.heard} == {"GET"}


async def test_H12_numbers_in_odd_types_are_refused_and_never_an_accident(
    scene: Scene, logs: list[Line]
) -> None:
    for n in (True, "2", "4", 2.0, 4.0, 0, -1, None, [1], 10**30):
        await assert_refused(scene.door, {**SHOE, "n": n})
    for raw in (b"1e3", b"1e9", b"2.0"):
        await assert_refused(scene.door, b'{"model": "lab-callback", "prompt": "x", "n": ' + raw + b"}")
    for size in ("1024X1024", "1024×1024", "0x0", "", "64x64 ", 64, None, "-64x64", "٦٤x64"):
        await assert_refused(scene.door, {**SHOE, "size": size})
    odd: tuple[Any, ...] = ([], "x", {"seed": 2**63}, {"seed": 2**64}, {"seed": 10**30})
    for options in odd:
        answer = await scene.door.submit({**SHOE, "model": POLLED, "options": options})
        assert answer.status in (202, 422), answer.body
    assert_calm(logs)
    assert said(logs, "request_failed") == []
