"""From a prompt to a picture: watched, paid, downloaded, or refused in words that help."""

from __future__ import annotations

from pathlib import Path

import aiohttp
import pytest
from PIL import Image
from playwright.async_api import Browser, expect

from tests.acceptance.installed import Installed
from tests.web.studio import (
    READY_MS,
    Customer,
    Studio,
    Witness,
    new_customer,
    new_studio,
    picture_file,
    tasks_of,
)

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_a_prompt_becomes_a_picture_that_is_paid_for_and_can_be_kept(
    studio: Studio, service: Installed, customer: Customer, lab: aiohttp.ClientSession, tmp_path: Path
) -> None:
    page = studio.page
    await _set(lab, latency_s=[3, 4])
    await expect(page.get_by_text("Costs 1 credit, 99 left after")).to_be_visible()
    await studio.develop("a red shoe on white")
    await expect(page.get_by_role("heading", name="In the developer")).to_be_visible()
    await studio.shoot("developing")
    await studio.wait_for_pictures(1)
    await expect(page.get_by_text("99 credits")).to_be_visible()
    await expect(page.get_by_role("status").filter(has_text="Ready: a red shoe on white")).to_have_count(1)
    await studio.pictures.click()
    dialog = page.get_by_role("dialog")
    await expect(dialog.get_by_text("a red shoe on white")).to_be_visible()
    async with page.expect_download() as downloading:
        await dialog.get_by_role("link", name="Download").click()
    download = await downloading.value
    assert download.suggested_filename.endswith(".png")
    await download.save_as(tmp_path / "shoe.png")
    with Image.open(tmp_path / "shoe.png") as picture:
        picture.load()
        assert (picture.format, picture.size) == ("PNG", (1024, 1024))
    (task,) = await tasks_of(service, customer)
    assert (task["status"], task["credits"]["captured"]) == ("ready", 1)


async def test_size_and_count_are_the_model_s_and_the_cost_is_said_before(
    studio: Studio, service: Installed, customer: Customer
) -> None:
    page = studio.page
    await page.get_by_label("How many").fill("3")
    await expect(page.get_by_text("Costs 3 credits, 97 left after")).to_be_visible()
    await page.get_by_role("combobox", name="Size").click()
    await page.get_by_role("option", name="512 × 512").click()
    await studio.develop("three pears")
    await studio.wait_for_pictures(3)
    (task,) = await tasks_of(service, customer)
    assert [(asset["width"], asset["height"]) for asset in task["assets"]] == [(512, 512)] * 3


async def test_a_blocked_prompt_says_why_what_to_do_and_that_nothing_was_charged(
    studio: Studio, lab: aiohttp.ClientSession
) -> None:
    await _set(lab, moderate=1.0)
    await studio.develop("something that no policy lets through")
    card = studio.cards.filter(has_text="The content policy blocked this.")
    await expect(card).to_be_visible(timeout=READY_MS)
    await expect(card).to_contain_text("Change the prompt and develop it again. No credits were charged.")
    await expect(card.get_by_role("button", name="Try again")).to_have_count(0)
    await studio.shoot("failed")
    await card.get_by_role("button", name="Change it").click()
    await expect(studio.prompt).to_have_value("something that no policy lets through")
    await card.get_by_role("button", name="Dismiss").click()
    await studio.page.reload()
    await expect(studio.prompt).to_be_visible()
    await expect(studio.cards).to_have_count(0)


async def test_too_few_credits_are_said_before_anything_is_sent(
    service: Installed, browser: Browser, witness: Witness
) -> None:
    studio = await new_studio(browser, witness)
    poor = await new_customer(service, granted=0)
    await studio.open(service.url, poor)
    await studio.prompt.fill("a castle")
    await expect(studio.page.get_by_text("Costs 1 credit; you have 0 credits.")).to_be_visible()
    await studio.prompt.press("Control+Enter")
    await expect(studio.prompt).to_have_value("a castle")
    assert await tasks_of(service, poor) == []
    await studio.context.close()


async def test_an_edit_changes_only_where_the_mask_was_painted(
    studio: Studio, service: Installed, customer: Customer
) -> None:
    page = studio.page
    await page.locator("input[type=file]").set_input_files(picture_file(400, 300))
    await expect(page.get_by_alt_text("Picture 1")).to_be_visible()
    await page.get_by_role("button", name="Paint where it may change").click()
    area = page.get_by_role("application", name="Painting area")
    await area.hover()  # it waits until the dialog has come to rest
    box = await area.bounding_box()
    assert box is not None
    await page.mouse.move(box["x"] + box["width"] * 0.2, box["y"] + box["height"] * 0.5)
    await page.mouse.down()
    await page.mouse.move(box["x"] + box["width"] * 0.4, box["y"] + box["height"] * 0.5, steps=6)
    await page.mouse.up()
    await studio.shoot("mask")
    await page.get_by_role("button", name="Use this mask").click()
    await expect(page.get_by_role("button", name="Mask painted. Paint again")).to_be_visible()
    await studio.develop("the same shoe in blue")
    await studio.wait_for_pictures(1)
    (task,) = await tasks_of(service, customer)
    notes = task["metadata"]["studio"]
    assert (task["operation"], len(notes["images"])) == ("edit", 1)
    mask = await _stored_upload(service, notes["mask"])
    assert mask.size == (400, 300)
    assert [mask.getpixel(place) for place in ((120, 150), (350, 150), (120, 20))] == [255, 0, 0]


async def test_a_picture_can_be_developed_again_and_started_from(
    studio: Studio, service: Installed, customer: Customer
) -> None:
    page = studio.page
    await studio.develop("a lighthouse")
    await studio.wait_for_pictures(1)
    await studio.pictures.click()
    await page.get_by_role("button", name="Develop again").click()
    await studio.wait_for_pictures(2)
    await studio.pictures.first.click()
    await page.keyboard.press("ArrowRight")
    await page.get_by_role("button", name="Start from this picture").click()
    await expect(page.get_by_alt_text("Picture 1")).to_be_visible()
    await studio.develop("the lighthouse at night")
    await studio.wait_for_pictures(3)
    prompts = [(task["prompt"], task["operation"]) for task in await tasks_of(service, customer)]
    again = ("a lighthouse", "generate")
    assert prompts == [("the lighthouse at night", "edit"), again, again]


async def test_a_waiting_task_can_be_canceled(studio: Studio, lab: aiohttp.ClientSession) -> None:
    await _set(lab, latency_s=[60, 60])
    await studio.develop("never mind")
    await studio.cards.get_by_role("button", name="Cancel").click()
    await expect(studio.cards.get_by_text("Cancel", exact=False).first).to_be_visible()
    await expect(studio.cards.get_by_text("It is too late to cancel this.")).to_have_count(0)


async def _set(lab: aiohttp.ClientSession, **knobs: object) -> None:
    async with lab.post("/lab/knobs", json=knobs) as answer:
        assert answer.status == 200, await answer.text()


async def _stored_upload(service: Installed, upload_id: str) -> Image.Image:
    """What lies in the store under an upload, as grey."""
    async with service.database() as database, database.connection() as connection:
        key = await connection.fetchval("SELECT store_key FROM uploads WHERE id = $1", upload_id)
    (path,) = (service.data_dir / "assets").rglob(Path(key).name)
    with Image.open(path) as picture:
        return picture.convert("L")
