"""The pages' scripts in Chromium, without a server: texts, drawing, colours."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from playwright.async_api import Browser, Page, Route

from pipeline.events import Delta, PipelineEvent, SourceDelta, SourceSentence, Translation
from pipeline.sentences.growing import OpenTexts
from pipeline.server.app import STATIC
from pipeline.server.history import History
from pipeline.server.protocol import event_text
from tests.server.browser import NEEDS_BROWSER
from tests.streams import Stream, spoken, streams, translated

pytestmark = NEEDS_BROWSER
INFO = json.dumps({"languages": [{"source": "en", "targets": ["zh", "he"]}], "token": True, "ready": True})
TEXTS = st.text(st.sampled_from("ab .é是א😀👩‍👧🇩🇪"), max_size=12)


@pytest.fixture(scope="module")
def page(runner: asyncio.Runner, browser: Browser) -> Iterator[Page]:
    """A speaker's page whose server gives its files only."""

    async def answer(route: Route) -> None:
        name = route.request.url.rsplit("/", 1)[1]
        if name == "info":
            await route.fulfill(body=INFO, content_type="application/json")
        else:
            await route.fulfill(path=STATIC / (name or "index.html"))

    async def opened() -> Page:
        context = await browser.new_context()
        await context.route("**/*", answer)
        page = await context.new_page()
        await page.goto("http://localhost/")
        await page.wait_for_selector("body[data-ready=yes]")
        return page

    page = runner.run(opened())
    yield page
    runner.run(page.context.close())


def records(events: Sequence[PipelineEvent]) -> list[dict[str, Any]]:
    return [json.loads(event_text(event)) for event in events]


def is_text(event: PipelineEvent) -> bool:
    return isinstance(event, SourceDelta | SourceSentence | Delta | Translation)


APPLY = """async (events) => {
  const { Texts } = await import("/static/texts.js");
  const texts = new Texts();
  return events.map((event) => {
    texts.apply(event);
    const sentence = texts.sentences.get(event.sentence);
    const text = event.type.startsWith("source") ? sentence.source : sentence.targets.get(event.language);
    return [text.committed, text.draft];
  });
}"""


@settings(max_examples=40)
@given(streams(TEXTS))
def test_each_event_changes_the_text_as_in_python(runner: asyncio.Runner, page: Page, stream: Stream) -> None:
    events = [event for event in stream.events if is_text(event)]
    texts = OpenTexts()
    expected = []
    for event in events:
        text = texts.push(event)
        assert text is not None
        whole = isinstance(event, SourceSentence | Translation)
        expected.append([event.text, ""] if whole else [text.committed_text, text.draft])
    assert runner.run(page.evaluate(APPLY, records(events))) == expected


MISS = """async ([before, snapshot, after]) => {
  const { Texts } = await import("/static/texts.js");
  const texts = new Texts();
  for (const event of [...before, { type: "snapshot", events: snapshot }, ...after]) texts.apply(event);
  return texts.shown().map(({ number, source, targets }) => [
    number, source.text, Object.fromEntries([...targets].map(([code, text]) => [code, text.text])),
  ]);
}"""


@settings(max_examples=40)
@given(streams(TEXTS), st.data())
def test_a_snapshot_makes_up_for_missed_events(
    runner: asyncio.Runner, page: Page, stream: Stream, data: st.DataObject
) -> None:
    begin = data.draw(st.integers(0, len(stream.events)), "first event missed")
    end = data.draw(st.integers(begin, len(stream.events)), "first event after the snapshot")
    history = History(sentences=100)
    for event in stream.events[:end]:
        history.push(event)
    parts = [stream.events[:begin], history.events(), stream.events[end:]]
    shown = runner.run(page.evaluate(MISS, [records(part) for part in parts]))
    expected = []
    for number, source in stream.sources.items():
        targets = {language: text for (of, language), text in stream.translations.items() if of == number}
        if source or any(targets.values()):
            expected.append([number, source, targets])
    assert shown == expected


