"""The operators' Console in a real browser: the steps that its tests share."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

from playwright.async_api import Browser, Locator, Page, Route, expect

from safelight.domain.keys import ADMIN_PREFIX, parse_key
from tests.acceptance.installed import Installed
from tests.web.studio import Studio, Witness, new_studio


@dataclass(frozen=True, slots=True)
class Operator:
    """Somebody with an admin key."""

    key: str

    @property
    def name(self) -> str:
        """As decisions and the audit log name them."""
        parsed = parse_key(self.key, ADMIN_PREFIX)
        assert parsed is not None
        return f"admin:{parsed.id}"


def first_operator(service: Installed) -> Operator:
    """Whoever has the key that was made at the first start."""
    return Operator((service.data_dir / "admin_key").read_text().strip())


async def new_console(
    browser: Browser, witness: Witness, service: Installed, operator: Operator, **options: Any
) -> Studio:
    """A browser of its own, in which the operator is signed in."""
    tab = await new_studio(browser, witness, **options)
    await sign_in(tab, service, operator)
    return tab


async def sign_in(tab: Studio, service: Installed, operator: Operator) -> None:
    """Sign in, in whatever language the page speaks."""
    await tab.page.goto(f"{service.url}/console")
    await tab.page.locator("input[type=password]").fill(operator.key)
    await tab.page.locator("button[type=submit]").click()
    await expect(tab.page.locator("main h1")).to_be_visible()


async def enter(console: Studio, room: str) -> None:
    """Go to a room, until it has looked for everything that it shows."""
    await console.page.evaluate("room => { location.hash = `#/${room}` }", room)
    await expect(
        console.page.locator(f"nav a[href='#/{room.partition('/')[0]}'][aria-current]")
    ).to_be_attached()
    await expect(console.page.locator("main h1")).to_be_visible()
    await expect(console.page.locator("main [data-looking]")).to_have_count(0)


def row_of(console: Studio, task_id: str) -> Locator:
    """The row of a list that is about a task."""
    page = console.page
    return page.get_by_role("row").filter(has=page.locator(f"a[href='#/tasks/{task_id}']"))


async def begin_decision(console: Studio, task_id: str) -> Locator:
    """Open the dialog of a task that waits, from the list of all that wait."""
    await enter(console, "reviews")
    await row_of(console, task_id).get_by_role("button", name="Decide").click()
    dialog = console.page.get_by_role("dialog")
    await expect(dialog.get_by_label("Check again")).to_be_checked()
    return dialog


async def confirm(dialog: Locator, money: str) -> None:
    """Go on to the second step, read what it says about money, and press."""
    await dialog.get_by_role("button", name="Continue").click()
    await expect(dialog.locator("[data-money]")).to_contain_text(money)
    await dialog.get_by_role("button", name="Yes, do it").click()


async def told_state(console: Studio, state: str) -> None:
    """The page says that it was decided, and where that left the task."""
    said = console.page.get_by_text(f"Decided. The task is now: {state}.")
    await expect(said).to_be_visible()
    await expect(console.page.get_by_role("dialog")).to_have_count(0)


def fact(console: Studio, name: str) -> Locator:
    """The value beside a name, among the facts of a task."""
    named = console.page.get_by_text(name, exact=True)
    facts = console.page.get_by_role("main").locator("dl").first.locator("div")
    return facts.filter(has=named).get_by_role("definition")


def section(console: Studio, title: str) -> Locator:
    """A part of a page, by its title; a table in it may have the same name."""
    return console.page.get_by_role("region", name=title, exact=True).first


@contextlib.asynccontextmanager
async def answers_lost(page: Page, path: str) -> AsyncIterator[list[int]]:
    """What is sent arrives, and its answer does not; yields the statuses of those answers."""
    lost: list[int] = []

    async def lose(route: Route) -> None:
        lost.append((await route.fetch()).status)
        await route.abort()

    await page.route(path, lose)
    yield lost
    await page.unroute(path)


@contextlib.asynccontextmanager
async def as_it_was(page: Page, task: dict[str, Any]) -> AsyncIterator[None]:
    """The page looks again every few seconds; as long as this lasts, it sees the task as it stood."""

    async def answer(route: Route) -> None:
        await route.fulfill(json=task)

    path = f"**/admin/tasks/{task['id']}"
    await page.route(path, answer)
    yield
    await page.unroute(path)
