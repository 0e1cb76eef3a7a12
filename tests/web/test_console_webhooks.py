"""Customers' webhooks in the Console: where they go, and how each delivery went."""

from __future__ import annotations

import asyncio

import aiohttp
import pytest
from playwright.async_api import Locator, expect

from tests.acceptance.installed import Installed
from tests.receiver import Receiver, Reply
from tests.web.console import enter, row_of
from tests.web.desk import LOOK_S, Desk, bearer, submit
from tests.web.studio import READY_MS, Customer, Studio

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_deliveries_are_listed_with_their_last_answer(
    service: Installed, console: Studio, customer: Customer, desk: Desk, receiver: Receiver
) -> None:
    page, places = console.page, (receiver.url("/works"), receiver.url("/broken"))
    receiver.replies["/broken"] = [Reply(500, b"out of order")] * 20
    endpoints = [await _register(service, customer, url) for url in places]
    task_id = await submit(service, customer, "a shoe that is told of")
    for endpoint in endpoints:
        await _until_tried(desk, endpoint)
    delivered = await _delivery_to(console, places[0], task_id)
    for words in ("task.ready", "delivered", "200"):
        await expect(delivered.get_by_text(words, exact=True)).to_be_visible()
    await console.shoot("console-deliveries")
    assert await console.serious_faults() == []
    assert [told.event["type"] for told in receiver.on("/works")] == ["task.ready"]
    pending = await _delivery_to(console, places[1], task_id)
    await expect(pending.get_by_text("pending", exact=True)).to_be_visible()
    await expect(pending).to_contain_text("500")
    await page.get_by_label("Status").select_option("delivered")
    await expect(row_of(console, task_id)).to_have_count(0)


async def _register(service: Installed, customer: Customer, url: str) -> str:
    """An endpoint of the customer's, by its id."""
    headers = {**bearer(customer.key), "Idempotency-Key": url}
    body = {"url": url, "events": ["task.ready"]}
    async with (
        aiohttp.ClientSession(service.url, headers=headers) as session,
        session.post("/v1/webhook-endpoints", json=body) as answer,
    ):
        assert answer.status == 201, await answer.text()
        return str((await answer.json())["id"])


async def _until_tried(desk: Desk, endpoint: str) -> None:
    """Until a delivery to the endpoint was tried, and that is on record."""
    async with asyncio.timeout(READY_MS / 1_000):
        while True:
            async with desk.door.get("/admin/deliveries", params={"endpoint": endpoint}) as answer:
                rows = (await answer.json())["data"]
            if any(row["tries"] for row in rows):
                return
            await asyncio.sleep(LOOK_S)


async def _delivery_to(console: Studio, url: str, task_id: str) -> Locator:
    """The delivery about a task in the list of one endpoint."""
    await enter(console, "webhooks")
    await console.page.get_by_role("link", name=url).click()
    await expect(console.page.get_by_role("heading", name="Deliveries of one endpoint")).to_be_visible()
    return row_of(console, task_id)
