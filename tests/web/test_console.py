"""The operators' Console in a real browser, in front of a running service and its lab."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any, Literal

import aiohttp
import pytest
import pytest_asyncio
from playwright.async_api import Browser, Locator, expect

from tests.acceptance.installed import Installed
from tests.web.console import (
    answers_lost,
    begin_decision,
    confirm,
    enter,
    first_operator,
    sign_in,
    told_state,
)
from tests.web.desk import Desk, bearer, submit
from tests.web.studio import READY_MS, Customer, Studio, Witness, new_customer, new_studio

pytestmark = pytest.mark.asyncio(loop_scope="session")
Scheme = Literal["dark", "light"]
ROOMS = (
    "overview", "reviews", "tasks", "reconciliations", "findings", "notices", "accounts", "webhooks", "audit",
)  # fmt: skip


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def made(service: Installed) -> tuple[Customer, str]:
    """A customer with a task that is ready, and its id."""
    customer = await new_customer(service)
    task_id = await submit(service, customer, "a red shoe on white")
    headers = bearer(customer.key)
    async with (
        aiohttp.ClientSession(service.url, headers=headers) as session,
        asyncio.timeout(READY_MS / 1_000),
    ):
        while await _status(session, task_id) != "ready":  # noqa: ASYNC110 - seen from outside only
            await asyncio.sleep(0.3)
    return customer, task_id


async def _status(session: aiohttp.ClientSession, task_id: str) -> str:
    async with session.get(f"/v1/tasks/{task_id}") as answer:
        return str((await answer.json())["status"])


async def test_an_operator_signs_in_by_the_admin_key_alone(
    service: Installed, browser: Browser, customer: Customer, witness: Witness
) -> None:
    tab = await new_studio(browser, witness)
    page = tab.page
    await page.goto(f"{service.url}/console")
    await page.get_by_label("Admin key").fill(customer.key)
    await page.get_by_role("button", name="Sign in").click()
    await expect(page.get_by_role("alert")).to_contain_text("This key is not valid.")
    await sign_in(tab, service, first_operator(service))
    await page.reload()
    await expect(page.get_by_role("heading", name="Overview", level=1)).to_be_visible()
    (cookie,) = await tab.context.cookies()
    assert (cookie["httpOnly"], cookie["sameSite"], cookie["path"]) == (True, "Strict", "/admin")
    await page.get_by_role("button", name="Sign out").click()
    await expect(page.get_by_label("Admin key")).to_be_visible()
    await tab.context.close()


async def test_every_room_shows_what_is_there(
    console: Studio, made: tuple[Customer, str], operator: aiohttp.ClientSession
) -> None:
    customer, task_id = made
    page = console.page
    name = await _account_name(operator, customer)
    shown: dict[str, Locator] = {
        "overview": page.get_by_role("heading", name="lab-callback", level=3),
        "tasks": page.locator(f"a[href='#/tasks/{task_id}']"),
        f"tasks/{task_id}": page.get_by_text("a red shoe on white"),
        "notices": page.get_by_role("cell", name="applied").first,
        "accounts": page.get_by_role("link", name=name, exact=True),
        f"accounts/{customer.account_id}": page.get_by_role("cell", name="settle", exact=True),
        "audit": page.get_by_role("cell", name="account.create").first,
        "reviews": page.get_by_role("heading", name="Wait for a decision"),
        "reconciliations": page.get_by_role("heading", name="Reconciliation", level=1),
        "findings": page.get_by_role("heading", name="Findings", level=1),
        "webhooks": page.get_by_role("heading", name="Endpoints"),
    }
    for room, there in shown.items():
        await enter(console, room)
        await expect(there).to_be_visible()
        await console.shoot(f"console-{room.split('/')[0]}{'-one' if '/' in room else ''}")
    await expect(page.get_by_role("alert")).to_have_count(0)


async def test_a_decision_says_what_it_does_to_money_before_it_is_made(
    console: Studio, customer: Customer, desk: Desk
) -> None:
    waiting = await desk.unfinished(customer, "a shoe that nobody finishes")
    dialog = await begin_decision(console, waiting)
    await dialog.get_by_label("Fail and release").check()
    await dialog.get_by_label("Reason").select_option("operator_decision")
    await dialog.get_by_label("Note").fill("nobody finishes it")
    await console.shoot("console-decision")
    assert await console.serious_faults() == []
    await confirm(dialog, "all 1 credits go back to the customer")
    await told_state(console, "failed")
    task = await desk.task(waiting)
    (decision,) = task["decisions"]
    assert (task["state"], task["captured"], task["released"]) == ("failed", 0, 1)
    assert (decision["decision"], decision["note"]) == ("fail_and_release", "nobody finishes it")


async def test_a_grant_whose_answer_was_lost_is_made_once(
    console: Studio, customer: Customer, operator: aiohttp.ClientSession
) -> None:
    page = console.page
    await enter(console, f"accounts/{customer.account_id}")
    async with answers_lost(page, "**/grants") as lost:
        await page.get_by_role("button", name="Grant credits").click()
        await page.get_by_role("textbox", name="Credits").fill("40")
        await page.get_by_role("textbox", name="Reason").fill("for patience")
        await page.get_by_role("button", name="Continue").click()
        await expect(page.locator("[data-money]")).to_contain_text("40 credits are added")
        await page.get_by_role("button", name="Yes, do it").click()
        await expect(page.get_by_role("alert")).to_contain_text("An earlier grant was not answered.")
    await page.reload()
    await page.get_by_role("button", name="Send again").click()
    await page.get_by_role("button", name="Yes, do it").click()
    await expect(page.get_by_text("Done. 140 credits are available now.")).to_be_visible()
    async with operator.get(f"/admin/accounts/{customer.account_id}/entries") as answer:
        grants = [entry["available_delta"] for entry in (await answer.json())["data"]]
    assert (lost, grants) == ([201], [40, 100])


async def test_a_new_key_is_shown_once_and_a_revoked_one_is_refused(
    console: Studio, customer: Customer, service: Installed
) -> None:
    page = console.page
    await enter(console, f"accounts/{customer.account_id}")
    await page.get_by_role("button", name="New key").click()
    await page.get_by_label("Name, for people").fill("of the shop")
    await page.get_by_role("dialog").get_by_role("button", name="New key").click()
    key = await page.get_by_role("dialog").locator("code").inner_text()
    assert await _status_with(service, key) == 200
    await page.get_by_role("button", name="I have kept it").click()
    await expect(page.get_by_text(key)).to_have_count(0)
    row = page.get_by_role("row").filter(has_text="of the shop")
    await row.get_by_role("button", name="Revoke").click()
    await page.get_by_role("dialog").get_by_role("button", name="Revoke").click()
    await expect(row.get_by_text("revoked")).to_be_visible()
    # Every door knows within seconds.
    refused = [status async for status in _statuses_with(service, key) if status == 401]
    assert refused == [401]


async def test_rooms_and_tasks_are_found_by_keyboard(console: Studio, made: tuple[Customer, str]) -> None:
    page, (_, task_id) = console.page, made
    asked = page.get_by_role("combobox", name="A page, or the id")
    await page.keyboard.press("Control+k")
    await expect(asked).to_be_focused()
    await page.keyboard.type("audit")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("heading", name="Audit log", level=1)).to_be_visible()
    await page.keyboard.press("Control+k")
    await expect(asked).to_be_focused()
    await page.keyboard.type(task_id)
    await page.keyboard.press("Enter")
    await expect(page.get_by_text("a red shoe on white")).to_be_visible()
    await page.keyboard.press("Tab")
    assert await page.evaluate("document.activeElement !== document.body")


@pytest.mark.parametrize(("scheme", "tag"), [("dark", "en"), ("light", "zh-CN")])
async def test_axe_finds_nothing_serious_on_a_desk_and_a_phone(
    service: Installed,
    browser: Browser,
    witness: Witness,
    made: tuple[Customer, str],
    scheme: Scheme,
    tag: str,
) -> None:
    customer, task_id = made
    console = await new_studio(browser, witness, color_scheme=scheme, reduced_motion="reduce")
    page = console.page
    await page.add_init_script(f"localStorage.setItem('safelight.language', '{tag[:2]}')")
    await sign_in(console, service, first_operator(service))
    await expect(page.locator("html")).to_have_attribute("lang", tag)
    for room in (*ROOMS, f"tasks/{task_id}", f"accounts/{customer.account_id}"):
        await enter(console, room)
        assert await console.serious_faults() == [], room
    await page.set_viewport_size({"width": 360, "height": 740})
    for room in ("overview", "tasks", f"tasks/{task_id}", f"accounts/{customer.account_id}"):
        await enter(console, room)
        overhang = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        assert await page.evaluate(overhang) <= 0, room
        await console.shoot(f"console-phone-{room.split('/')[0]}{'-one' if '/' in room else ''}-{scheme}")
    assert await console.serious_faults() == []
    await console.context.close()


async def _status_with(service: Installed, key: str) -> int:
    headers = bearer(key)
    async with (
        aiohttp.ClientSession(service.url) as session,
        session.get("/v1/balance", headers=headers) as answer,
    ):
        return answer.status


async def _statuses_with(service: Installed, key: str) -> AsyncIterator[int]:
    """What the key is answered with, again and again until it is refused."""
    for _ in range(60):
        status = await _status_with(service, key)
        yield status
        if status == 401:
            return
        await asyncio.sleep(0.5)


async def _account_name(operator: aiohttp.ClientSession, customer: Customer) -> str:
    async with operator.get("/admin/accounts?limit=100") as answer:
        rows: list[dict[str, Any]] = (await answer.json())["data"]
    return next(str(row["name"]) for row in rows if row["id"] == customer.account_id)
