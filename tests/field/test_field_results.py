"""Results from the field: their names, their sizes, their owners, and where they are kept."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import io
import random
import re
from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import web
from PIL import Image

from safelight.assets.bucket import BucketStore
from safelight.domain.provider import AttemptRef, Output, ProviderUpdate
from safelight.domain.task import State
from safelight.errors import AssetError
from tests.api.pictures import bomb
from tests.assets.conftest import Stranger, reply
from tests.assets.test_stores import S3
from tests.field.scene import CALLS_BACK, NAME, Line, Scene, running_scene, said
from tests.lifecycle.upstreams import (
    Scripted,
    done,
    in_turn,
    install,
    pass_until_due,
    picture,
    run_task,
    signed,
)
from tests.world import Server

NAMES = (
    "../../x", "/etc/cron.d/x", "..\\x", "x\x01.png", "x" * 300, "CON", "図形 🙂.png",
)  # fmt: skip


@contextlib.asynccontextmanager
async def naming_host() -> AsyncIterator[str]:
    """A host that gives its pictures names that nobody should believe."""

    async def serve(request: web.Request) -> web.Response:
        name = NAMES[int(request.query["name"])]
        disposition = f'attachment; filename="{name}"'.encode().decode("latin-1")
        clean = "".join(letter for letter in disposition if letter.isprintable())
        return web.Response(body=picture(), content_type="image/png", headers={"Content-Disposition": clean})

    app = web.Application()
    app.router.add_get("/{rest:.*}", serve)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


async def ended(scene: Scene, *outputs: Output, **wish: Any) -> Any:
    """A task whose look brings these outputs, archived."""
    install(scene.world, Scripted(NAME, CALLS_BACK, poll_does=in_turn(done(*outputs))))
    task_id = await run_task(scene.world, **wish)
    await pass_until_due(scene.world, task_id)
    await scene.world.look()
    await scene.world.archive_all()
    return task_id


async def test_F10_a_picture_is_kept_under_a_name_of_our_own(server: Server) -> None:
    async with naming_host() as url, running_scene(server, allowed_origins=(url,)) as scene:
        paths = ("/%2e%2e/%2e%2e/x", "/a/..%2f..%2fx.png", "/%00.png", "/x.png", "/x", "/CON", "/%E5%9B%B3")
        outputs = [Output(url=f"{url}{path}?name={place}") for place, path in enumerate(paths)]
        task_id = await ended(scene, *outputs, n=len(outputs))
        assert await scene.ending(task_id) == ("succeeded", 7, 0)
        for row in await scene.world.rows("SELECT store_key FROM assets"):
            pattern = rf"{scene.world.account_id}/\d{{4}}/\d\d/[0-9a-f]{{32}}\.png"
            assert re.fullmatch(pattern, row["store_key"])


async def test_F11_a_prompt_in_any_script_is_no_part_of_a_header(scene: Scene) -> None:
    prompt = '図形 🙂 "quoted"; filename=x\r\nX-Evil: 1'
    task_id = await ended(scene, Output(data=picture()), prompt=prompt)
    view = await scene.view(task_id)
    assert (view["prompt"], view["status"]) == (prompt, "ready")
    answer = await scene.get(f"/v1/assets/{view['assets'][0]['id']}")
    assert answer.headers["Content-Disposition"].isascii()
    assert "X-Evil" not in answer.headers
    assert "quoted" not in str(answer.headers)


def noise() -> bytes:
    """A night scene: almost black."""
    image = Image.new("RGB", (64, 64))
    image.putdata([(random.randrange(3), 0, 0) for _ in range(64 * 64)])
    target = io.BytesIO()
    image.save(target, "PNG")
    return target.getvalue()


async def test_F14_a_bomb_is_refused_from_its_header_and_paid_by_nobody(
    scene: Scene, logs: list[Line]
) -> None:
    task_id = await ended(scene, Output(data=bomb(19_000)))
    assert await scene.ending(task_id) == ("failed", 0, 1)
    (line,) = said(logs, "copy_failed")
    assert (line["reason"], line["detail"]) == ("too_large", "the picture is too large: a decompression bomb")


async def test_F17_everybody_gets_the_picture_of_his_own_prompt(scene: Scene) -> None:
    """Two accounts, answers in any order, each picture in the shade that its prompt names."""
    other = await scene.door.new_caller()
    provider = install(scene.world, Scripted(NAME, CALLS_BACK))
    shades: dict[str, int] = {}

    async def poll(attempt: AttemptRef) -> ProviderUpdate:
        await asyncio.sleep(random.uniform(0, 0.01))
        return done(Output(data=picture(shades[attempt.reference])))

    provider.poll_does = poll
    owners = {}
    for shade in range(12):
        account_id = other.account_id if shade % 2 else scene.world.account_id
        task_id = await scene.world.submit(prompt=f"shade {shade}", account_id=account_id)
        shades[f"{task_id.hex}-1"], owners[task_id] = shade, (shade, account_id)
    await scene.world.dispatch()
    await scene.world.pass_time(seconds=60)
    due = await scene.world.graph.check.claim(NAME, 64)
    await asyncio.gather(*(scene.world.graph.check.check(*one) for one in random.sample(due, len(due))))
    await scene.world.archive_all()
    for task_id, (shade, account_id) in owners.items():
        (row,) = await scene.world.rows(
            "SELECT id, account_id, sha256 FROM assets WHERE task_id = $1", task_id
        )
        assert row["sha256"] == hashlib.sha256(picture(shade)).digest()
        assert row["account_id"] == account_id
        foreign = scene.door.caller if account_id == other.account_id else other
        for path in (f"/v1/tasks/{task_id}", f"/v1/assets/{row['id']}"):
            assert (await scene.door.request("GET", path, by=foreign)).status == 404


@pytest.mark.parametrize("code", ["AccessDenied", "SlowDown", "RequestTimeTooSkewed"])
async def test_F19_a_bucket_that_refuses_is_a_trouble_that_passes(stranger: Stranger, code: str) -> None:
    """Also F20: what a wrong clock does is one of the refusals."""
    status = "503 Slow Down" if code == "SlowDown" else "403 Forbidden"
    body = f"<?xml version='1.0'?><Error><Code>{code}</Code></Error>".encode()
    target = "/pictures/a/b.png"
    stranger.answers[target] = reply(body, status)
    store = BucketStore("s3://pictures", S3 | {"endpoint": stranger.origin}, max_retries=0)
    with pytest.raises(AssetError) as refused:
        await store.put("a/b.png", b"bytes")
    assert (refused.value.reason, refused.value.is_retryable) == ("storage", True)
    assert str(stranger.port) not in str(refused.value)


async def test_F19_a_bucket_that_says_yes_and_kept_nothing_is_found_out(stranger: Stranger) -> None:
    answers = [reply(b"", ETag='"1"'), reply(b"", "404 Not Found")]

    async def answer(writer: asyncio.StreamWriter) -> None:
        writer.write(answers.pop(0))
        await writer.drain()

    stranger.answers["/pictures/a/b.png"] = answer
    store = BucketStore("s3://pictures", S3 | {"endpoint": stranger.origin}, max_retries=0)
    with pytest.raises(AssetError) as refused:
        await store.put("a/b.png", b"bytes")
    assert (refused.value.is_retryable, answers) == (True, [])


async def test_F20_while_the_storage_refuses_the_paid_picture_waits_and_then_comes(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, logs: list[Line]
) -> None:
    store = scene.world.graph.context.store
    with monkeypatch.context() as patched:
        patched.setattr(store, "put", _refusing)
        task_id, record = await scene.drawn()
        assert await scene.called_back(task_id, signed(record)) == 202
        await scene.world.archive_all()
        assert await scene.world.state(task_id) is State.ARCHIVING
        assert (await scene.view(task_id))["status"] == "processing"
        assert await scene.world.balance() == (999, 1)
    assert "RequestTimeTooSkewed" in said(logs, "storage_unavailable")[0]["detail"]
    await pass_until_due(scene.world, task_id)
    await scene.world.archive_all()
    assert await scene.ending(task_id) == ("succeeded", 1, 0)
    assert (await scene.world.lab_ledger())["accepted"] == 1


async def _refusing(key: str, data: bytes) -> None:
    raise AssetError("storage", "RequestTimeTooSkewed", is_retryable=True)


async def test_G02_a_picture_of_one_colour_is_delivered_and_told(scene: Scene, logs: list[Line]) -> None:
    target = io.BytesIO()
    Image.new("RGB", (64, 64)).save(target, "PNG")
    black = await ended(scene, Output(data=target.getvalue()))
    night = await ended(scene, Output(data=noise()))
    for task_id in (black, night):
        assert await scene.ending(task_id) == ("succeeded", 1, 0)
    assert [line["task_id"] for line in said(logs, "picture_is_uniform")] == [str(black)]
