"""The page's choice of languages beyond the configured ones, fetched from a local catalogue; in Chromium."""

import pytest
from playwright.async_api import Page, expect

from pipeline.server.access import Access
from pipeline.server.service import Service
from tests.browser.browser import QUIET, TALK, has_said, has_state, page_of
from tests.server.running import NewService

TOKEN = "a token that nobody guesses"


@pytest.fixture
def service(offering: NewService) -> Service:
    return offering()


async def ready(page: Page) -> None:
    await page.wait_for_selector("body[data-ready=yes]")


async def test_a_language_is_found_by_typing_and_fetched(browser, service, catalogue):
    catalogue.open.clear()
    async with page_of(browser, service, init=QUIET) as (_, page):
        await ready(page)
        field = page.get_by_label("Translate into")
        await field.fill("germ")
        await expect(page.locator("#target-choices li")).to_have_text(["Deutsch (German)"])
        await field.press("Enter")
        await expect(field).to_have_value("Deutsch (German)")
        progress = page.locator("#preparing")
        await expect(progress).to_contain_text("fetching firefox/en-de")
        assert await progress.locator("progress").get_attribute("max") == "1"
        catalogue.open.set()
        await expect(progress).to_be_hidden()
        await expect(page.get_by_role("alert")).to_be_hidden()
        await page.click("#start")
        await has_state(page, "open")
        (session,) = service.sessions.values()
        assert session.config.languages.targets == ("de",)
        await page.click("#stop")
        await has_state(page, "ended")
        await page.reload()
        await ready(page)
        await expect(field).to_have_value("Deutsch (German)")  # used last
        await field.press("Escape")
        await field.press("ArrowDown")
        await expect(page.locator("#target-choices li").first).to_have_text("Deutsch (German)")


async def test_from_the_page_to_a_shared_link_in_four_clicks(browser, service, catalogue):
    clicks = "addEventListener('click', (event) => event.isTrusted && event.detail && (window.clicks = (window.clicks ?? 0) + 1), true);"
    async with page_of(browser, service, init=clicks + TALK) as (_, page):
        await ready(page)
        await page.get_by_label("Translate into").click()
        await page.locator(".picker li", has_text="Portuguese").click()  # of an installed package
        await page.click("#start")
        await has_said(page, 1)
        await page.click("#share summary")
        await expect(page.locator("#viewer")).to_be_visible()
        assert await page.evaluate("window.clicks") == 4
        assert not catalogue.asked
        (session,) = service.sessions.values()
        assert session.config.languages.targets == ("pt",)


async def test_a_language_that_cannot_be_fetched_is_said_and_another_one_can_be_used(browser, service, catalogue):
    catalogue.server.shutdown()
    catalogue.server.server_close()
    async with page_of(browser, service, init=QUIET) as (_, page):
        await ready(page)
        field, alert = page.get_by_label("Translate into"), page.get_by_role("alert")
        await field.fill("Deutsch")
        await field.press("Enter")
        await expect(alert).to_contain_text("The models for these languages cannot be had")
        await expect(page.locator("#preparing")).to_be_hidden()
        await page.click("#start")
        await has_state(page, "refused")
        await expect(alert).to_contain_text("cannot be had")
        await field.fill("Chinese")
        await field.press("Enter")
        await expect(alert).to_be_hidden()
        await page.click("#start")
        await has_state(page, "open")


async def test_what_is_spoken_is_chosen_among_all_languages(browser, service, catalogue):
    async with page_of(browser, service, Access.of(TOKEN), init=QUIET) as (_, page):
        await ready(page)
        spoken, target = page.get_by_label("Spoken language"), page.get_by_label("Translate into")
        await expect(spoken).to_have_value("English")
        await spoken.fill("françai")
        await spoken.press("Enter")
        await target.fill("is spoken")
        await target.press("Enter")
        assert not catalogue.asked  # nothing is asked for without the token
        await page.get_by_label("Token").fill(TOKEN)
        await page.click("#start")
        await has_state(page, "open")
        (session,) = service.sessions.values()
        assert (session.config.languages.source, session.config.languages.targets) == ("fr", ("fr",))
