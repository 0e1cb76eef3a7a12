"""A submit in a browser is neither lost nor made twice: reloads, tabs, lost answers, no network."""

from __future__ import annotations

import asyncio

import pytest
from playwright.async_api import Route, expect

from tests.acceptance.installed import Installed
from tests.web.studio import READY_MS, Customer, Studio, Witness, new_tab, tasks_of

pytestmark = pytest.mark.asyncio(loop_scope="session")
TASKS = "**/v1/tasks"


async def test_a_reload_after_a_lost_answer_sends_the_same_key_and_makes_one_task(
    studio: Studio, service: Installed, customer: Customer
) -> None:
    keys: list[str] = []

    async def lose_answer(route: Route) -> None:
        if route.request.method != "POST":
            await route.continue_()
            return
        keys.append(route.request.headers["idempotency-key"])
        if len(keys) == 1:
            await route.fetch()
            await route.abort()
        else:
            await route.continue_()

    await studio.context.route(TASKS, lose_answer)
    await studio.develop("once and no more")
    await expect(studio.cards.first).to_be_visible()
    await studio.page.reload()
    await studio.wait_for_pictures(1)
    assert len(keys) > 1
    assert len(set(keys)) == 1
    assert len(await tasks_of(service, customer)) == 1


async def test_a_reload_while_a_picture_develops_shows_it_again_and_the_draft_too(studio: Studio) -> None:
    await studio.develop("developing through a reload")
    await studio.prompt.fill("half a sentence")
    await studio.page.reload()
    await expect(studio.prompt).to_have_value("half a sentence")
    await studio.wait_for_pictures(1)


async def test_what_is_submitted_without_a_network_waits_and_goes_out_once(
    studio: Studio, service: Installed, customer: Customer
) -> None:
    await studio.prompt.fill("from under a bridge")
    # Only with its models does the page know what may be asked for.
    await expect(studio.page.locator("button[type=submit][aria-disabled=false]")).to_be_visible()
    await studio.context.set_offline(True)
    await studio.develop("from under a bridge")
    await expect(studio.page.get_by_text("No connection.")).to_be_visible()
    await expect(studio.cards.filter(has_text="Not sent yet.")).to_be_visible()
    await studio.shoot("offline")
    assert await tasks_of(service, customer) == []
    await studio.context.set_offline(False)
    await studio.wait_for_pictures(1)
    await expect(studio.page.get_by_text("No connection.")).to_have_count(0)
    assert len(await tasks_of(service, customer)) == 1


async def test_two_tabs_show_the_same_and_send_a_waiting_submit_once(
    studio: Studio, service: Installed, customer: Customer, witness: Witness
) -> None:
    second = await new_tab(studio.context, witness)
    await second.page.goto(service.url)
    await expect(second.prompt).to_be_visible()
    await studio.context.set_offline(True)
    await studio.develop("seen from two sides")
    await expect(second.cards.filter(has_text="seen from two sides")).to_be_visible()
    await studio.context.set_offline(False)
    await asyncio.gather(studio.wait_for_pictures(1), second.wait_for_pictures(1))
    assert len(await tasks_of(service, customer)) == 1


async def test_a_refused_submit_says_so_keeps_its_words_and_can_be_sent_again(
    studio: Studio, service: Installed, customer: Customer
) -> None:
    refusal = '{"code": "insufficient-credits", "detail": "This task needs 1 credit; 0 are available."}'

    async def refuse(route: Route) -> None:
        if route.request.method == "POST":
            await route.fulfill(status=402, content_type="application/problem+json", body=refusal)
        else:
            await route.continue_()

    await studio.context.route(TASKS, refuse)
    await studio.develop("too dear")
    card = studio.cards.filter(has_text="There are not enough credits for this.")
    await expect(card).to_contain_text("too dear")
    await studio.page.reload()
    await expect(card).to_be_visible()
    await studio.context.unroute(TASKS)
    await card.get_by_role("button", name="Try again").click()
    await studio.wait_for_pictures(1)
    assert len(await tasks_of(service, customer)) == 1


async def test_a_session_that_ends_loses_no_submit(
    studio: Studio, service: Installed, customer: Customer
) -> None:
    await expect(studio.page.get_by_text("Costs 1 credit, 99 left after")).to_be_visible()
    await studio.context.clear_cookies()
    await studio.prompt.fill("before the door closed")
    await studio.prompt.press("Control+Enter")
    await expect(studio.page.get_by_label("API key")).to_be_visible()
    await studio.page.get_by_label("API key").fill(customer.key)
    await studio.page.get_by_role("button", name="Sign in").click()
    await studio.wait_for_pictures(1)
    assert len(await tasks_of(service, customer)) == 1


async def test_when_the_service_comes_back_the_page_goes_on_by_itself(
    studio: Studio, service: Installed, customer: Customer
) -> None:
    await studio.develop("through a restart")
    await expect(studio.page.locator("[data-task]").first).to_be_visible()
    (task,) = await tasks_of(service, customer)
    await service.until_taken([task["id"]])
    await service.kill()
    await studio.develop("while it was away")
    await expect(studio.page.get_by_text("No connection.")).to_be_visible(timeout=READY_MS)
    await service.start()
    await studio.wait_for_pictures(2)
