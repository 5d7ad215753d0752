"""The pages in Chromium, with a recording in place of the microphone and the demo's real models."""

import asyncio
import math
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import srt
import webvtt
from playwright.async_api import Browser, Page, expect
from starlette.routing import Mount

from pipeline.server import intake
from pipeline.server.app import STATIC, create_app
from tests.browser.browser import (
    QUIET,
    SPOKEN,
    TALK,
    Network,
    Texts,
    has_said,
    has_state,
    only,
    page_at,
    page_of,
    texts_of,
)
from tests.server.running import running

# Records in ``drawn`` each state of each line of text, [sentence, language, steady, draft], and in ``spoken`` what the live
# region was given.
RECORD = """
window.drawn = [];
window.spoken = [];
document.addEventListener("DOMContentLoaded", () => {
  const states = new Map();
  new MutationObserver(() => {
    for (const row of document.querySelectorAll("#text article")) {
      for (const line of row.querySelectorAll("p")) {
        const parts = [".steady", ".draft"].map((part) => line.querySelector(part).textContent);
        const state = [Number(row.dataset.number), line.lang, ...parts];
        const key = `${state[0]} ${state[1]}`;
        if (states.get(key) !== state.join("|")) window.drawn.push(state);
        states.set(key, state.join("|"));
      }
    }
  }).observe(document.querySelector("#text"), { childList: true, subtree: true, characterData: true });
  new MutationObserver((changes) => {
    for (const { addedNodes } of changes) for (const node of addedNodes) window.spoken.push([node.lang, node.textContent]);
  }).observe(document.querySelector("#spoken"), { childList: true });
});
"""

# Counts in <html data-losses> how often the connection was lost.
LOSSES = """
document.addEventListener("DOMContentLoaded", () => {
  let losses = 0;
  new MutationObserver((changes) => {
    if (document.body.dataset.state === "lost") document.documentElement.dataset.losses = (losses += 1);
  }).observe(document.body, { attributeFilter: ["data-state"] });
});
"""


@dataclass(frozen=True)
class Talk:
    """What two sentences into a microphone looked like."""

    expected: Texts
    speaker: Texts
    readers: dict[str, Texts]
    """By language."""
    drawn: list[tuple[int, str, str, str]]
    spoken: list[tuple[str, str]]
    focused: list[str]
    """The elements that had the focus when Enter was pressed."""
    hebrew_direction: str
    overlay: list[str]
    overlay_backgrounds: list[str]
    files: dict[str, str]
    """Kind → content of the download."""


async def has_lost(page: Page, times: int) -> None:
    """Wait until the connection was lost so often, and is there again."""
    await page.wait_for_selector(f"html[data-losses='{times}'] body[data-state=open]")


async def enter_on(page: Page, wanted: str) -> str:
    """Go on by Tab until an element has the focus, and press Enter; returns which had it before."""
    focused = "document.activeElement.id"
    before: str = await page.evaluate(focused)
    for _ in range(20):
        if await page.evaluate(focused) == wanted:
            break
        await page.keyboard.press("Tab")
    assert await page.evaluate(focused) == wanted
    await page.keyboard.press("Enter")
    return before


async def downloaded(page: Page, kind: str) -> str:
    if not await page.locator("#download[open]").count():
        await page.click("#download summary")
    async with page.expect_download() as waiting:
        await page.click(f"#download button[data-kind={kind}]")
    path = await (await waiting.value).path()
    return await asyncio.to_thread(Path(path).read_text, "utf-8")


@pytest.fixture(scope="module")
def talk(runner: asyncio.Runner, browser: Browser, service_of: Any, expected: Texts) -> Talk:
    async def work() -> Talk:
        async with page_of(browser, service_of(), init=RECORD + SPOKEN) as (_, speaker):
            await expect(speaker.locator("#start")).to_be_enabled()
            await enter_on(speaker, "start")
            await has_state(speaker, "open")
            view = str(await speaker.get_attribute("#viewer", "href"))
            overlay = view.replace("/view/", "/overlay/") + "?language=zh&lines=1"
            async with (
                page_at(browser, f"{view}?language=zh") as chinese,
                page_at(browser, view, locale="he-IL") as hebrew,
                page_at(browser, overlay) as lines,
            ):
                await has_said(speaker, 4)
                newest = expected[1, "zh"]
                await expect(lines.locator(".target")).to_have_text(newest)
                shown = await lines.locator("#lines p").all_inner_texts()
                backgrounds = [
                    await lines.evaluate(f"getComputedStyle(document.{element}).backgroundColor")
                    for element in ("documentElement", "body", "querySelector('main')")
                ]
                focused = await enter_on(speaker, "stop")
                for page in (speaker, chinese, hebrew):
                    await has_state(page, "ended")
                await expect(speaker.locator("#start")).to_be_focused()
                direction = await hebrew.evaluate("getComputedStyle(document.querySelector('.target')).direction")
                return Talk(
                    expected,
                    await texts_of(speaker),
                    {"zh": await texts_of(chinese), "he": await texts_of(hebrew)},
                    [tuple(state) for state in await speaker.evaluate("drawn")],
                    [tuple(said) for said in await speaker.evaluate("spoken")],
                    [focused],
                    direction,
                    shown,
                    backgrounds,
                    {kind: await downloaded(chinese, kind) for kind in ("srt", "vtt", "txt")},
                )

    return runner.run(work())


