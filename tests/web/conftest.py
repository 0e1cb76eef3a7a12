"""One installation and one browser for all tests of the pages; an account of its own for each."""

from __future__ import annotations

import os
import shutil
from collections.abc import AsyncIterator
from urllib.parse import urlsplit

import aiohttp
import pytest
import pytest_asyncio
from playwright.async_api import Browser, async_playwright

from tests.acceptance.installed import Installed
from tests.places import new_data_dir
from tests.receiver import Receiver, running_receiver
from tests.web.console import first_operator, new_console
from tests.web.desk import Desk, bearer
from tests.web.studio import Customer, Studio, Witness, new_customer, new_studio

CHROMIUM = os.environ.get("CHROMIUM", "/usr/bin/chromium")
KNOBS = {"latency_s": [0.3, 0.8]}


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def receiver() -> AsyncIterator[Receiver]:
    """A customer's place for webhooks, on this machine."""
    async with running_receiver() as made:
        yield made


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def service(receiver: Receiver) -> AsyncIterator[Installed]:
    """A running installation with its lab; of all private addresses its customers may name the receiver's."""
    made = Installed(new_data_dir(), knobs=KNOBS)
    (made.data_dir / "safelight.toml").write_text(f'allowed_origins = ["{receiver.origin}"]\n')
    await made.start()
    yield made
    await made.stop()
    shutil.rmtree(made.data_dir, ignore_errors=True)
    made.log.unlink(missing_ok=True)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser() -> AsyncIterator[Browser]:
    """The system's Chromium; as root it cannot make its own sandbox."""
    if not os.access(CHROMIUM, os.X_OK):
        pytest.fail(f"the tests of the web pages need Chromium: apt-get install chromium (no {CHROMIUM})")
    arguments = ["--no-sandbox"] if os.getuid() == 0 else []
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=arguments)
        yield browser
        await browser.close()


@pytest_asyncio.fixture(loop_scope="session")
async def customer(service: Installed) -> Customer:
    """An account with 100 credits that is this test's own."""
    return await new_customer(service)


@pytest_asyncio.fixture(loop_scope="session")
async def witness(service: Installed) -> AsyncIterator[Witness]:
    """Whatever a test does, no page asks another host for anything, and none breaks its policy."""
    made = Witness(urlsplit(service.url).netloc)
    yield made
    assert made.foreign == []
    assert made.stopped == []


@pytest_asyncio.fixture(loop_scope="session")
async def studio(
    service: Installed, browser: Browser, customer: Customer, witness: Witness
) -> AsyncIterator[Studio]:
    """A tab in which the customer is signed in."""
    made = await new_studio(browser, witness)
    await made.open(service.url, customer)
    yield made
    await made.context.close()


@pytest_asyncio.fixture(loop_scope="session")
async def lab(service: Installed) -> AsyncIterator[aiohttp.ClientSession]:
    """The lab's own door, and its knobs as they were afterwards."""
    async with aiohttp.ClientSession(await service.lab_url()) as session:
        yield session
        async with session.post("/lab/knobs", json={"reset": True}) as answer:
            assert answer.status == 200


@pytest_asyncio.fixture(loop_scope="session")
async def console(service: Installed, browser: Browser, witness: Witness) -> AsyncIterator[Studio]:
    """A tab in which the first operator is signed in."""
    tab = await new_console(browser, witness, service, first_operator(service))
    yield tab
    await tab.context.close()


@pytest_asyncio.fixture(loop_scope="session")
async def operator(service: Installed) -> AsyncIterator[aiohttp.ClientSession]:
    """The operator's door, past the page."""
    headers = bearer(first_operator(service).key)
    async with aiohttp.ClientSession(service.url, headers=headers) as session:
        yield session


@pytest_asyncio.fixture(loop_scope="session")
async def desk(service: Installed, operator: aiohttp.ClientSession, lab: aiohttp.ClientSession) -> Desk:
    """What puts tasks before the operator."""
    return Desk(service, operator, lab)
