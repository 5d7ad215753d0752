"""The panel of terms on the speaker's page, with a server and the demo's models."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from playwright.async_api import Browser, Page, expect

from pipeline import Models, PipelineConfig
from pipeline.glossary.terms import Term
from pipeline.server.service import Service
from tests.server.browser import HANG_MS, MICROPHONE, NEEDS_BROWSER, has_state, page_at
from tests.server.running import running

pytestmark = NEEDS_BROWSER
expect.set_options(timeout=HANG_MS)

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
    await page.keyboard.press("Tab")  # past the button that removes the term
    await page.keyboard.press("Enter")  # adds one
    await page.keyboard.type("x")


def test_terms_are_written_refused_mended_kept_and_used(
    runner: asyncio.Runner, browser: Browser, demo_config: PipelineConfig, demo_models: Models
) -> None:
    async def work() -> None:
        service = Service(demo_config, demo_models)
        async with running(service) as server, page_at(browser, server.url, **MICROPHONE) as page:
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

    runner.run(work())


@pytest.mark.parametrize("pasted", ["source\ttarget\nAcme\t=\nFerro\t铁\tFero", "Acme\nFerro\t铁\tFero\n"])
def test_a_pasted_list_becomes_rows(pasted: str, runner: asyncio.Runner, browser: Browser, service_of: Any) -> None:
    async def work() -> None:
        async with running(service_of()) as server, page_at(browser, server.url) as page:
            await page.locator("#glossary summary").click()
            await page.get_by_label("Term 1", exact=True).evaluate(
                """(field, text) => {
                  const data = new DataTransfer();
                  data.setData("text/plain", text);
                  field.dispatchEvent(new ClipboardEvent("paste", { clipboardData: data, bubbles: true, cancelable: true }));
                }""",
                pasted,
            )
            values = await page.locator("#glossary input").evaluate_all("all => all.map(({ value }) => value)")
            assert values == ["Acme", "", "", "Ferro", "铁", "Fero"]

    runner.run(work())
