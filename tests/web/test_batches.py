"""From a file of items to pictures: read before anything is sent, handed in once, watched, taken home."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from playwright.async_api import Browser, FilePayload, Locator, Route, expect

from tests.acceptance.installed import Installed
from tests.web.studio import READY_MS, Customer, Studio, Witness, new_customer, new_studio, new_tab, tasks_of

pytestmark = pytest.mark.asyncio(loop_scope="session")
BATCHES = "**/v1/batches?*"
PRODUCTS = "sku,product,colour\n" + "".join(f"A{n},shoe {n},red\n" for n in range(1, 7))
TEMPLATE = "a {{colour}} {{product}} on white"


async def test_a_table_of_six_products_becomes_six_pictures_and_one_zip(
    studio: Studio, service: Installed, customer: Customer, tmp_path: Path
) -> None:
    page = studio.page
    dialog = await _prepare(studio, PRODUCTS)
    await expect(dialog.get_by_text("6 items", exact=True)).to_be_visible()
    await expect(dialog.get_by_role("listitem").first).to_have_text("2a red shoe 1 on white")
    await expect(dialog.get_by_text("and 2 more")).to_be_visible()
    await expect(dialog.get_by_text("Costs 6 credits, 94 left after")).to_be_visible()
    await studio.shoot("batch-prepared")
    await dialog.get_by_role("button", name="Develop 6 items").click()
    await expect(dialog).to_have_count(0)
    await page.reload()
    card = _cards(studio)
    await expect(card.get_by_role("progressbar")).to_have_attribute("aria-valuemax", "6")
    await studio.shoot("batch-at-work")
    await expect(card.get_by_text("6 ready")).to_be_visible(timeout=READY_MS)
    await expect(card.get_by_text("6 credits paid")).to_be_visible()
    await studio.wait_for_pictures(6)
    await expect(page.get_by_text("94 credits")).to_be_visible()
    async with page.expect_download() as downloading:
        await card.get_by_role("link", name="Download all as zip").click()
    await (await downloading.value).save_as(tmp_path / "all.zip")
    with zipfile.ZipFile(tmp_path / "all.zip") as archive:
        lines = [json.loads(line) for line in archive.read("manifest.jsonl").splitlines()]
        pictures = [name for name in archive.namelist() if name != "manifest.jsonl"]
    assert pictures == [f"{place:05}-1.png" for place in range(1, 7)]
    assert [line["task"]["prompt"] for line in lines] == [f"a red shoe {n} on white" for n in range(1, 7)]
    assert lines[2]["task"]["metadata"]["row"] == {"sku": "A3", "product": "shoe 3", "colour": "red"}
    assert sum(task["credits"]["captured"] for task in await tasks_of(service, customer)) == 6


WRONG: list[tuple[str, bytes, str]] = [
    ("a.csv", b"sku,product\nA1,shoe\nA2\n", "Line 3: 1 fields, where 2 columns are named."),
    ("a.csv", b'a,b\n1,"two\nlines"\n3,"open\n', "Line 4: a quotation mark is opened and never closed."),
    ("a.csv", b'a,b\n1,"x"y\n', "Line 2: something stands behind a closing quotation mark."),
    ("a.csv", b"a,,b\n1,2,3\n", "Line 1: column 2 has no name."),
    ("a.csv", b"a,b,a\n1,2,3\n", "Line 1: two columns have the name a."),
    ("a.csv", b"\xef\xbb\xbfa,b\n\n", "There is no row with an item in this file."),
    ("a.csv", "a\nok\nrouge é\n".encode("latin-1"), "Line 3: this is no text in UTF-8."),
    ("a.csv", b"\x89PNG\r\n\x1a\n\x00\x00", "Line 1: this is no text in UTF-8."),
    ("a.csv", b"a\n" + b"x\n" * 10_001, "The file has 10,001 items, and a batch takes 10,000."),
    ("a.jsonl", b'{"prompt": "x"}\n\n{"prompt": \n', "Line 3: this is not JSON."),
    ("a.jsonl", b'{"prompt": "x"}\n["y"]\n', "Line 2: this is no JSON object."),
    ("a.jsonl", b'{"prompt": "x"}\n{"prompt": " "}\n', "Line 2: the prompt is empty."),
    ("a.jsonl", b'{"prompt": "x"}\n{"n": 2}\n', "Line 2: there is no prompt."),
    ("a.jsonl", b'{"prompt": "x", "n": 99}\n', "Line 1: n is 99; it can be 1 to 10."),
    ("a.jsonl", b'{"prompt": "x", "model": "of-glass"}\n', "Line 1: there is no model of-glass."),
]


async def test_a_wrong_file_says_what_is_wrong_with_which_line(studio: Studio) -> None:
    dialog = await _open(studio)
    for name, data, sentence in WRONG:
        await _choose(dialog, _file(name, data))
        await expect(dialog.get_by_role("alert")).to_contain_text(sentence)
        await expect(dialog.get_by_role("button", name="Develop")).to_have_count(0)
    await studio.shoot("batch-wrong")
    await _choose(dialog, _file("mended.jsonl", b'{"prompt": "a pear"}'))
    await expect(dialog.get_by_role("button", name="Develop 1 item")).to_be_visible()
    await expect(dialog.get_by_role("alert")).to_have_count(0)


TABLES: list[tuple[bytes, list[str]]] = [
    (b"\xef\xbb\xbfprompt\na pear\n", ["2a pear"]),
    (b"sku;prompt\r\n1;red, round\r\n\r\n2;green\r\n", ["2red, round", "4green"]),
    (b'prompt,sku\n"say ""no""\nand go",1\n"a, b",2', ['2say "no"\nand go', "4a, b"]),
    (b"prompt\tsku\none\t1\n\t\ntwo\t2\n", ["2one", "4two"]),
    (b"prompt \rold\rlines\r", ["2old", "3lines"]),
]


async def test_tables_are_read_as_spreadsheets_write_them(studio: Studio) -> None:
    dialog = await _open(studio)
    for data, prompts in TABLES:
        await _choose(dialog, _file("table.csv", data))
        await expect(dialog.get_by_role("listitem")).to_have_text(prompts)


async def test_a_column_that_is_not_there_is_said_beside_the_prompt(studio: Studio) -> None:
    dialog = await _prepare(studio, PRODUCTS, template="a {{shape}}")
    await expect(
        dialog.get_by_text("There is no column shape. There are: sku, product, colour.")
    ).to_be_visible()
    await expect(dialog.get_by_role("button", name="Develop")).to_have_count(0)
    await dialog.get_by_label("Prompt for all").fill("the ")
    await dialog.get_by_role("button", name="Insert product").click()
    await expect(dialog.get_by_role("listitem").first).to_have_text("2the shoe 1")


async def test_a_dropped_file_and_what_was_said_about_it_are_there_after_a_reload(studio: Studio) -> None:
    dialog = await _open(studio)
    transfer = await studio.page.evaluate_handle(
        "text => { const carried = new DataTransfer(); carried.items.add(new File([text], 'dropped.csv')); "
        "return carried }",
        PRODUCTS,
    )
    await dialog.get_by_role("region", name="File").dispatch_event("drop", {"dataTransfer": transfer})
    await dialog.get_by_label("Prompt for all").fill(TEMPLATE)
    await studio.page.reload()
    await expect(dialog.get_by_text("dropped.csv")).to_be_visible()
    await expect(dialog.get_by_label("Prompt for all")).to_have_value(TEMPLATE)
    await expect(dialog.get_by_role("button", name="Develop 6 items")).to_be_visible()


async def test_a_reload_after_a_lost_answer_and_a_second_tab_make_one_batch(
    studio: Studio, service: Installed, customer: Customer, witness: Witness
) -> None:
    sent: list[tuple[str, str | None]] = []

    async def lose_answer(route: Route) -> None:
        request = route.request
        if request.method != "POST":
            await route.continue_()
            return
        sent.append((request.headers["idempotency-key"], request.post_data))
        if len(sent) == 1:
            await route.fetch()
            await route.abort()
        else:
            await route.continue_()

    await studio.context.route(BATCHES, lose_answer)
    dialog = await _prepare(studio, PRODUCTS)
    await dialog.get_by_role("button", name="Develop 6 items").click()
    await expect(dialog).to_have_count(0)
    second = await new_tab(studio.context, witness)
    await second.page.goto(service.url)
    await studio.page.reload()
    for tab in (studio, second):
        await expect(_cards(tab).get_by_text("6 ready")).to_be_visible(timeout=READY_MS)
        await expect(_cards(tab)).to_have_count(1)
    assert len(sent) > 1
    assert len(set(sent)) == 1
    assert len(await tasks_of(service, customer)) == 6
    assert len(await _batches_of(service, customer)) == 1


async def test_too_few_credits_are_said_before_and_all_or_nothing_or_a_part_is_a_choice(
    service: Installed, browser: Browser, witness: Witness
) -> None:
    studio = await new_studio(browser, witness)
    poor = await new_customer(service, granted=4)
    await studio.open(service.url, poor)
    dialog = await _prepare(studio, PRODUCTS)
    await expect(dialog.get_by_text("Costs 6 credits; you have 4 credits.")).to_be_visible()
    whole = dialog.get_by_role("button", name="Develop 6 items")
    await expect(whole).to_have_attribute("aria-disabled", "true")
    await studio.shoot("batch-too-dear")
    assert await _batches_of(service, poor) == []
    await dialog.get_by_label("As far as the credits go: 4 of 6").check()
    await dialog.get_by_role("button", name="Develop 4 items").click()
    card = _cards(studio)
    await expect(card.get_by_text("4 ready")).to_be_visible(timeout=READY_MS)
    await expect(card.get_by_text("2 left out")).to_be_visible()
    await expect(studio.page.get_by_text("0 credits", exact=True)).to_be_visible()
    await card.get_by_role("button", name="What went wrong").click()
    await expect(card.get_by_text("5. There are not enough credits for this.")).to_be_visible()
    assert len(await tasks_of(service, poor)) == 4
    await studio.context.close()


async def test_what_the_service_refuses_names_the_line_and_comes_back_to_be_changed(studio: Studio) -> None:
    lines = [{"prompt": "a pear"}, {"prompt": "a plum", "size": "1x1"}]
    text = "\n\n".join(map(json.dumps, lines))
    dialog = await _open(studio)
    await _choose(dialog, _file("fruit.jsonl", text.encode()))
    await dialog.get_by_role("button", name="Develop 2 items").click()
    card = studio.cards.filter(has_text="fruit.jsonl")
    await expect(card.get_by_text("Line 3: size: ")).to_be_visible()
    await studio.shoot("batch-refused")
    await card.get_by_role("button", name="Change it").click()
    await expect(dialog.get_by_text("fruit.jsonl")).to_be_visible()
    await expect(studio.cards).to_have_count(0)


async def test_a_batch_can_be_canceled_and_what_has_not_begun_is_not_paid_for(
    studio: Studio, service: Installed, customer: Customer, lab: aiohttp.ClientSession
) -> None:
    async with lab.post("/lab/knobs", json={"latency_s": [60, 60]}) as answer:
        assert answer.status == 200
    dialog = await _prepare(studio, PRODUCTS)
    await dialog.get_by_label("At work at once").fill("1")
    await dialog.get_by_role("button", name="Develop 6 items").click()
    card = _cards(studio)
    await card.get_by_role("button", name="Cancel").click()
    await card.get_by_role("button", name="Yes, cancel").click()
    await expect(card.get_by_text("Canceled", exact=False)).to_be_visible()
    await expect(card.get_by_role("button", name="Cancel")).to_have_count(0)
    (batch,) = await _batches_of(service, customer)
    assert batch["canceled_at"] is not None
    assert batch["credits"]["released"] >= 5


@pytest.mark.parametrize(("scheme", "language"), [("dark", "en"), ("light", "zh")])
async def test_axe_finds_nothing_serious_in_a_batch(
    service: Installed, browser: Browser, customer: Customer, witness: Witness, scheme: Any, language: str
) -> None:
    studio = await new_studio(browser, witness, color_scheme=scheme, reduced_motion="reduce")
    page = studio.page
    await page.add_init_script(f"localStorage.setItem('safelight.language', '{language}')")
    await page.goto(service.url)
    await page.locator("input[type=password]").fill(customer.key)
    await page.locator("button[type=submit]").click()
    await page.locator("a[href='#/batch']").click()
    dialog = page.get_by_role("dialog")
    await expect(dialog).to_be_visible()
    await _choose(dialog, _file("wrong.csv", b"a,b\n1\n"))
    await expect(dialog.get_by_role("alert")).to_be_visible()
    assert await studio.serious_faults() == []
    await _choose(dialog, _file("table.csv", b"sku,prompt\n1,a pear\n2,a plum\n"))
    await expect(dialog.get_by_role("listitem")).to_have_count(2)
    await studio.shoot(f"batch-{scheme}-{language}")
    assert await studio.serious_faults() == []
    await dialog.locator("button[aria-disabled=false]").click()
    await expect(_cards(studio).locator("[data-count=ready]")).to_contain_text("2", timeout=READY_MS)
    await studio.wait_for_pictures(2)
    await studio.shoot(f"batch-done-{scheme}-{language}")
    assert await studio.serious_faults() == []
    await studio.context.close()


async def test_a_keyboard_on_a_phone_s_width_is_enough_for_a_batch(
    service: Installed, browser: Browser, customer: Customer, witness: Witness
) -> None:
    context = await browser.new_context(viewport={"width": 360, "height": 740}, locale="en-GB")
    studio = await new_tab(context, witness)
    page = studio.page
    await studio.open(service.url, customer)
    dialog = page.get_by_role("dialog")
    async with page.expect_file_chooser() as choosing:
        await page.get_by_role("link", name="Many at once, from a file").press("Enter")
        await expect(dialog.get_by_role("button", name="Choose a file")).to_be_focused()
        await page.keyboard.press("Enter")
    await (await choosing.value).set_files(_file("products.csv", PRODUCTS.encode()))
    field = dialog.get_by_label("Prompt for all")
    await field.focus()
    await page.keyboard.type(TEMPLATE)
    await expect(dialog.get_by_role("listitem").first).to_have_text("2a red shoe 1 on white")
    await studio.shoot("phone-batch")
    assert await _overhang(studio, ".mantine-Modal-content") <= 0
    await dialog.get_by_role("button", name="Develop 6 items").focus()
    await page.keyboard.press("Enter")
    await expect(_cards(studio).get_by_text("6 ready")).to_be_visible(timeout=READY_MS)
    await studio.shoot("phone-batch-done")
    assert await _overhang(studio, "html") <= 0
    await context.close()


async def _open(studio: Studio) -> Locator:
    await studio.page.get_by_role("link", name="Many at once, from a file").click()
    dialog = studio.page.get_by_role("dialog")
    await expect(dialog).to_be_visible()
    return dialog


async def _prepare(studio: Studio, table: str, template: str = TEMPLATE) -> Locator:
    """Choose a table and say the prompt."""
    dialog = await _open(studio)
    await _choose(dialog, _file("products.csv", table.encode()))
    await dialog.get_by_label("Prompt for all").fill(template)
    return dialog


async def _choose(dialog: Locator, file: FilePayload) -> None:
    await dialog.locator("input[type=file]").set_input_files(file)


def _file(name: str, data: bytes) -> FilePayload:
    return {"name": name, "mimeType": "text/csv", "buffer": data}


def _cards(studio: Studio) -> Locator:
    """The cards of batches that the service has taken."""
    return studio.page.locator("article[data-batch]")


async def _batches_of(service: Installed, customer: Customer) -> list[dict[str, Any]]:
    """The customer's batches, past the page."""
    headers = {"Authorization": f"Bearer {customer.key}"}
    async with (
        aiohttp.ClientSession(service.url, headers=headers) as session,
        session.get("/v1/batches") as answer,
    ):
        found: list[dict[str, Any]] = (await answer.json())["data"]
        return found


async def _overhang(studio: Studio, selector: str) -> int:
    found: int = await studio.page.locator(selector).evaluate("it => it.scrollWidth - it.clientWidth")
    return found
