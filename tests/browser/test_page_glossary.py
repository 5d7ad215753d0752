"""The panel of terms on the speaker's page, with a server and the demo's models."""

from typing import Any

import pytest
from playwright.async_api import Page, expect

from pipeline.glossary.files import parse_glossary
from pipeline.glossary.terms import Term
from pipeline.languages.options import LanguageConfig
from pipeline.server.service import Service
from tests.browser.browser import QUIET, has_state, page_of, page_of_files
from tests.browser.test_page_choice import offering
from tests.glossary.test_candidates import TALK
from tests.server.test_terms import OURS

# Draws a finished translation with terms as the page does, and returns its lines of terms.
DRAW = """async (events) => {
  const { Board } = await import("/static/render.js");
  const { Texts } = await import("/static/texts.js");
  const [texts, parts] = [new Texts(), ["#text", "#spoken", "#newest"].map((name) => document.querySelector(name))];
  const board = new Board(...parts, true);
  board.begin(texts);
  events.forEach((event) => texts.apply(event));
  board.changed(texts.sentences.keys());
  board.draw();
  const { counts, kept } = await import("/static/glossary.js");
  const { seen, missed } = counts(texts);
  return [[...document.querySelectorAll(".terms li")].map((term) => [term.className, term.textContent]), kept(seen, missed)];
}"""
TRANSLATED: dict[str, Any] = {
    "type": "translation", "sentence": 0, "language": "zh", "text": "阿克。", "terms": ["Acme", "Ferro", "Acme"], "missed_terms": ["Acme"],
}  # fmt: skip


async def type_terms(page: Page) -> None:
    """Write two terms with the keyboard alone; the second is wrong."""
    await page.locator("#glossary summary").focus()
    for key in ("Enter", "Tab"):
        await page.keyboard.press(key)
    for text in ("Acme", "张伟", "Akme|Ackme"):
        await page.keyboard.type(text)
        await page.keyboard.press("Tab")
    for _ in range(2):  # past the buttons that show more of the term and remove it
        await page.keyboard.press("Tab")
    await page.keyboard.press("Enter")  # adds one
    await page.keyboard.type("x")


async def test_terms_are_written_refused_mended_kept_and_used(browser, demo_config, demo_models):
    service = Service(demo_config, demo_models)
    async with page_of(browser, service, init=QUIET) as (_, page):
        await expect(page.locator("#start")).to_be_enabled()
        await expect(page.get_by_label("Term 1", exact=True)).to_be_hidden()
        await type_terms(page)
        await page.keyboard.press("Escape")
        await page.click("#start")
        await has_state(page, "refused")
        wrong = page.get_by_label("Term 2", exact=True)
        await expect(wrong).to_be_focused()
        await expect(wrong).to_have_accessible_description('"x" is one letter, which other text has everywhere; write '
            "out the term, or make a Latin letter's case rule exact")  # fmt: skip
        await expect(page.get_by_label("Term 1", exact=True)).not_to_have_attribute("aria-invalid", "true")
        await wrong.fill("Ferro")
        await page.reload()
        await expect(page.locator("#start")).to_be_enabled()
        await page.click("#start")
        await has_state(page, "open")
        (session,) = service.sessions.values()
        assert session.glossary().terms == (Term("Acme", "张伟", ("Akme", "Ackme")), Term("Ferro", None))
        state = page.locator("#glossary [role=status]")
        await page.locator("#glossary summary").click()
        await expect(state).to_contain_text("2 terms in use.")
        await page.get_by_label("Translation 2", exact=True).fill("龘")
        await page.keyboard.press("Enter")
        await expect(state).to_contain_text("cannot write the translation of: Ferro.")
        assert session.glossary().terms[1] == Term("Ferro", "龘")
        await page.get_by_label("Term 2", exact=True).fill("y")
        await page.get_by_role("button", name="Use these terms").click()
        await expect(state).to_have_text("1 mistake. The terms before stay in use.")
        await page.get_by_role("button", name="Remove term 2").click()
        await page.get_by_role("button", name="Use these terms").click()
        await expect(state).to_have_text("1 term in use.")
        found = [["missed", "Acme: not translated as given"], ["kept", "Ferro"], ["kept", "Acme"]]
        assert await page.evaluate(DRAW, [TRANSLATED]) == [found, "2 of 3 terms translated as given."]


