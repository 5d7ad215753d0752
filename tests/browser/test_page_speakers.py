"""The page's switch for voices that are told apart."""

from playwright.async_api import expect

from tests.browser.browser import QUIET, TALK, has_state, page_of
from tests.browser.test_page import downloaded
from tests.server.test_told_speakers import told  # noqa: F401  # a fixture


async def test_the_page_has_a_switch_that_is_remembered(browser, told):  # noqa: F811
    async with page_of(browser, told.service, init=TALK) as (_, page):
        await expect(page.locator("#start")).to_be_enabled()
        await page.locator("#display summary").click()
        switch = page.get_by_label("Speakers")
        await expect(switch).to_have_value("off")
        await switch.select_option("on")
        await page.reload()
        await page.locator("#display summary").click()
        await expect(switch).to_have_value("on")
        await page.locator("#display summary").click()
        await page.locator("#start").click()
        await has_state(page, "open")
        await expect(switch).to_be_disabled()
        await expect(page.locator("#text .speaker").first).to_have_text("1")
        await page.locator("#stop").click()
        await has_state(page, "ended")
        await expect(switch).to_be_enabled()
        assert "<v 1>" in await downloaded(page, "vtt")


async def test_a_server_that_does_not_allow_it_has_no_switch(browser, service_of):
    kept = """localStorage.setItem("speech-translation", '{"voices": "on"}');"""
    async with page_of(browser, service_of(), init=kept + QUIET) as (_, page):
        await expect(page.locator("#start")).to_be_enabled()
        await page.locator("#display summary").click()
        await expect(page.get_by_label("Layout")).to_be_visible()
        await expect(page.get_by_label("Speakers")).to_be_hidden()
        await page.locator("#start").click()
        await has_state(page, "open")
