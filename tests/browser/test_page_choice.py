"""The page's menus of languages on a server with several configurations."""

from dataclasses import replace

import pytest
from playwright.async_api import expect

from pipeline import Models, PipelineConfig
from pipeline.languages.options import LanguageConfig
from pipeline.server.service import Service
from tests.browser.browser import QUIET, page_at, page_of
from tests.server.running import running


def offering(config: PipelineConfig, models: Models, *languages: LanguageConfig) -> Service:
    """A server for these languages, with the demo's models for all of them: nothing is said here."""
    translator = models.translations["zh"]
    chains = [
        (replace(config, languages=one), replace(models, translations=dict.fromkeys(one.targets, translator)))
        for one in languages
    ]
    return Service(*chains[0], others=chains[1:])


@pytest.mark.parametrize(
    ("spoken", "into", "targets"),
    [("zh", "en", ("en",)), ("en", "de", ("de",)), ("en", "en", ("en",)), ("auto", None, ("fr", "it"))],
)
async def test_the_speaker_chooses_what_is_spoken(
    spoken, into, targets, browser,
    demo_config, demo_models,
):  # fmt: skip
    languages = [
        LanguageConfig("en", ("zh", "de")),
        LanguageConfig("zh", ("en",)),
        LanguageConfig("auto", ("fr", "it")),
    ]
    service = offering(demo_config, demo_models, *languages)
    async with page_of(browser, service, init=QUIET) as (_, page):
        await expect(page.locator("body")).to_have_attribute("data-ready", "yes")
        source, target = page.get_by_label("Spoken language"), page.get_by_label("Translate into")
        offered = await source.locator("option").evaluate_all("all => all.map((one) => one.value)")
        assert offered == ["en", "zh", "auto"]
        await source.select_option(spoken)
        if into is None:
            await expect(target).to_be_hidden()
        else:
            await target.select_option(into)
        await page.click("#start")
        await expect(page.locator("body")).to_have_attribute("data-state", "open")
        (session,) = service.sessions.values()
        assert (session.config.languages.source, session.config.languages.targets) == (spoken, targets)


async def test_several_or_any_languages_may_be_spoken(browser, demo_config, demo_models):
    languages = [LanguageConfig("en,pt", ("en", "de")), LanguageConfig("auto", ("it",))]
    service = offering(demo_config, demo_models, *languages)
    async with page_of(browser, service, init=QUIET) as (_, page):
        await expect(page.locator("body")).to_have_attribute("data-ready", "yes")
        source, target = page.get_by_label("Spoken language"), page.get_by_label("Translate into")
        names = await source.locator("option").evaluate_all("all => all.map((one) => one.textContent)")
        assert names == ["English, português (Portuguese)", "Any language"]
        await expect(page.locator("#swap")).to_be_hidden()
        offered = await target.locator("option").evaluate_all("all => all.map((one) => one.value)")
        assert offered == ["", "en", "de"]
        await source.select_option("auto")
        await expect(target).to_have_value("it")
        await page.click("#start")
        await expect(page.locator("body")).to_have_attribute("data-state", "open")
        (session,) = service.sessions.values()
        assert session.config.languages == languages[1]


async def test_the_languages_change_places(browser, demo_config, demo_models):
    languages = [
        LanguageConfig("en", ("zh", "de")),
        LanguageConfig("zh", ("en",)),
        LanguageConfig("fr", ("de", "en")),
        LanguageConfig("auto", ("fr", "it")),
    ]
    async with page_of(browser, offering(demo_config, demo_models, *languages)) as (_, page):
        await expect(page.locator("body")).to_have_attribute("data-ready", "yes")
        source, target = page.get_by_label("Spoken language"), page.get_by_label("Translate into")
        swap = page.get_by_role("button", name="Swap the languages")

        async def has(spoken: str, into: str) -> None:
            await expect(source).to_have_value(spoken)
            await expect(target).to_have_value(into)

        await target.select_option("zh")
        await source.select_option("zh")  # what it was translated into: the other way round
        await has("zh", "en")
        await swap.click()
        await has("en", "zh")
        await swap.click()
        await has("zh", "en")
        await target.select_option("zh")  # captions
        await expect(swap).to_be_disabled()
        await source.select_option("fr")
        await target.select_option("en")
        await expect(swap).to_be_disabled()  # nothing translates English into French
        await source.select_option("en")  # nor here: all languages
        await has("en", "")
        await target.select_option("de")
        await expect(swap).to_be_disabled()  # nobody speaks German
        await source.select_option("auto")
        await expect(swap).to_be_hidden()


async def test_one_language_needs_no_menu(browser, demo_config, demo_models):
    async with running(Service(demo_config, demo_models)) as server, page_at(browser, server.url) as page:
        await expect(page.locator("body")).to_have_attribute("data-ready", "yes")
        await expect(page.get_by_label("Spoken language")).to_be_hidden()
