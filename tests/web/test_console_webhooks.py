"""Customers' webhooks in the Console: where they go, and how each delivery went."""

from __future__ import annotations

import aiohttp
import pytest
from playwright.async_api import Locator, expect

from tests.acceptance.installed import Installed
from tests.receiver import Receiver, Reply
from tests.web.console import enter, row_of
from tests.web.desk import Desk, bearer, submit
from tests.web.studio import Customer, Studio

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_deliveries_are_listed_with_their_last_answer(
    service: Installed, console: Studio, customer: Customer, desk: Desk, receiver: Receiver
) -> None:
    page = console.page
    receiver.replies["/broken"] = [Reply(500, b"out of order")] * 20
    for path in ("/works", "/broken"):
        await _register(service, customer, receiver.url(path))
    task_id = await submit(service, customer, "a shoe that is told of")
    await desk.until(task_id, "succeeded")
    delivered = await _deliveries_to(console, receiver.url("/works"), task_id, "delivered")
    await expect(delivered).to_contain_text("200")
    await expect(delivered.get_by_role("cell").nth(3)).to_have_text("1")
    await console.shoot("console-deliveries")
    assert await console.serious_faults() == []
    pending = await _deliveries_to(console, receiver.url("/broken"), task_id, "pending")
    await expect(pending).to_contain_text("500")
    await page.get_by_label("Status").select_option("delivered")
    await expect(row_of(console, task_id)).to_have_count(0)
    assert {told.event["type"] for told in receiver.on("/works")} >= {"task.succeeded"}


async def _register(service: Installed, customer: Customer, url: str) -> None:
    headers = {**bearer(customer.key), "Idempotency-Key": url}
    body = {"url": url, "events": ["task.succeeded"]}
    async with (
        aiohttp.ClientSession(service.url, headers=headers) as session,
        session.post("/v1/webhook-endpoints", json=body) as answer,
    ):
        assert answer.status == 201, await answer.text()


async def _deliveries_to(console: Studio, url: str, task_id: str, status: str) -> Locator:
    """The delivery about a task in the list of one endpoint, as soon as it stands so."""
    await enter(console, "webhooks")
    await console.page.get_by_role("link", name=url).click()
    delivery = row_of(console, task_id)
    await expect(delivery.get_by_text(status, exact=True)).to_be_visible()
    return delivery
