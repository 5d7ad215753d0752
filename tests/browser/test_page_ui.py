"""The pages in the languages of their readers, in Chromium without a server."""

import pytest
from playwright.async_api import expect

from tests.browser.browser import page_of_files
from tests.browser.test_page_layout import MISFITS, TOUCHED_PX, WIDE_WORD, shown
from tests.server.test_ui_languages import LANGUAGES, table


@pytest.mark.parametrize(
    ("path", "locale", "language"),
    [
        ("/", "en-GB", "en"),
        ("/", "pt-PT", "pt"),
        ("/", "zh-TW", "zh-Hans"),
        ("/", "he-IL", "en"),
        ("/?ui=de", "pt-BR", "de"),
        ("/?ui=xx", "fr-CA", "fr"),
        ("/view/x", "es-MX", "es"),
    ],
)
async def test_the_texts_are_in_the_language_of_the_browser_or_the_address(path, locale, language, browser):
    async with page_of_files(browser, path, locale=locale) as page:
        await page.wait_for_selector("body[data-state=open]" if "view" in path else "body[data-ready=yes]")
        assert await page.get_attribute("html", "lang") == language
        texts = {} if language == "en" else table(language[:2])
        title = "Translated speech" if "view" in path else "Speech translation"
        await expect(page).to_have_title(texts.get(title, title))
        text = page.locator("#text")
        await expect(text).to_have_attribute(
            "aria-label", texts.get("Speech and translation", "Speech and translation")
        )
        if "view" not in path:
            await expect(page.locator("#start")).to_have_text(texts.get("Start", "Start"))
            await page.locator("#start").click()
            await expect(page.get_by_role("alert")).to_have_text(
                next(
                    (value for key, value in texts.items() if key.startswith("Type in the token")),
                    "Type in the token first. Whoever runs this server knows it.",
                )
            )


@pytest.mark.parametrize("path", ["/", "/view/x"])
@pytest.mark.parametrize("language", LANGUAGES)
async def test_every_language_fits_on_a_phone(path, language, browser):
    address = f"{path}?ui={language}"
    async with page_of_files(browser, address, WIDE_WORD, 320, 568, has_touch=True, is_mobile=True) as page:
        await shown(page, path)
        assert await page.evaluate(MISFITS, TOUCHED_PX) == []
