"""The Studio in a real browser, as its customers see it."""

from __future__ import annotations

import io
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import aiohttp
from PIL import Image
from playwright.async_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    FilePayload,
    Locator,
    Page,
    Request,
    expect,
)

from tests.acceptance.installed import Installed

SCREENSHOTS = Path(__file__).with_name("screenshots")
AXE = Path(__file__).resolve().parents[2] / "web" / "node_modules" / "axe-core" / "axe.min.js"
READY_MS = 180_000
PATIENCE_MS = 60_000
"""No claim: machines that build are busy."""
expect.set_options(timeout=PATIENCE_MS)


@dataclass(frozen=True, slots=True)
class Customer:
    """An account with credits of its own, and its key."""

    key: str
    account_id: str


@dataclass
class Witness:
    """What happened beside the page: requests to other hosts, and what the security policy had to stop."""

    host: str
    foreign: list[str] = field(default_factory=list)
    stopped: list[str] = field(default_factory=list)

    def watch(self, page: Page) -> None:
        """Watch a page from now on."""
        page.on("request", self._requested)
        page.on("console", self._said)
        page.on("pageerror", lambda error: self.stopped.append(str(error)))

    def _requested(self, request: Request) -> None:
        place = urlsplit(request.url)
        if place.scheme not in ("data", "blob") and place.netloc != self.host:
            self.foreign.append(request.url)

    def _said(self, message: ConsoleMessage) -> None:
        if "Content Security Policy" in message.text:
            self.stopped.append(message.text)


@dataclass
class Studio:
    """One tab."""

    page: Page
    context: BrowserContext

    @property
    def prompt(self) -> Locator:
        return self.page.locator("#prompt")

    @property
    def pictures(self) -> Locator:
        """The thumbnails of the gallery."""
        return self.page.locator("a[data-task]")

    @property
    def cards(self) -> Locator:
        """Cards of tasks in the making, and of failed ones."""
        return self.page.locator("article")

    async def open(self, url: str, customer: Customer) -> None:
        """Open the page and sign in by the key."""
        await self.page.goto(url)
        await self.page.get_by_label("API key").fill(customer.key)
        await self.page.get_by_role("button", name="Sign in").click()
        await expect(self.prompt).to_be_visible()

    async def develop(self, prompt: str) -> None:
        """Submit a prompt, in whatever language the page speaks."""
        await self.prompt.fill(prompt)
        await self.page.locator("button[type=submit][aria-disabled=false]").click()
        await expect(self.prompt).to_have_value("")

    async def wait_for_pictures(self, count: int) -> None:
        """Until the gallery has this many pictures that can be seen."""
        await expect(self.pictures).to_have_count(count, timeout=READY_MS)
        await expect(self.page.locator("a[data-task] img[data-there]")).to_have_count(count, timeout=READY_MS)

    async def shoot(self, name: str) -> None:
        """Keep a screenshot, for people to look at."""
        SCREENSHOTS.mkdir(exist_ok=True)
        # What moves has come to rest, so that two runs give the same picture.
        await self.page.wait_for_timeout(300)
        await self.page.screenshot(path=SCREENSHOTS / f"{name}.png", animations="disabled")

    async def serious_faults(self) -> list[str]:
        """What axe-core finds that keeps somebody out: its rules of WCAG 2.2 AA."""
        # Through the protocol, since the page's own policy forbids what is not served by us.
        session = await self.context.new_cdp_session(self.page)
        await session.send("Runtime.evaluate", {"expression": AXE.read_text(encoding="utf-8")})
        tags = '["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]'
        asked = await session.send(
            "Runtime.evaluate",
            {
                "expression": f"axe.run(document, {{runOnly: {tags}}})",
                "awaitPromise": True,
                "returnByValue": True,
            },
        )
        await session.detach()
        found: list[dict[str, Any]] = asked["result"]["value"]["violations"]
        return [
            f"{one['id']}: {node['html'][:160]} {node['failureSummary'][:300]}"
            for one in found
            if one["impact"] in ("serious", "critical")
            for node in one["nodes"]
        ]


def picture_file(width: int, height: int) -> FilePayload:
    """A picture as a person picks it from a folder."""
    target = io.BytesIO()
    Image.new("RGB", (width, height), "#a03020").save(target, "PNG")
    return {"name": "picture.png", "mimeType": "image/png", "buffer": target.getvalue()}


async def new_customer(service: Installed, *, granted: int = 100) -> Customer:
    """Another account, made by the operator."""
    key = (service.data_dir / "admin_key").read_text().strip()
    async with aiohttp.ClientSession(service.url, headers={"Authorization": f"Bearer {key}"}) as operator:

        async def change(path: str, body: dict[str, Any]) -> dict[str, Any]:
            headers = {"Idempotency-Key": f"{path}-{len(names)}"}
            async with operator.post(path, json=body, headers=headers) as answer:
                assert answer.status in (200, 201), await answer.text()
                changed: dict[str, Any] = await answer.json()
                return changed

        async with operator.get("/admin/accounts?limit=100") as answer:
            names = [account["name"] for account in (await answer.json())["data"]]
        account = await change("/admin/accounts", {"name": f"customer {len(names)}"})
        path = f"/admin/accounts/{account['id']}"
        if granted:
            await change(f"{path}/grants", {"amount": granted, "reason": "to try it"})
        made = await change(f"{path}/keys", {"name": "of a test"})
    return Customer(made["key"], account["id"])


async def new_studio(browser: Browser, witness: Witness, **options: Any) -> Studio:
    """A browser of its own, with one tab."""
    context = await browser.new_context(locale="en-GB", viewport={"width": 1360, "height": 860}, **options)
    context.set_default_timeout(PATIENCE_MS)
    return await new_tab(context, witness)


async def new_tab(context: BrowserContext, witness: Witness) -> Studio:
    """Another tab of a browser."""
    page = await context.new_page()
    witness.watch(page)
    return Studio(page, context)


async def tasks_of(service: Installed, customer: Customer) -> list[dict[str, Any]]:
    """The customer's tasks, past the page."""
    headers = {"Authorization": f"Bearer {customer.key}"}
    async with (
        aiohttp.ClientSession(service.url, headers=headers) as session,
        session.get("/v1/tasks") as answer,
    ):
        found: list[dict[str, Any]] = (await answer.json())["data"]
        return found


def studio_link_in(log: str) -> str:
    """The one-time link that `serve` printed last."""
    links: list[str] = re.findall(r"http://\S+/#ticket=\S+", log)
    return links[-1]