def test_a_draft_that_was_withdrawn_meanwhile_is_gone(runner: asyncio.Runner, page: Page) -> None:
    noise, gone = SourceDelta(0, "en", "Hmm"), SourceDelta(0, "en", "", 3)
    history = History(sentences=100)
    for event in (noise, gone):
        history.push(event)
    assert runner.run(page.evaluate(MISS, [records([noise]), records(history.events()), []])) == []


# Draws a sentence with committed text and a draft in two languages, and opens everything that the page has.
SHOW_ALL = """async (events) => {
  const { Board } = await import("/static/render.js");
  const { Texts } = await import("/static/texts.js");
  const texts = new Texts();
  const board = new Board(document.querySelector("#text"), document.querySelector("#spoken"), document.querySelector("#newest"));
  const empty = document.querySelector(".empty");
  board.clear(texts);
  events.forEach((event) => texts.apply(event));
  board.changed(texts.sentences.keys());
  board.draw();
  if (empty) document.querySelector("#text").prepend(empty);
  document.querySelectorAll("[hidden]").forEach((each) => (each.hidden = false));
  document.querySelectorAll("details").forEach((each) => (each.open = true));
  document.querySelector("#problem").textContent = "Problem";
  document.querySelector("#lag").textContent = "1.0 s behind";
  document.querySelector("#viewer").textContent = document.querySelector("#viewer").href = "http://localhost/view/x";
  document.querySelector("#start").disabled = false;
}"""
# The lowest contrast of any text that can be seen, by WCAG 2.2: [ratio, text].
LOWEST = """() => {
  const parsed = (color) => color.match(/[\\d.]+/g).map(Number);
  const luminance = (color) => {
    const [red, green, blue] = parsed(color).map((value) => {
      const part = value / 255;
      return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  };
  const ground = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const color = getComputedStyle(at).backgroundColor;
      if ((parsed(color)[3] ?? 1) > 0) return color;
    }
  };
  const found = [...document.body.querySelectorAll("*")]
    .filter((each) => [...each.childNodes].some((node) => node.nodeType === 3 && node.data.trim()))
    .filter((each) => each.checkVisibility() && !each.closest(".unseen, .skip, option"))
    .map((each) => {
      const [one, other] = [luminance(getComputedStyle(each).color), luminance(ground(each))];
      return [(Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05), each.textContent.trim()];
    });
  return [found.length, found.sort((one, other) => one[0] - other[0])[0]];
}"""
DRAFTED = [*spoken(0, "A sentence."), *translated(0, ["一句"]), SourceDelta(1, "en", "Half a sen", 0, 4, 1.0, 2.0, 2.0)]
DRAFTED += [Delta(1, "zh", "半句", 0, 1), Delta(1, "he", "חצי", 0, 1)]
LINES = "[...document.querySelectorAll('#text .target')].map((line) => [line.lang, getComputedStyle(line).direction])"


def test_text_has_enough_contrast_in_light_and_dark(runner: asyncio.Runner, page: Page) -> None:
    async def lowest(theme: str, contrast: str) -> tuple[int, tuple[float, str]]:
        await page.evaluate(
            "(values) => Object.assign(document.documentElement.dataset, values)",
            {"theme": theme, "contrast": contrast},
        )
        found: tuple[int, tuple[float, str]] = await page.evaluate(LOWEST)
        return found

    async def work() -> None:
        await page.evaluate(SHOW_ALL, records(DRAFTED))
        grounds = set()
        for theme in ("light", "dark"):
            grounds.add(await page.evaluate("getComputedStyle(document.body).backgroundColor"))
            for contrast in ("normal", "high"):
                count, (ratio, text) = await lowest(theme, contrast)
                assert count > 25
                assert ratio >= 4.5, f"{text!r} in {theme}, contrast {contrast}: {ratio:.2f}"
        assert await page.evaluate(LINES) == [["zh", "ltr"], ["he", "rtl"], ["zh", "ltr"]]

    runner.run(work())


def test_drafts_and_gauges_are_in_no_live_region(runner: asyncio.Runner, page: Page) -> None:
    async def work() -> None:
        live = "[aria-live], [role=log], [role=status], [role=alert], output"
        assert await page.evaluate(f"[...document.querySelectorAll('{live}')].map((each) => each.id)") == [
            "state",
            "problem",
            "spoken",
        ]

    runner.run(work())
