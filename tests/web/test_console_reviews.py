"""The operators' decisions, each pressed in a real browser about a task that waits, and followed to its end."""

from __future__ import annotations

import asyncio
import hashlib
import json

import pytest
import pytest_asyncio
from playwright.async_api import Browser, FilePayload, expect

from tests.acceptance.installed import Installed
from tests.web.console import (
    Operator,
    answers_lost,
    as_it_was,
    begin_decision,
    confirm,
    enter,
    fact,
    first_operator,
    new_console,
    section,
    told_state,
)
from tests.web.desk import Desk
from tests.web.studio import READY_MS, Customer, Studio, Witness, picture_file

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def second_operator(service: Installed) -> Operator:
    """A colleague with a key of their own."""
    said = await asyncio.to_thread(service.run, "admin-keys", "create", "night shift", "--json")
    assert said.returncode == 0, said.stderr
    return Operator(json.loads(said.stdout)["key"])


async def test_another_look_delivers_what_the_provider_had_all_along(
    console: Studio, customer: Customer, desk: Desk
) -> None:
    task_id = await desk.unheard(customer, "a shoe that nobody heard of")
    dialog = await begin_decision(console, task_id)
    await dialog.get_by_label("Note").fill("their dashboard shows it")
    await confirm(dialog, "1 credits stay held; if a result is found")
    await told_state(console, "review")
    await desk.until(task_id, "succeeded")
    await _assert_ended(console, desk, task_id, captured=1)
    await _assert_decided(console, desk, task_id, "Check again", "check_again")
    assert await desk.made_for(task_id) == ["done"]
    await console.shoot("console-checked-again")


async def test_a_resubmit_takes_a_reason_and_makes_one_picture_that_is_paid_once(
    console: Studio, customer: Customer, desk: Desk
) -> None:
    task_id = await desk.unanswered(customer, "a shoe that never arrived")
    dialog = await begin_decision(console, task_id)
    go_on = dialog.get_by_role("button", name="Continue")
    await dialog.get_by_label("Resubmit").check()
    await expect(dialog.get_by_label("Reason")).to_have_value("proved_absent")
    await expect(go_on).to_be_disabled()
    await dialog.get_by_label("Note").fill("too short")
    await expect(go_on).to_be_disabled()
    await dialog.get_by_label("Note").fill("it is not in today's list")
    await console.shoot("console-resubmit")
    await confirm(dialog, "1 credits stay held, and the customer pays once")
    await told_state(console, "retrying")
    task = await desk.until(task_id, "succeeded")
    assert [attempt["outcome"] for attempt in task["attempts"]] == ["refused", "succeeded"]
    await _assert_ended(console, desk, task_id, captured=1)
    await _assert_decided(console, desk, task_id, "Resubmit", "resubmit")
    assert await desk.made_for(task_id) == ["done"]  # the provider made one, and can bill no more


async def test_a_picture_that_lies_at_an_address_is_attached(
    console: Studio, customer: Customer, desk: Desk
) -> None:
    task_id = await desk.unheard(customer, "a shoe in their dashboard")
    dialog = await begin_decision(console, task_id)
    await dialog.get_by_label("Attach a result").check()
    await expect(dialog.get_by_role("button", name="Continue")).to_be_disabled()
    await dialog.get_by_label("Addresses of pictures").fill(await desk.result_url(task_id))
    await console.shoot("console-attach")
    await confirm(dialog, "the customer pays 1 credits for each picture, of 1 held")
    await told_state(console, "archiving")
    await desk.until(task_id, "succeeded")
    await _assert_ended(console, desk, task_id, captured=1)
    await _assert_decided(console, desk, task_id, "Attach a result", "attach_result")


async def test_a_file_is_attached_once_it_is_a_picture(
    console: Studio, customer: Customer, desk: Desk
) -> None:
    task_id = await desk.unfinished(customer, "a shoe that somebody drew")
    dialog = await begin_decision(console, task_id)
    await dialog.get_by_label("Attach a result").check()
    files = console.page.locator("input[type=file]")
    words: FilePayload = {"name": "shoe.png", "mimeType": "image/png", "buffer": b"no picture"}
    await files.set_input_files(words)
    await confirm(dialog, "of 1 held")
    refused = dialog.get_by_role("alert").filter(has_text="is no picture")
    await expect(refused.locator("code")).to_have_text("shoe.png")
    await console.shoot("console-attach-refused")
    await dialog.get_by_role("button", name="Back").click()
    drawn = picture_file(320, 200)
    await files.set_input_files(drawn)
    await confirm(dialog, "of 1 held")
    await told_state(console, "archiving")
    task = await desk.until(task_id, "succeeded")
    assert task["assets"][0]["sha256"] == hashlib.sha256(drawn["buffer"]).hexdigest()
    await _assert_ended(console, desk, task_id, captured=1)
    await _assert_decided(console, desk, task_id, "Attach a result", "attach_result")