PASTE = """(field, text) => {
  const data = new DataTransfer();
  data.setData("text/plain", text);
  field.dispatchEvent(new ClipboardEvent("paste", { clipboardData: data, bubbles: true, cancelable: true }));
}"""
CELLS = "[...document.querySelectorAll('#glossary li')].map((row) => [...row.querySelectorAll('input, select')].map(({ value }) => value))"
COLUMNS = """# Names
target:zh\tcase\tsource:en\ttarget_variants
Go语言\texact\tGo
=\t\tAcme\t艾克
"""
SPOKEN_CHINESE = """source:zh\ttarget:en\tvariants\ttarget_variants
张伟\tChang Wei\t小张\tMr Chang
Acme\t=
"""


@pytest.mark.parametrize(
    ("pasted", "rows"),
    [
        ("source\ttarget\nAcme\t=\nFerro\t铁\tFero", [["Acme", *[""] * 4], ["Ferro", "铁", "Fero", "", ""]]),
        ("Acme\r\n\r\nFerro\t铁\tFero\r\n", [["Acme", *[""] * 4], ["Ferro", "铁", "Fero", "", ""]]),
        ("Acme\t艾克", [["Acme", "艾克", "", "", ""]]),
        (COLUMNS, [["Go", "Go语言", "", "", "exact"], ["Acme", "", "", "艾克", ""]]),
        (SPOKEN_CHINESE, [["Chang Wei", "张伟", "Mr Chang", "小张", ""], ["Acme", "", "", "", ""]]),
    ],
    ids=["file", "spreadsheet", "cells", "columns", "other direction"],
)  # fmt: skip
async def test_a_pasted_list_becomes_rows(
    pasted, rows, browser, demo_config,
    demo_models,
):  # fmt: skip
    service = Service(demo_config, demo_models)
    async with page_of(browser, service) as (_, page):
        await expect(page.locator("#start")).to_be_enabled()
        await page.locator("#glossary summary").click()
        await page.get_by_label("Term 1", exact=True).evaluate(PASTE, pasted)
        assert await page.evaluate(CELLS) == rows
        for at, row in enumerate(rows, 1):  # what a term rarely has is shown where one has it
            shown = expect(page.get_by_label(f"Other translations {at}", exact=True))
            await (shown.to_be_visible() if any(row[3:]) else shown.to_be_hidden())


async def test_a_thousand_terms_are_sent_and_mistakes_name_rows(browser, demo_config, demo_models):
    service = Service(demo_config, demo_models)
    async with page_of(browser, service, init=QUIET) as (_, page):
        await expect(page.locator("#start")).to_be_enabled()
        await page.locator("#glossary summary").click()
        state, first = page.locator("#glossary [role=status]"), page.get_by_label("Term 1", exact=True)
        await first.evaluate(PASTE, "".join(f"Name {number}\t龘\n" for number in range(1200)))
        await expect(state).to_have_text("1000 terms of 1200 pasted; there may be 1000.")
        await page.keyboard.press("Escape")
        await page.click("#start")
        await has_state(page, "open")
        (session,) = service.sessions.values()
        assert session.glossary().terms[-1] == Term("Name 999", "龘")
        await page.locator("#glossary summary").click()
        await expect(state).to_contain_text("Name 19 and 980 more.")
        await page.get_by_label("Term 900", exact=True).fill("name 7")
        await page.get_by_label("Translation 900", exact=True).fill("七")
        await page.keyboard.press("Enter")
        await expect(state).to_have_text("1 mistake. The terms before stay in use.")
        await expect(page.get_by_label("Term 900", exact=True)).to_have_accessible_description(
            '"name 7" is translated as "七" and, in term 8, as "龘"; keep one, and make the other a target variant'
        )
        many = "many words " * 90
        await page.evaluate(
            "(text) => document.querySelectorAll('#glossary li input:nth-child(3)').forEach((field) => (field.value = text))",
            many,
        )
        await page.get_by_label("Term 900", exact=True).press("Enter")
        await expect(state).to_contain_text("65536 is the most")
        assert len(session.glossary().terms) == 1000


