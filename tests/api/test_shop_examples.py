"""The backends of docs/examples at a running service."""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import json
import socket
from collections.abc import AsyncIterator, Callable
from types import ModuleType
from typing import Any

import aiohttp
import django
import pytest
import uvicorn
from django.conf import settings as django_settings
from django.test import Client as DjangoClient

from tests.api.door import _Server
from tests.api.shop import Shop, running_shop
from tests.architecture.source import ROOT
from tests.world import Server

PNG = b"\x89PNG"
ORDER = {"prompt": "a red shoe on white"}


def example(name: str) -> ModuleType:
    """A file of docs/examples as a module, fresh."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "docs" / "examples" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
async def shop(server: Server, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Shop]:
    async with running_shop(server) as opened, opened.working():
        monkeypatch.setenv("SAFELIGHT_URL", opened.door.url)
        monkeypatch.setenv("SAFELIGHT_API_KEY", opened.door.caller.key)
        yield opened


def until_drawn(look: Callable[[], tuple[int, bytes]]) -> bytes:
    """Ask as a page does."""
    import time

    for _ in range(600):
        status, body = look()
        if status != 202:
            assert status == 200, body
            return body
        time.sleep(0.05)
    raise AssertionError("it was never drawn")


async def test_a_backend_in_flask_orders_once_and_hands_the_picture_on(shop: Shop) -> None:
    module = example("shop_flask")

    def visit() -> bytes:
        with module.app.test_client() as visitor, contextlib.closing(module.safelight()):
            first, again = (visitor.post("/orders/7/picture", json=ORDER) for _ in range(2))
            assert (first.status_code, again.get_json()) == (202, first.get_json())
            assert visitor.post("/orders/7/picture", json={"prompt": "other"}).status_code == 422
            assert visitor.get("/pictures/0199aaaa-aaaa-7aaa-8aaa-aaaaaaaaaaaa").status_code == 404
            path = f"/pictures/{first.get_json()['task']}"

            def look() -> tuple[int, bytes]:
                answer = visitor.get(path)
                return answer.status_code, answer.data

            return until_drawn(look)

    assert (await asyncio.to_thread(visit)).startswith(PNG)
    assert len(await shop.tasks()) == 1


async def test_a_backend_in_django_orders_once_and_hands_the_picture_on(shop: Shop) -> None:
    module = example("shop_django")
    if not django_settings.configured:
        django_settings.configure(ALLOWED_HOSTS=["*"], SECRET_KEY="x", USE_TZ=True)
        django.setup()
    # As Django looks its routes up: by whatever has `urlpatterns`.
    django_settings.ROOT_URLCONF = module

    def visit() -> bytes:
        visitor: Any = DjangoClient()
        with contextlib.closing(module.safelight()):
            first, again = (
                visitor.post("/orders/7/picture", json.dumps(ORDER), content_type="application/json")
                for _ in range(2)
            )
            assert (first.status_code, again.json()) == (202, first.json())

            def look() -> tuple[int, bytes]:
                answer = visitor.get(f"/pictures/{first.json()['task']}")
                return answer.status_code, answer.content

            return until_drawn(look)

    assert (await asyncio.to_thread(visit)).startswith(PNG)
    assert len(await shop.tasks()) == 1


async def test_a_backend_in_fastapi_orders_once_and_lets_the_page_watch(shop: Shop) -> None:
    module = example("shop_fastapi")
    listener = socket.create_server(("127.0.0.1", 0))
    running = _Server(uvicorn.Config(module.app, log_level="warning", access_log=False))
    serving = asyncio.create_task(running.serve(sockets=[listener]))
    await running.is_up.wait()
    async with asyncio.timeout(60), aiohttp.ClientSession() as visitor:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        answers = []
        for _ in range(2):
            async with visitor.post(f"{url}/orders/7/picture", json=ORDER) as answer:
                answers.append((answer.status, await answer.json()))
        assert answers[0] == answers[1]
        async with visitor.post(f"{url}/live-ticket") as answer:
            watched = (await answer.json())["url"]
        async with visitor.get(watched) as stream:
            assert stream.status == 200
        status, body = 202, b""
        while status == 202:
            async with visitor.get(f"{url}/pictures/{answers[0][1]['task']}") as answer:
                status, body = answer.status, await answer.read()
            await asyncio.sleep(0.05)
    assert (status, body[:4]) == (200, PNG)
    assert len(await shop.tasks()) == 1
    running.should_exit = True
    await serving
    listener.close()
