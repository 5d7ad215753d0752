"""A speaker corrects finished lines on the page, with the keyboard alone; with a server and the demo's models."""

import math

import srt
from playwright.async_api import expect

from pipeline.events import SAMPLE_RATE
from pipeline.server import intake
from tests.browser.browser import TALK, Network, has_said, has_state, microphone_of, page_at, page_of
from tests.browser.test_page import downloaded, enter_on
from tests.browser.test_page_layout import BAR
from tests.server.conftest import speech
from tests.server.running import running

FIRST = "#text article:first-of-type .target[lang=zh]"
SECOND = "#text article:nth-of-type(2) .target[lang=zh]"
FOCUSED = "document.activeElement.lang + ' ' + document.activeElement.closest('article')?.dataset.number"
# Names the speaker and pauses as soon as the connection is lost.
WHEN_LOST = """
document.addEventListener("DOMContentLoaded", () => {
  new MutationObserver(() => {
    const who = document.querySelector("#who");
    if (document.body.dataset.state !== "lost" || who.elements.speaker.value) return;
    who.elements.speaker.value = "Ana";
    who.requestSubmit();
    document.querySelector("#pause").click();
  }).observe(document.body, { attributeFilter: ["data-state"] });
});
"""
LIGHT = "getComputedStyle(document.querySelector('#state'), '::before').backgroundColor"
NEW = "更正的第一句 <b>。"


async def test_a_line_is_corrected_with_the_keyboard(browser, service_of, expected):
    service = service_of(corrections_a_minute=1)
    async with page_of(browser, service, init=TALK) as (_, speaker):
        await expect(speaker.locator("#start")).to_be_enabled()
        await enter_on(speaker, "start")
        await has_state(speaker, "open")
        view = f"{await speaker.get_attribute('#viewer', 'href')}?language=zh"
        async with page_at(browser, view) as reader:
            await has_said(speaker, 4)
            await enter_on(speaker, "pause")
            await expect(speaker.locator("#state")).to_have_text("Paused")
            await expect(speaker.locator(SECOND)).to_have_text(expected[1, "zh"])
            await enter_on(speaker, "text")
            while await speaker.evaluate(FOCUSED) != "zh 0":
                await speaker.keyboard.press("ArrowUp")
            await speaker.keyboard.press("Enter")
            field = speaker.get_by_label("Correct this line")
            await expect(field).to_be_focused()
            await expect(field).to_have_value(expected[0, "zh"])
            await speaker.keyboard.type("discarded")
            await speaker.keyboard.press("Escape")
            await expect(speaker.locator(FIRST)).to_have_text(expected[0, "zh"])
            assert await speaker.evaluate(FOCUSED) == "zh 0"
            await speaker.keyboard.press("Enter")
            await speaker.keyboard.press("ControlOrMeta+A")
            await speaker.keyboard.insert_text(NEW)
            await speaker.keyboard.press("Enter")
            for page in (speaker, reader):
                await expect(page.locator(f"{FIRST} .steady")).to_have_text(NEW)
                await expect(page.locator(f"{FIRST} .mark")).to_have_text("corrected")
                await expect(page.locator("#spoken p").last).to_have_text(f"corrected {NEW}")
            assert await speaker.evaluate(FOCUSED) == "zh 0"
            async with page_at(browser, view) as late:
                await expect(late.locator(f"{FIRST} .steady")).to_have_text(NEW)
                await expect(late.locator("#spoken p")).to_have_count(0)
            cues = list(srt.parse(await downloaded(reader, "srt")))
            assert [cue.content.replace("\u2060", "") for cue in cues] == [NEW, expected[1, "zh"]]
            assert not await reader.locator("p[tabindex]").count()  # readers choose no lines
            # Once more, by a click: too soon.
            await speaker.locator(SECOND).click()
            await expect(field).to_have_value(expected[1, "zh"])
            await field.fill("第二句")
            await field.press("Enter")
            await expect(speaker.get_by_role("alert")).to_contain_text("Too many lines were corrected")
            await expect(speaker.locator(f"{SECOND} .steady")).to_have_text(expected[1, "zh"])
            await enter_on(speaker, "stop")
            await has_state(speaker, "ended")
            await speaker.locator(SECOND).click()
            await expect(field).to_have_count(0)