AS_TEXT = """async ([rows, languages]) => (await import("/static/terms.js")).tsv(rows, languages)"""
ROWS = [
    ["# Number", "", "", "", ""],
    ["", "", "", "", "exact"],
    ["source", "来源", "", "", ""],
    ["two\u0085lines\tand <b>&amp;</b>", "a.*b", "x+ | [y", "一|二", ""],
    ["c", "C语言", "", "", "exact"],
    ['"Acme" inches', '12"', "", "", ""],
]


async def test_the_server_reads_terms_as_they_are_in_the_rows(browser):
    async def text(page: Page, *languages: str) -> str:
        found: str = await page.evaluate(AS_TEXT, [ROWS, languages])
        return found

    async with page_of_files(browser, "/") as page:
        found = parse_glossary(await text(page, "en", "zh"), "page")
        assert found.languages == ("en", "zh")
        assert parse_glossary(await text(page), "page").languages is None
        assert found.terms == (
            Term("# Number", None),
            Term("source", "来源"),
            Term("two lines and <b>&amp;</b>", "a.*b", ("x+", "[y"), ("一", "二")),
            Term("c", "C语言", exact_case=True),
            Term('"Acme" inches', '12"'),
        )


async def test_the_terms_are_for_the_languages_of_the_session_also_after_a_reload(browser, demo_config, demo_models):
    languages = [LanguageConfig("en", ("zh",)), LanguageConfig("auto", ("fr", "it"))]
    service = offering(demo_config, demo_models, *languages)
    async with page_of(browser, service, init=QUIET) as (_, page):
        await expect(page.locator("#start")).to_be_enabled()
        await page.get_by_label("Spoken language").select_option("auto")
        await page.click("#start")
        await has_state(page, "open")
        (session,) = service.sessions.values()
        await page.reload()
        await has_state(page, "open")
        await page.locator("#glossary summary").click()
        await page.get_by_label("Term 1", exact=True).fill("Acme")
        await page.keyboard.press("Enter")
        await expect(page.locator("#glossary [role=status]")).to_contain_text("1 term in use.")
        assert session.glossary().languages == ("fr", "it")


async def cells(page: Page) -> list[str]:
    """The first field of each row."""
    return [await row.locator("input").first.input_value() for row in await page.locator("#glossary li").all()]


async def test_a_person_ticks_what_is_proposed(browser, new_service, tmp_path):
    service = new_service()
    service.proposals = OURS
    document = tmp_path / "talk.txt"
    document.write_text(TALK, "utf-8")
    async with page_of(browser, service, init=QUIET) as (_, page):
        await expect(page.locator("#start")).to_be_enabled()
        await page.locator("#glossary summary").click()
        proposed = page.locator("#glossary .proposed")
        await expect(proposed.locator("label")).to_have_count(2)
        await page.set_input_files("#glossary [type=file]", document)
        await expect(page.locator("#glossary [role=status]")).to_contain_text("proposed. Tick those that will be said.")
        await expect(proposed.get_by_label("Marchetti Kowalski")).to_have_count(1)
        for term in ("Ferro", "Berlin", "NATO"):
            await proposed.get_by_label(term).check()
        await proposed.get_by_label("NATO").uncheck()
        assert await cells(page) == ["Ferro", "Berlin"]
        await page.set_input_files("#glossary [type=file]", document)
        await expect(page.locator("#glossary [role=status]")).to_have_text("No new terms were found in the document.")
        await page.keyboard.press("Escape")
        await page.click("#start")
        await has_state(page, "open")
        (session,) = service.sessions.values()
        assert [(term.source, term.target) for term in session.glossary().terms] == [("Ferro", None), ("Berlin", None)]
