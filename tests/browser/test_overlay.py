"""The overlay for OBS, by the pixels of its picture; in Chromium, with events made here."""

import asyncio
import io
from collections.abc import Sequence
from dataclasses import replace

import av
import numpy as np
import numpy.typing as npt
import pytest
from playwright.async_api import Browser

from pipeline.events import PipelineEvent, SourceText, TargetText
from pipeline.server.protocol import snapshot_text
from tests.browser.browser import page_of_files
from tests.streams import changes, spoken, translated

# Hides at once what is hidden after a time, when told; and the connection.
_HIDES = """
  const later = setTimeout;
  window.setTimeout = (work, ms) => (ms === 8000 ? ((window.hide = work), 0) : later(work, ms));
  const dispatch = EventTarget.prototype.dispatchEvent;
  EventTarget.prototype.dispatchEvent = function (event) {
    if (event.type === "message") window.socket = this;
    return dispatch.call(this, event);
  };
"""
Pixels = npt.NDArray[np.uint8]
"""[height, width, 4]: red, green, blue, opacity."""
HEIGHT = 600
SHORT = [*spoken(0, "A sentence."), *translated(0, ["一句话。"])]
DRAFTED: list[PipelineEvent] = [*SHORT, SourceText(1, "en", "Half", 4, 1.0, 2.0, 2.0), TargetText(1, "zh", "半句", 1)]
LONG = [*spoken(0, "A sentence."), *translated(0, ["很长的一句话" * 40])]
SEVERAL = [
    event for number in range(5) for event in (*spoken(number, "A sentence."), *translated(number, ["一句话。"]))
]


def picture(runner: asyncio.Runner, browser: Browser, query: str, events: Sequence[PipelineEvent]) -> Pixels:
    async def work() -> bytes:
        async with page_of_files(browser, f"/overlay/x?{query}", events, width=800, height=HEIGHT) as page:
            if events:
                await page.locator("#lines p").first.wait_for()
            return await page.screenshot(omit_background=True)

    with av.open(io.BytesIO(runner.run(work()))) as image:
        found: Pixels = next(image.decode(video=0)).to_ndarray(format="rgba")
    return found


def extent(pixels: Pixels) -> tuple[int, int]:
    """The first and last row that is not transparent."""
    rows = np.flatnonzero(pixels[..., 3].max(axis=1) > 128)
    return int(rows[0]), int(rows[-1])


def height(pixels: Pixels) -> int:
    first, last = extent(pixels)
    return last - first


def test_nothing_is_drawn_without_text(runner, browser):
    assert not picture(runner, browser, "", []).any()


def test_letters_are_white_with_a_dark_edge_on_a_transparent_page(runner, browser):
    pixels = picture(runner, browser, "", SHORT)
    opaque = pixels[..., 3] > 250
    assert 0 < (pixels[..., 3] > 0).mean() < 0.05
    assert (pixels[opaque][:, :3] > 250).all(axis=1).any()
    assert (pixels[opaque][:, :3] < 60).all(axis=1).any()


@pytest.mark.parametrize(("query", "top"), [("", False), ("position=top", True)])
def test_the_position_is_as_asked(query, top, runner, browser):
    first, last = extent(picture(runner, browser, query, SHORT))
    assert (last < 0.15 * HEIGHT) if top else (first > 0.85 * HEIGHT)


def test_the_size_is_as_asked(runner, browser):
    small, large = (height(picture(runner, browser, f"size={size}", SHORT)) for size in (5, 10))
    assert large == pytest.approx(2 * small, rel=0.1)


@pytest.mark.parametrize(("query", "steady"), [("", False), ("rollup=1", True)])
def test_words_stay_where_they_are_while_a_line_grows_if_asked(query, steady, runner, browser):
    begun, grown = (
        picture(runner, browser, query, [*spoken(0, "A sentence."), TargetText(0, "zh", text, len(text))])
        for text in ("一句话", "一句话比较长")
    )
    first, second = (np.flatnonzero(pixels[..., 3].max(axis=0) > 128)[0] for pixels in (begun, grown))
    assert (first == second) == steady


@pytest.mark.parametrize("events", [LONG, SEVERAL], ids=["one sentence", "several"])
@pytest.mark.parametrize("lines", [1, 3])
def test_there_are_no_more_lines_than_asked(lines, events, runner, browser):
    line = 1.4 * 0.05 * HEIGHT
    tall = height(picture(runner, browser, f"lines={lines}", events))
    assert (lines - 0.6) * line < tall <= lines * line


def test_the_source_is_shown_if_asked(runner, browser):
    one, two = (height(picture(runner, browser, f"source={source}", SHORT)) for source in (0, 1))
    assert two > 1.5 * one


def test_drafts_are_dimmed(runner, browser):
    drafted = [*spoken(0, "A sentence."), TargetText(0, "zh", "一句话。")]
    steady, dimmed = (picture(runner, browser, "", events)[..., 3].max() for events in (SHORT, drafted))
    assert dimmed < 0.8 * steady


def test_whole_sentences_alone_are_shown_if_asked(runner, browser):
    both, whole, alone = (
        height(picture(runner, browser, query, events))
        for query, events in (("", DRAFTED), ("whole=1", DRAFTED), ("", SHORT))
    )
    assert both > 1.5 * whole
    assert whole == alone


def test_what_has_been_hidden_is_not_drawn_again_by_drafts_that_are_not_shown(runner, browser):
    async def work(events: Sequence[PipelineEvent]) -> str:
        async with page_of_files(browser, "/overlay/x?whole=1&lines=1", SHORT, init=_HIDES) as page:
            await page.locator("#lines p").wait_for()
            await page.evaluate("hide()")
            told = "(data) => socket.dispatchEvent(new MessageEvent('message', { data }))"
            await page.evaluate(told, snapshot_text(changes(events)))
            return await page.locator("#lines").inner_text()

    again = [*spoken(1, "A sentence."), *translated(1, ["一句话。"])]
    assert runner.run(work(DRAFTED)) == ""
    assert runner.run(work([*SHORT, *again])) == "一句话。"


def test_what_has_been_hidden_is_not_shown_again_when_a_draft_is_withdrawn(runner, browser):
    draft = SourceText(2, "en", "Half", 0, 2.0, 3.0, 3.0), TargetText(2, "zh", "半句")
    withdrawn = [replace(event, text="") for event in draft]
    before = [*SHORT, *spoken(1, "Another one."), *translated(1, ["另一句。"])]

    async def work() -> list[str]:
        async with page_of_files(browser, "/overlay/x", before, init=_HIDES) as page:
            shown: list[str] = []
            await page.locator("#lines p").first.wait_for()
            await page.evaluate("hide()")
            told = "(data) => socket.dispatchEvent(new MessageEvent('message', { data }))"
            for events in (draft, withdrawn):
                await page.evaluate(told, snapshot_text(changes([*before, *events])))
                shown.append(await page.locator("#lines").inner_text())
            return shown

    with_draft, without = runner.run(work())
    assert with_draft.endswith("半句")
    assert without == ""