async def test_a_word_is_masked_and_speakers_are_named_with_the_keyboard(browser, service_of, expected, tmp_path):
    async with page_of(browser, service_of(tmp_path), init=f"window.waits = true; {TALK}") as (_, speaker):
        await expect(speaker.locator("#start")).to_be_enabled()
        await enter_on(speaker, "start")
        await has_state(speaker, "open")
        who, menu = speaker.get_by_label("Who speaks now"), speaker.locator("#speaking summary")
        await menu.press("Enter")
        await who.focus()
        await speaker.keyboard.insert_text(" Ana  <b> ")
        await speaker.keyboard.press("Enter")
        await expect(speaker.locator("#named")).to_have_text("Ana <b> speaks now.")
        await expect(menu).to_have_text("Ana <b>")
        await expect(menu).to_be_focused()
        await expect(who).to_be_hidden()
        view = f"{await speaker.get_attribute('#viewer', 'href')}?language=zh"
        async with page_at(browser, view) as reader:
            await expect(reader.locator("#state")).to_have_text("Live")
            await speaker.evaluate("speak()")
            await has_said(speaker, 4)
            await enter_on(speaker, "pause")
            await expect(reader.locator("#state")).to_have_text("The speaker has paused")
            async with page_at(browser, view) as late:
                await expect(late.locator("#state")).to_have_text("The speaker has paused")
                await expect(late.locator(".speaker")).to_have_text(["Ana <b>"] * 2)
            # The word that is selected, by the keyboard.
            text = expected[0, "zh"]
            await enter_on(speaker, "text")
            while await speaker.evaluate(FOCUSED) != "zh 0":
                await speaker.keyboard.press("ArrowUp")
            await speaker.keyboard.press("Enter")
            await speaker.keyboard.press("Home")
            for _ in range(2):
                await speaker.keyboard.press("Shift+ArrowRight")
            await speaker.keyboard.press("Tab")
            await speaker.keyboard.press("Tab")
            await expect(speaker.get_by_role("button", name="Mask the chosen word")).to_be_focused()
            await speaker.keyboard.press("Enter")
            masked = f"{text[0]}*{text[2:]}"
            for page in (speaker, reader):
                await expect(page.locator(f"{FIRST} .steady")).to_have_text(masked)
            assert await speaker.evaluate(FOCUSED) == "zh 0"
            # The word at the cursor of what was said; then another name for the same sentence.
            source = speaker.locator("#text article:first-of-type .source")
            while await speaker.evaluate(FOCUSED) != "en 0":
                await speaker.keyboard.press("ArrowUp")
            await speaker.keyboard.press("Enter")
            await speaker.keyboard.press("Home")
            await speaker.get_by_role("button", name="Mask the chosen word").press("Enter")
            first = expected[0, "en"].split()[0]
            await expect(source.locator(".steady")).to_have_text(
                expected[0, "en"].replace(first, first[0] + "*" * (len(first) - 1), 1)
            )
            await speaker.keyboard.press("Enter")
            await speaker.keyboard.press("Tab")
            await expect(speaker.get_by_label("Who spoke")).to_have_value("Ana <b>")
            await speaker.keyboard.press("ControlOrMeta+A")
            await speaker.keyboard.insert_text("Bo")
            await speaker.keyboard.press("Enter")
            for page in (speaker, reader):
                await expect(page.locator(".speaker")).to_have_text(["Bo", "Ana <b>"])
            vtt = await downloaded(reader, "vtt")
            assert f"<v Bo>{masked}" in vtt
            assert "<v Ana &lt;b&gt;>" in vtt
            assert f"\nBo: {masked}\n".replace(": ", "：") in await downloaded(reader, "srt")
            # A name that is no name, and what comes after the pause.
            await menu.press("Enter")
            await who.fill("x" * 30 + "\u202e")
            await who.press("Enter")
            await expect(speaker.get_by_role("alert")).to_contain_text("A name has 60 characters at most")
            await expect(speaker.locator("#named")).to_have_text("Ana <b> speaks now.")
            # A name of before is a button.
            await menu.press("Enter")
            await speaker.get_by_role("button", name="Ana <b>", exact=True).press("Enter")
            await expect(who).to_be_hidden()
            await expect(speaker.get_by_role("alert")).to_be_hidden()
            await enter_on(speaker, "pause")
            await expect(reader.locator("#state")).to_have_text("Live")
            await enter_on(speaker, "stop")
            await has_state(speaker, "ended")
    record = next(tmp_path.glob("*.jsonl")).read_text("utf-8")
    assert [kind for kind in ("paused", "resumed") if f'"type": "{kind}"' in record] == ["paused", "resumed"]
    assert f"<v Bo>{masked}" in next(tmp_path.glob("*.zh.vtt")).read_text("utf-8")


async def test_a_pause_finishes_what_was_said(browser, service_of, monkeypatch):
    """Nothing else does: no silence comes."""
    monkeypatch.setattr(intake, "_SILENT_S", math.inf)
    half = f"window.stops = true; {microphone_of(speech()[: 2 * SAMPLE_RATE])}"
    async with page_of(browser, service_of(), init=half) as (_, speaker):
        await expect(speaker.locator("#start")).to_be_enabled()
        await enter_on(speaker, "start")
        await has_state(speaker, "open")
        listening = await speaker.evaluate(LIGHT)
        await speaker.locator("#pause").focus()
        await expect(speaker.locator("#text .source .draft:not(:empty)").first).to_be_attached()
        await speaker.keyboard.press("Enter")
        await expect(speaker.locator("#text p:not([data-done])")).to_have_count(0)
        await expect(speaker.locator("#text .target").first).to_be_attached()
        await expect(speaker.locator("#state")).to_have_text("Paused")
        assert await speaker.evaluate(LIGHT) != listening
        assert await speaker.evaluate(BAR) < 120
        await enter_on(speaker, "stop")
        await has_state(speaker, "ended")


async def test_what_is_told_without_a_connection_is_told_when_it_is_back(browser, service_of):
    async with (
        running(service_of()) as server,
        Network(server.port) as network,
        page_at(browser, f"http://localhost:{network.port}/", WHEN_LOST + TALK) as speaker,
    ):
        await speaker.click("#start")
        await has_state(speaker, "open")
        async with page_at(browser, str(await speaker.get_attribute("#viewer", "href"))) as reader:
            await reader.locator("#text article").first.wait_for()
            network.cut()
            await expect(speaker.locator("#named")).to_have_text("Ana speaks now.")
            await expect(reader.locator("#state")).to_have_text("The speaker has paused")
            await has_state(speaker, "open")
            await speaker.click("#stop")
            await has_state(speaker, "ended")
