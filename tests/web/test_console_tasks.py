"""What an operator sees of one task's pictures, and of one account, in a real browser."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any, Literal

import aiohttp
import pytest
import pytest_asyncio
from playwright.async_api import Browser, Locator, Page, expect

from tests.acceptance.installed import Installed
from tests.web.studio import READY_MS, Customer, Studio, Witness, new_customer, new_studio, picture_file

pytestmark = pytest.mark.asyncio(loop_scope="session")
Scheme = Literal["dark", "light"]


@dataclass(frozen=True)
class Edit:
    """A task that is ready: it started from one picture and made another one."""

    customer: Customer
    task_id: str


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def edit(service: Installed) -> Edit:
    """An edit that is ready."""
    customer = await new_customer(service)
    headers = {"Authorization": f"Bearer {customer.key}"}
    async with aiohttp.ClientSession(service.url, headers=headers) as session:
        shoe = picture_file(320, 240)["buffer"]
        upload = await _answer(session, "/v1/uploads", data=shoe, headers={"Content-Type": "image/png"})
        wish = {
            "model": "lab-callback",
            "operation": "edit",
            "prompt": "make it blue",
            "images": [upload["id"]],
        }
        task = await _answer(session, "/v1/tasks", json=wish, headers={"Idempotency-Key": "an-edit"})
        async with asyncio.timeout(READY_MS / 1_000):
            while await _status(session, task["id"]) != "ready":  # noqa: ASYNC110 - seen from outside only
                await asyncio.sleep(0.3)
    return Edit(customer, task["id"])


@pytest.mark.parametrize(("scheme", "tag"), [("dark", "en"), ("light", "zh-CN")])
async def test_pictures_are_read_when_an_operator_asks_and_the_audit_log_says_so(
    service: Installed, browser: Browser, witness: Witness, edit: Edit, scheme: Scheme, tag: str
) -> None:
    console = await _console(service, browser, witness, scheme, tag[:2])
    page = console.page
    read, before = _requests(page, "/pictures/"), await _viewings(service, edit)
    await _enter(page, f"tasks/{edit.task_id}")
    section = page.locator("section", has=page.locator("table")).filter(has_text="SHA-256").first
    button = section.get_by_role("button")
    await expect(section.locator("tbody tr")).to_have_count(2)
    assert await console.serious_faults() == []
    assert (read, await _viewings(service, edit)) == ([], before)
    await button.click()
    pictures = section.locator("img")
    await expect(pictures).to_have_count(2)
    await _see_all(pictures)
    await button.scroll_into_view_if_needed()
    await console.shoot(f"console-pictures-{scheme}")
    assert await console.serious_faults() == []
    async with page.context.expect_page() as opened:
        await section.get_by_role("link").first.click()
    whole = await opened.value
    await _see_all(whole.locator("img"))
    await whole.close()
    await page.set_viewport_size({"width": 360, "height": 740})
    overhang = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert await page.evaluate(overhang) <= 0
    await button.scroll_into_view_if_needed()
    await console.shoot(f"console-phone-pictures-{scheme}")
    await button.click()
    await expect(pictures).to_have_count(0)
    await _enter(page, f"audit/task:{edit.task_id}")
    await expect(page.get_by_role("cell", name="pictures.view")).to_have_count(before + 1)
    await console.context.close()


async def test_an_account_s_page_asks_for_that_account_alone(
    service: Installed, browser: Browser, witness: Witness, edit: Edit
) -> None:
    console = await _console(service, browser, witness, "dark", "en")
    page, account_id = console.page, edit.customer.account_id
    asked = _requests(page, "/admin/accounts")
    await _enter(page, f"accounts/{account_id}")
    await expect(page.get_by_text("Active keys")).to_be_visible()
    path = f"{service.url}/admin/accounts/{account_id}"
    assert set(asked) == {path, f"{path}/entries", f"{path}/keys"}
    await console.context.close()


def _requests(page: Page, part: str) -> list[str]:
    """Addresses with this part that the page asks for from now on."""
    found: list[str] = []
    page.on("request", lambda request: found.append(request.url) if part in request.url else None)
    return found


async def _see_all(pictures: Locator) -> None:
    """Until every one of them is drawn."""
    for picture in await pictures.all():
        await expect(picture).to_have_js_property("complete", value=True)
        assert await picture.evaluate("image => image.naturalWidth") > 0


async def _console(
    service: Installed, browser: Browser, witness: Witness, scheme: Scheme, language: str
) -> Studio:
    """A tab in which an operator is signed in."""
    tab = await new_studio(browser, witness, color_scheme=scheme, reduced_motion="reduce")
    await tab.page.add_init_script(f"localStorage.setItem('safelight.language', '{language}')")
    await tab.page.goto(f"{service.url}/console")
    await tab.page.locator("input[type=password]").fill(_admin_key(service))
    await tab.page.locator("button[type=submit]").click()
    await expect(tab.page.locator("main h1")).to_be_visible()
    return tab


async def _enter(page: Page, room: str) -> None:
    """Go to a room, until it has looked for everything that it shows."""
    await page.evaluate("room => { location.hash = `#/${room}` }", room)
    await expect(page.locator(f"nav a[href='#/{room.partition('/')[0]}'][aria-current]")).to_be_attached()
    await expect(page.locator("main h1")).to_be_visible()
    await expect(page.locator("main [data-looking]")).to_have_count(0)


def _admin_key(service: Installed) -> str:
    return (service.data_dir / "admin_key").read_text().strip()


async def _viewings(service: Installed, edit: Edit) -> int:
    """How many lines of the audit log say that somebody saw the task's pictures."""
    headers = {"Authorization": f"Bearer {_admin_key(service)}"}
    async with (
        aiohttp.ClientSession(service.url, headers=headers) as session,
        session.get(f"/admin/audit?object=task:{edit.task_id}") as answer,
    ):
        lines = (await answer.json())["data"]
    return sum(line["action"] == "pictures.view" for line in lines)


async def _answer(session: aiohttp.ClientSession, path: str, **sent: Any) -> dict[str, Any]:
    async with session.post(path, **sent) as answer:
        assert answer.status in (201, 202), await answer.text()
        found: dict[str, Any] = await answer.json()
        return found


async def _status(session: aiohttp.ClientSession, task_id: str) -> str:
    async with session.get(f"/v1/tasks/{task_id}") as answer:
        return str((await answer.json())["status"])
