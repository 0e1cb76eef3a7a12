"""Signing in: by a key or a one-time link, out again, and at every API process."""

from __future__ import annotations

import asyncio
import os

import pytest
from playwright.async_api import Browser, expect

from tests.acceptance.installed import COMMAND, Installed, free_port
from tests.web.studio import Customer, Studio, Witness, new_studio, new_tab, studio_link_in

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_the_link_that_serve_prints_opens_the_studio_once_and_leaves_no_trace(
    service: Installed, browser: Browser, witness: Witness
) -> None:
    # A fresh one: other tests move the clock, and the link of the first start may be too old by now.
    await service.stop()
    await service.start()
    link = studio_link_in(service.log.read_text())
    studio, late = await new_studio(browser, witness), await new_studio(browser, witness)
    await studio.page.goto(link)
    await expect(studio.prompt).to_be_visible()
    assert studio.page.url == f"{service.url}/"
    await late.page.goto(link)
    await expect(late.page.get_by_role("alert")).to_contain_text("This link was used before, or is too old.")
    another = await asyncio.to_thread(service.run, "studio")
    await late.page.goto(another.stdout.strip())
    await late.page.reload()
    await expect(late.prompt).to_be_visible()
    for one in (studio, late):
        await one.context.close()


async def test_a_wrong_key_is_refused_in_words(
    service: Installed, browser: Browser, witness: Witness
) -> None:
    studio = await new_studio(browser, witness)
    await studio.page.goto(service.url)
    await studio.shoot("sign-in")
    await studio.page.get_by_label("API key").fill("sl_live_not-a-key")
    await studio.page.get_by_role("button", name="Sign in").click()
    await expect(studio.page.get_by_role("alert")).to_contain_text("This key is not valid.")
    await studio.context.close()


async def test_nothing_that_a_script_can_read_holds_the_key_or_the_session(
    studio: Studio, customer: Customer
) -> None:
    kept = await studio.page.evaluate(
        "[document.cookie, ...Object.values(localStorage), ...Object.values(sessionStorage)].join(' ')"
    )
    (cookie,) = await studio.context.cookies()
    assert customer.key not in kept
    assert cookie["value"] not in kept
    assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Strict")


async def test_signing_out_in_one_tab_signs_out_in_the_other(
    studio: Studio, service: Installed, witness: Witness
) -> None:
    second = await new_tab(studio.context, witness)
    await second.page.goto(service.url)
    await expect(second.prompt).to_be_visible()
    await studio.page.get_by_role("button", name="Sign out").click()
    await expect(studio.page.get_by_label("API key")).to_be_visible()
    await second.page.reload()
    await expect(second.page.get_by_label("API key")).to_be_visible()


async def test_whoever_is_signed_in_at_one_api_process_is_so_at_another(
    studio: Studio, service: Installed, browser: Browser
) -> None:
    port = free_port()
    process = await asyncio.create_subprocess_exec(
        COMMAND, "api", f"--data-dir={service.data_dir}", f"--port={port}",
        env={**os.environ, "SAFELIGHT_LAB_URL": await service.lab_url()}, stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout is not None
    try:
        await asyncio.wait_for(process.stdout.readline(), 60)
        # Cookies do not tell ports apart: to the browser this is the same host, as behind a load balancer.
        page = await studio.context.new_page()
        await page.goto(f"http://127.0.0.1:{port}/")
        await expect(page.locator("#prompt")).to_be_visible()
    finally:
        process.terminate()
        await process.wait()
