"""The pages are for everybody: both schemes, both languages, a keyboard alone, a phone."""

from __future__ import annotations

from typing import Literal

import pytest
from playwright.async_api import Browser, expect

from tests.acceptance.installed import Installed
from tests.web.studio import READY_MS, Customer, Studio, Witness, new_studio, picture_file

pytestmark = pytest.mark.asyncio(loop_scope="session")
Scheme = Literal["dark", "light"]
LOOKS: list[tuple[Scheme, str]] = [(scheme, tag) for scheme in ("dark", "light") for tag in ("en", "zh-CN")]


@pytest.mark.parametrize(("scheme", "tag"), LOOKS)
async def test_axe_finds_nothing_serious(
    service: Installed, browser: Browser, customer: Customer, witness: Witness, scheme: Scheme, tag: str
) -> None:
    name = f"{scheme}-{tag[:2]}"
    studio = await new_studio(browser, witness, color_scheme=scheme, reduced_motion="reduce")
    page = studio.page
    await page.add_init_script(f"localStorage.setItem('safelight.language', '{tag[:2]}')")
    await page.goto(service.url)
    await expect(page.locator("html")).to_have_attribute("lang", tag)
    await expect(page.locator("html")).to_have_attribute("data-mantine-color-scheme", scheme)
    assert await studio.serious_faults() == []
    await page.locator("input[type=password]").fill(customer.key)
    await page.locator("button[type=submit]").click()
    await studio.develop("a paper boat")
    await expect(studio.cards.first.or_(studio.pictures.first)).to_be_visible()
    assert await studio.serious_faults() == []
    await studio.wait_for_pictures(1)
    await studio.shoot(f"studio-{name}")
    assert await studio.serious_faults() == []
    await studio.pictures.click()
    await expect(page.get_by_role("dialog").locator("img")).to_be_visible()
    await studio.shoot(f"lightbox-{name}")
    assert await studio.serious_faults() == []
    await page.keyboard.press("Escape")
    await page.locator("input[type=file]").set_input_files(picture_file(320, 240))
    await page.locator("form section ul img").wait_for()
    await page.locator("form section button").last.click()
    await expect(page.get_by_role("application")).to_be_visible()
    assert await studio.serious_faults() == []
    await studio.context.close()


async def test_a_keyboard_alone_is_enough(
    service: Installed, browser: Browser, customer: Customer, witness: Witness
) -> None:
    studio = await new_studio(browser, witness)
    page = studio.page
    await page.goto(service.url)
    await page.get_by_label("API key").wait_for()
    await _tab_to(studio, "input[type=password]")
    await page.keyboard.type(customer.key)
    await page.keyboard.press("Enter")
    await expect(studio.prompt).to_be_visible()
    await _tab_to(studio, "#prompt")
    await page.keyboard.type("made without a mouse")
    await expect(page.get_by_text("Costs 1 credit, 99 left after")).to_be_visible()
    await page.keyboard.press("Control+Enter")
    await studio.wait_for_pictures(1)
    await _tab_to(studio, "a[data-task]")
    await page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog")
    await expect(dialog).to_be_visible()
    await page.keyboard.press("Escape")
    await expect(dialog).to_have_count(0)
    await expect(studio.pictures).to_be_focused()
    await studio.context.close()


async def test_a_mask_can_be_painted_by_keyboard(studio: Studio) -> None:
    page = studio.page
    await page.locator("input[type=file]").set_input_files(picture_file(320, 240))
    await page.get_by_role("button", name="Paint where it may change").press("Enter")
    await page.get_by_role("application").focus()
    for key in ("ArrowLeft", "ArrowUp", "Space", "ArrowRight", "Space"):
        await page.keyboard.press(key)
    await page.get_by_role("button", name="Use this mask").press("Enter")
    await expect(page.get_by_role("button", name="Mask painted. Paint again")).to_be_visible()


async def test_a_phone_shows_everything_without_scrolling_sideways(
    service: Installed, browser: Browser, customer: Customer, witness: Witness
) -> None:
    context = await browser.new_context(
        viewport={"width": 360, "height": 740}, device_scale_factor=2, is_mobile=True, has_touch=True
    )
    page = await context.new_page()
    witness.watch(page)
    studio = Studio(page, context)
    await studio.open(service.url, customer)
    await studio.develop("small but whole")
    await studio.wait_for_pictures(1)
    await studio.shoot("phone")
    assert await _overhang(studio) <= 0
    await studio.pictures.tap()
    await expect(page.get_by_role("link", name="Download")).to_be_visible(timeout=READY_MS)
    await studio.shoot("phone-lightbox")
    assert await _overhang(studio) <= 0
    await context.close()


async def test_language_and_scheme_are_chosen_by_hand_and_remembered(studio: Studio) -> None:
    page = studio.page
    await page.get_by_role("button", name="Language").click()
    await page.get_by_role("menuitem", name="简体中文").click()
    await expect(page.get_by_role("button", name="开始显影")).to_be_visible()
    scheme = await page.locator("html").get_attribute("data-mantine-color-scheme")
    await page.get_by_role("button", name="切换为").click()
    await page.reload()
    await expect(page.get_by_role("button", name="开始显影")).to_be_visible()
    assert await page.locator("html").get_attribute("data-mantine-color-scheme") != scheme


async def _tab_to(studio: Studio, selector: str) -> None:
    """Press Tab until the element has the focus; every stop on the way can be seen."""
    for _ in range(40):
        await studio.page.keyboard.press("Tab")
        if await studio.page.locator(f"{selector}:focus").count():
            return
    raise AssertionError(f"no way to {selector} by Tab")


async def _overhang(studio: Studio) -> int:
    found: int = await studio.page.evaluate(
        "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    )
    return found
