"""What came too late, in the Console: found by a run over the provider's day, accepted, and resolved."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime

import aiohttp
import pytest
import pytest_asyncio
from playwright.async_api import Browser, Locator, expect

from tests.acceptance.installed import Installed
from tests.web.console import (
    answers_lost,
    as_it_was,
    begin_decision,
    confirm,
    enter,
    fact,
    first_operator,
    new_console,
    row_of,
    told_state,
)
from tests.web.desk import Desk, bearer
from tests.web.studio import Studio, Witness, new_customer

pytestmark = pytest.mark.asyncio(loop_scope="session")


@dataclass(frozen=True, slots=True)
class Late:
    """Two tasks whose first attempt was given up, although its picture was made."""

    waiting: str
    """Its second attempt came to nothing: it is in review again."""
    failed: str


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def late(service: Installed) -> AsyncIterator[Late]:
    """The provider's day was reconciled, so that both pictures are found."""
    async with (
        aiohttp.ClientSession(service.url, headers=bearer(first_operator(service).key)) as door,
        aiohttp.ClientSession(await service.lab_url()) as lab,
    ):
        desk = Desk(service, door, lab)
        customer = await new_customer(service)
        waiting = await desk.unheard(customer, "a shoe that came late")
        await desk.resubmit_unfinished(waiting)
        failed = await desk.unheard(customer, "a shoe that came too late")
        await desk.decide(failed, "fail_and_release", "no_result", "nobody heard of it")
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("SAFELIGHT_LAB_URL", await service.lab_url())
            today = str(datetime.now(UTC).date())
            run = await service.begin("reconcile", "--provider", "lab-callback", "--day", today)
        assert await run.wait() == 1  # there is something for a person
        yield Late(waiting, failed)


async def test_a_run_over_a_providers_day_is_shown_with_what_it_found(console: Studio, late: Late) -> None:
    page = console.page
    await enter(console, "reconciliations")
    await page.get_by_label("Provider").select_option("lab-callback")
    run = page.get_by_role("row").filter(has_text=late.failed)
    await expect(run).to_have_count(1)
    for words in ("complete", "orphan result", late.waiting):
        await expect(run).to_contain_text(words)
    await console.shoot("console-run")
    assert await console.serious_faults() == []


async def test_a_picture_that_came_late_is_accepted_once_although_the_answer_was_lost(
    console: Studio, late: Late, desk: Desk
) -> None:
    page, task_id = console.page, late.waiting
    dialog = await begin_decision(console, task_id)
    await dialog.get_by_label("Accept what there is").check()
    async with as_it_was(page, await desk.task(task_id)):
        async with answers_lost(page, "**/decisions") as lost:
            await confirm(dialog, "1 credits for each picture that can be had, of 1 held")
            again = "No answer came. Press again: the same decision is made only once."
            await expect(dialog.get_by_role("alert").filter(has_text=again)).to_be_visible()
            await expect(dialog.get_by_role("button", name="Back")).to_be_disabled()
            await console.shoot("console-decision-unanswered")
        await desk.until(task_id, "succeeded")
        await dialog.get_by_role("button", name="Yes, do it").click()
        await told_state(console, "archiving")
    await page.reload()
    await expect(fact(console, "State")).to_have_text("succeeded")
    await expect(fact(console, "Captured")).to_have_text("1")
    await console.shoot("console-accepted")
    task = await desk.task(task_id)
    by = first_operator(desk.service).name
    decided = [(row["decision"], row["decided_by"]) for row in task["decisions"]]
    assert decided == [("resubmit", by), ("accept_as_done", by)]
    assert await desk.audit(f"task:{task_id}") == [("review.resubmit", by), ("review.accept_as_done", by)]
    assert [(row["kind"], row["held_delta"]) for row in task["entries"]] == [("hold", 1), ("settle", -1)]
    assert (lost, task["captured"], task["released"], len(task["assets"])) == ([200], 1, 0, 1)


async def test_a_finding_is_resolved_once_from_two_pages_and_by_a_double_click(
    service: Installed, browser: Browser, witness: Witness, console: Studio, late: Late, desk: Desk
) -> None:
    other = await new_console(browser, witness, service, first_operator(service), color_scheme="dark")
    ours, theirs = await _begin_resolving(console, late.failed), await _begin_resolving(other, late.failed)
    await console.shoot("console-resolve")
    assert await console.serious_faults() == []
    await ours.get_by_label("What came of it").fill("the provider was asked for the money")
    await ours.get_by_role("button", name="Resolve").dblclick()
    await expect(console.page.get_by_role("dialog")).to_have_count(0)
    await expect(row_of(console, late.failed)).to_have_count(0)
    await theirs.get_by_label("What came of it").fill("it is nothing")
    await theirs.get_by_role("button", name="Resolve").click()
    told = theirs.get_by_role("alert").filter(has_text="Somebody has resolved this finding already.")
    await expect(told).to_be_visible()
    await other.shoot("console-resolved-already-dark")
    await theirs.get_by_role("button", name="Cancel").click()
    await expect(row_of(other, late.failed)).to_have_count(0)
    # It is kept with what was said first.
    await other.page.get_by_label("Open", exact=True).uncheck()
    by = first_operator(service).name
    resolved = row_of(other, late.failed)
    await expect(resolved).to_contain_text(f"the provider was asked for the money ({by})")
    await expect(resolved.get_by_role("button", name="Resolve")).to_have_count(0)
    await other.shoot("console-resolved-dark")
    (finding,) = (await desk.task(late.failed))["findings"]
    assert await desk.audit(f"finding:{finding['id']}") == [("finding.resolve", by)]
    assert finding["resolution"] == "the provider was asked for the money"
    await other.context.close()


async def _begin_resolving(tab: Studio, task_id: str) -> Locator:
    await enter(tab, "findings")
    await row_of(tab, task_id).get_by_role("button", name="Resolve").click()
    dialog = tab.page.get_by_role("dialog")
    await expect(dialog.get_by_role("button", name="Resolve")).to_be_disabled()  # it needs a note
    return dialog