async def test_a_decision_whose_answer_was_lost_is_asked_for_again_and_made_once(
    console: Studio, customer: Customer, desk: Desk
) -> None:
    task_id = await desk.unfinished(customer, "a shoe behind a broken line")
    dialog = await begin_decision(console, task_id)
    await dialog.get_by_label("Fail and release").check()
    async with answers_lost(console.page, f"**/admin/tasks/{task_id}/decisions") as lost:
        await confirm(dialog, "all 1 credits go back to the customer")
        await expect(dialog.get_by_role("alert").filter(has_text="No answer came.")).to_be_visible()
    # The page sees what became of it before the operator does.
    await expect(fact(console, "State")).to_have_text("failed", timeout=READY_MS)
    await expect(dialog.locator("[data-money]")).to_contain_text("all 1 credits go back to the customer")
    await dialog.get_by_role("button", name="Yes, do it").click()
    await told_state(console, "failed")
    assert lost == [200]
    await _assert_ended(console, desk, task_id, captured=0)
    await _assert_decided(console, desk, task_id, "Fail and release", "fail_and_release")


async def test_of_two_operators_the_second_is_told_and_nothing_happens_twice(
    service: Installed,
    browser: Browser,
    witness: Witness,
    console: Studio,
    customer: Customer,
    desk: Desk,
    second_operator: Operator,
) -> None:
    task_id = await desk.unfinished(customer, "a shoe under two pairs of eyes")
    other = await new_console(browser, witness, service, second_operator, color_scheme="dark")
    await other.page.set_viewport_size({"width": 390, "height": 844})  # at night, on a phone
    first, second = await begin_decision(console, task_id), await begin_decision(other, task_id)
    async with as_it_was(other.page, await desk.task(task_id)):
        await first.get_by_label("Fail and release").check()
        await confirm(first, "all 1 credits go back to the customer")
        await told_state(console, "failed")
        await second.get_by_label("Resubmit").check()
        await second.get_by_label("Reason").select_option("risk_accepted")
        await second.get_by_label("Note").fill("the customer cannot wait")
        await other.shoot("console-phone-resubmit-dark")
        await confirm(second, "1 credits stay held")
        by = first_operator(service).name
        told = f"{by} has decided this already (fail_and_release); the task is now failed."
        await expect(second.get_by_role("alert")).to_contain_text(told)
        await other.shoot("console-phone-decided-already-dark")
        assert await other.serious_faults() == []
    await second.get_by_role("button", name="Back").click()
    moved = "The task has moved on since you looked. Here is how it stands now."
    await expect(other.page.get_by_role("status").filter(has_text=moved)).to_be_visible()
    await expect(fact(other, "State")).to_have_text("failed")
    await expect(other.page.get_by_role("button", name="Decide")).to_have_count(0)
    await _assert_ended(other, desk, task_id, captured=0)
    await _assert_decided(other, desk, task_id, "Fail and release", "fail_and_release")
    assert len((await desk.task(task_id))["attempts"]) == 1
    await other.context.close()


async def _assert_ended(console: Studio, desk: Desk, task_id: str, *, captured: int) -> None:
    """The page shows the end, and the hold of one credit was resolved once."""
    state = "succeeded" if captured else "failed"
    await enter(console, f"tasks/{task_id}")
    await console.page.reload()
    await expect(fact(console, "State")).to_have_text(state)
    await expect(fact(console, "Captured")).to_have_text(str(captured))
    await expect(fact(console, "Released")).to_have_text(str(1 - captured))
    task = await desk.task(task_id)
    entries = [(row["kind"], row["held_delta"], row["available_delta"]) for row in task["entries"]]
    assert entries == [("hold", 1, -1), ("settle", -1, 1 - captured)]
    await expect(section(console, "Entries").get_by_role("row")).to_have_count(3)
    assert (len(task["assets"]), task["findings"]) == (captured, [])


async def _assert_decided(console: Studio, desk: Desk, task_id: str, choice: str, action: str) -> None:
    """One decision stands on the task's page and in the audit log, with the first operator's name."""
    by = first_operator(desk.service).name
    decided = section(console, "Decisions").get_by_role("row").filter(has_text=choice)
    await expect(decided).to_have_count(1)
    await expect(decided).to_contain_text(by)
    assert await desk.audit(f"task:{task_id}") == [(f"review.{action}", by)]
    await enter(console, f"audit/task:{task_id}")
    lines = console.page.get_by_role("row").filter(has_text=f"review.{action}")
    await expect(lines).to_have_count(1)
    await expect(lines).to_contain_text(by)