def test_the_page_shows_the_translation_of_what_is_said(talk):
    assert talk.speaker == talk.expected


def test_drafts_are_shown_before_steady_text(talk):
    drafted = set()
    for key, text in talk.expected.items():
        states = [state[2:] for state in talk.drawn if state[:2] == key]
        assert states[-1] == (text, "")
        committed = [state[0] for state in states]
        assert all(now.startswith(before) for before, now in pairwise(committed)), states
        if states[0][1] and not states[0][0]:
            drafted.add(key[1])
    assert drafted, "a machine that falls behind leaves drafts out, but not all"


def test_readers_see_the_same_each_in_a_language(talk):
    assert talk.readers["zh"] == only(talk.expected, "en", "zh")
    assert talk.readers["he"] == only(talk.expected, "en", "he")


def test_text_from_right_to_left_is_shown_so(talk):
    assert talk.hebrew_direction == "rtl"


def test_screen_readers_are_told_finished_translations_only(talk):
    finished = [(language, text) for (_, language), text in talk.expected.items() if language != "en"]
    assert sorted(talk.spoken) == sorted(finished)


def test_after_start_the_focus_is_on_stop(talk):
    assert talk.focused == ["stop"]


def test_the_overlay_is_transparent_and_shows_the_newest_line(talk):
    assert talk.overlay == [talk.expected[1, "zh"]]
    assert talk.overlay_backgrounds == ["rgba(0, 0, 0, 0)"] * 3


def test_downloads_are_subtitles(talk):
    texts = list(only(talk.expected, "zh").values())
    cues = list(srt.parse(talk.files["srt"]))
    assert [cue.content for cue in cues] == texts
    captions = webvtt.from_string(talk.files["vtt"]).captions
    assert [caption.text for caption in captions] == texts
    for cue, caption in zip(cues, captions, strict=True):
        times = cue.start.total_seconds(), cue.end.total_seconds()
        assert times == pytest.approx((caption.start_in_seconds, caption.end_in_seconds), abs=1)
        assert times[0] < times[1]
    assert cues[0].end <= cues[1].start
    assert talk.files["txt"].splitlines() == texts


def test_nothing_is_lost_by_reloads_and_lost_connections(runner, browser, service_of, expected, monkeypatch):
    """The connections are cut in the first sentence. Later they stay open, but nothing gets through.

    Silence in the place of audio that does not come would end a sentence where the machine happens to be.
    """
    monkeypatch.setattr(intake, "_SILENT_S", math.inf)

    async def work() -> None:
        async with (
            running(service_of()) as server,
            Network(server.port) as network,
            page_at(browser, f"http://localhost:{network.port}/", LOSSES + SPOKEN) as speaker,
        ):
            await speaker.click("#start")
            await has_state(speaker, "open")
            view = str(await speaker.get_attribute("#viewer", "href"))
            async with page_at(browser, f"{view}?language=he", LOSSES) as reader:
                await reader.locator("#text article").first.wait_for()
                network.cut()
                await has_lost(speaker, 1)
                await reader.select_option("#language", "zh")
                await reader.reload()
                await has_state(reader, "open")
                assert await reader.input_value("#language") == "zh"
                network.stall()
                await has_lost(speaker, 2)
                await has_lost(reader, 1)
                await has_said(speaker, 4)
                await speaker.click("#stop")
                for page in (speaker, reader):
                    await has_state(page, "ended")
                assert await texts_of(speaker) == expected
                assert await texts_of(reader) == only(expected, "en", "zh")
            assert server.service.ended.sessions == 1

    runner.run(work())


async def test_a_server_that_stops_ends_the_session_with_its_text(browser, service_of, expected):
    async with page_of(browser, service_of(), init=TALK) as (server, page):
        await page.click("#start")
        await has_said(page, 2)
        server.stop()
        await has_state(page, "ended")
        await expect(page.get_by_role("alert")).to_contain_text("The server has ended the session. What was said until")
        assert (await texts_of(page))[0, "zh"] == expected[0, "zh"]


async def test_pages_work_where_the_application_is_mounted(browser, service_of):
    service = service_of()
    async with (
        running(service, routes=[Mount("/inside", create_app(service))]) as server,
        page_at(browser, f"http://localhost:{server.port}/inside/", QUIET) as speaker,
    ):
        await speaker.click("#start")
        await has_state(speaker, "open")
        view = str(await speaker.get_attribute("#viewer", "href"))
        assert "/inside/view/" in view
        async with page_at(browser, view) as reader:
            await has_state(reader, "open")
            await speaker.click("#stop")
            await has_state(reader, "ended")
        async with page_at(browser, f"http://localhost:{server.port}/inside/view/none") as reader:
            await expect(reader.get_by_role("alert")).to_contain_text("There is no such session.")
            await expect(reader.locator(".empty")).to_be_hidden()


def test_pages_have_no_inline_scripts_or_styles():
    for path in STATIC.glob("*.html"):
        text = path.read_text("utf-8")
        assert "style=" not in text
        assert "<style" not in text
        assert "<script>" not in text
        assert " on" + "click" not in text
