"""The pages' scripts in Chromium, without a server: texts, drawing, recordings, levels."""

import asyncio
import json
from base64 import b64encode
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from playwright.async_api import Browser, Page, Route

from pipeline.core.captions.changes import ChangeEvent
from pipeline.core.captions.states import State
from pipeline.events import MissingSpeech, PipelineEvent, SourceSentence, SourceText, Transcript
from pipeline.media.sinks.files import sink_makers
from pipeline.media.subtitles.check import read_cues, violations
from pipeline.media.subtitles.rules import SubtitleRules
from pipeline.server.app import STATIC
from pipeline.server.history import History, concerns
from pipeline.server.protocol import event_text, room_name
from tests.conftest import examples, write_wav
from tests.streams import changes, spoken, streams, translated

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
    """The messages of a stream from its beginning, or of a snapshot."""
    return written(changes(events))


def written(events: Iterable[ChangeEvent]) -> list[dict[str, Any]]:
    return [json.loads(event_text(event)) for event in events]


APPLY = """async (events) => {
  const { Texts } = await import("/static/texts.js");
  const texts = new Texts();
  return events.map((event) => {
    texts.apply(event);
    const sentence = texts.sentences.get(event.sentence);
    const text = event.type.startsWith("source") ? sentence.source : sentence.targets.get(event.language);
    return [text.steady, text.draft];
  });
}"""


MISSING = """async (events) => {
  const { Texts } = await import("/static/texts.js");
  const texts = new Texts();
  events.forEach((event) => texts.apply(event));
  return texts.missing.map(({ start_s }) => start_s);
}"""


def test_speech_that_is_not_shown_is_known_to_the_page(runner, page):
    events = [
        Transcript(0, 0.0, 1.0, "", "en", rejected="silence"),
        Transcript(1, 2.0, 3.0, "Mm.", "en", rejected="uncertain"),
        Transcript(2, 4.0, 9.0, "Good morning.", "en", missing=(MissingSpeech(6.0, 8.0, "empty"),)),
    ]
    assert all(concerns(event, "zh") for event in events)
    assert runner.run(page.evaluate(MISSING, records(events))) == [2.0, 6.0]
    history = History(sentences=100)
    for event in events:
        history.push(event)
    snapshot = {"type": "snapshot", "events": records(history.events())}
    for before in (events, []):  # a reader that was too slow, and a new one
        assert runner.run(page.evaluate(MISSING, [*records(before), snapshot])) == [2.0, 6.0]


SPEAKERS = """async (events) => {
  const { Texts } = await import("/static/texts.js");
  const { Board } = await import("/static/render.js");
  const [list, spoken, newest] = ["div", "div", "button"].map((name) => document.createElement(name));
  const [texts, board] = [new Texts(), new Board(list, spoken, newest)];
  board.begin(texts);
  for (const event of events) board.changed(texts.apply(event));
  board.draw();
  return [...list.querySelectorAll("article:not(.same)")].map((row) => row.querySelector(".speaker")?.textContent ?? "");
}"""


def test_the_page_says_who_speaks(runner, page):
    names = ("<b>Ana</b>", "<b>Ana</b>", None, "Ben", "Ben")
    events = [replace(event, speaker=name) for n, name in enumerate(names) for event in spoken(n, "Good morning.")]
    assert runner.run(page.evaluate(SPEAKERS, records(events[:-1]))) == ["<b>Ana</b>", "", "Ben"]
    history = History(sentences=100)
    for event in events:
        history.push(event)
    assert runner.run(page.evaluate(SPEAKERS, records(history.events()))) == ["<b>Ana</b>", "", "Ben"]


@settings(max_examples=examples(40))
@given(streams(TEXTS))
def test_each_event_changes_the_text_as_in_python(runner, page, stream):
    events = [event for event in stream.events if isinstance(event, State)]
    expected = [[event.text[: event.steady], event.text[event.steady :]] for event in events]
    assert runner.run(page.evaluate(APPLY, records(events))) == expected


MISS = """async ([before, snapshot, after]) => {
  const { Texts } = await import("/static/texts.js");
  const texts = new Texts();
  for (const event of [...before, { type: "snapshot", events: snapshot }, ...after]) texts.apply(event);
  return texts.shown().map(({ number, source, targets }) => [
    number, source.text, Object.fromEntries([...targets].map(([code, text]) => [code, text.text])),
  ]);
}"""


@settings(max_examples=examples(40))
@given(streams(TEXTS), st.data())
def test_a_snapshot_makes_up_for_missed_events(runner, page, stream, data):
    begin = data.draw(st.integers(0, len(stream.events)), "first event missed")
    end = data.draw(st.integers(begin, len(stream.events)), "first event after the snapshot")
    history = History(sentences=100)
    for event in stream.events[:end]:
        history.push(event)
    told = history.events()
    after = changes([*told, *stream.events[end:]])[len(told) :]
    shown = runner.run(page.evaluate(MISS, [records(stream.events[:begin]), records(told), written(after)]))
    expected = []
    for number, source in stream.sources.items():
        targets = {language: text for (of, language), text in stream.translations.items() if of == number}
        if source or any(targets.values()):
            expected.append([number, source, targets])
    assert shown == expected


def test_a_draft_that_was_withdrawn_meanwhile_is_gone(runner, page):
    noise, gone = SourceText(0, "en", "Hmm"), SourceText(0, "en", "")
    history = History(sentences=100)
    for event in (noise, gone):
        history.push(event)
    assert runner.run(page.evaluate(MISS, [records([noise]), records(history.events()), []])) == []


async def test_drafts_and_gauges_are_in_no_live_region(page):
    live = "[aria-live], [role=log], [role=status], [role=alert], output"
    assert await page.evaluate(f"[...document.querySelectorAll('{live}')].map((each) => each.id)") == [
        "state",
        "named",
        "used",
        "doing",
        "problem",
        "spoken",
    ]


# Draws two sentences of a conversation for a reader of Chinese; returns what is said to screen readers.
SAY = """async (events) => {
  const { Board } = await import("/static/render.js");
  const { Texts } = await import("/static/texts.js");
  const spoken = document.createElement("div");
  const board = new Board(document.createElement("div"), spoken, document.createElement("button"));
  const texts = new Texts();
  board.begin(texts);
  board.language = "zh";
  for (const event of events) board.changed(texts.apply(event));
  board.draw();
  board.changed(texts.sentences.keys()); // as when their lines are shown anew
  board.draw();
  return [...spoken.children].map((each) => each.textContent);
}"""


def test_screen_readers_are_told_what_is_said_in_the_readers_own_language(runner, page):
    events = [
        *spoken(0, "A sentence."),
        *translated(0, ["一句"]),
        *spoken(1, "好的。", language="zh"),
        *translated(1, ["Good."], language="en"),
        SourceText(2, "zh", "还没", 0, 2.0, 3.0, 3.0),
    ]
    assert runner.run(page.evaluate(SAY, records(events))) == ["一句", "好的。"]


# The lines of a sentence for readers of a language.
LINES = """async ([events, language]) => {
  const { Texts } = await import("/static/texts.js");
  const { rows } = await import("/static/render.js");
  const texts = new Texts();
  for (const event of events) texts.apply(event);
  return rows(texts.sentences.get(0), language).map((line) => [line.className, line.lang, line.textContent]);
}"""


@pytest.mark.parametrize(
    ("language", "lines"),
    [
        ("", [["target", "en", "So it is."], ["target", "de", "So ist es."]]),
        ("en", [["target", "en", "So it is."]]),
        ("de", [["source", "en", "So it is."], ["target", "de", "So ist es."]]),
    ],
)
def test_captions_in_the_language_spoken_are_shown_once(runner, page, language, lines):
    events = [
        *spoken(0, "So it is."),
        *translated(0, ["So it is."], language="en"),
        *translated(0, ["So ist es."], language="de"),
    ]
    assert runner.run(page.evaluate(LINES, [records(events), language])) == lines


# Sends 60 s of a recording to a server that has nothing at first, and later half of what was sent.
SEND = """async (base64) => {
  const { decode } = await import("/static/recording.js");
  let sent = 0, ends = 0, had = 0;
  const audio = await decode(new File([Uint8Array.from(atob(base64), (each) => each.charCodeAt(0))], "a.wav"), {
    ahead: () => sent - had,
    onAudio(samples) { sent += samples.length; },
    onEnd() { ends += 1; },
  });
  const steps = [];
  const step = () => { audio.more(); steps.push([sent / 16000, ends]); };
  step();
  step();
  had = sent / 2;
  await audio.pause();
  step();
  audio.resume();
  step();
  had = sent;
  step();
  had = sent;
  step();
  return { seconds: audio.seconds, rate: audio.rate, steps };
}"""


def test_a_recording_is_sent_no_further_ahead_than_the_server_takes_it(runner, page, tmp_path):
    wav = write_wav(tmp_path / "a.wav", np.zeros(60 * 16_000, np.int16)).read_bytes()
    found = runner.run(page.evaluate(SEND, b64encode(wav).decode()))
    assert (found["seconds"], found["rate"]) == (60, 16_000)
    assert found["steps"] == [[30, 0], [30, 0], [30, 0], [45, 0], [60, 1], [60, 1]]


# Gives a meter half a second of some level at a time; returns what was said of silence after each.
LEVELS = """async (peaks) => {
  const { Level } = await import("/static/level.js");
  const said = [];
  const level = new Level(document.createElement("meter"), (silent) => said.push(silent));
  level.begin(48000);
  return peaks.map((peak) => {
    level.heard(new Int16Array(24000), peak);
    return [...said];
  });
}"""


SENT_AGAIN = """async () => {
  const { Connection } = await import("/static/connection.js");
  const [WebSocket, sockets] = [window.WebSocket, []];
  window.WebSocket = class {
    constructor() { this.sent = []; sockets.push(this); }
    send(data) { this.sent.push(typeof data === "string" ? JSON.parse(data).type : [...data]); }
    close() {}
  };
  const nothing = () => {};
  const connection = new Connection({ type: "start" }, { onState: nothing, onEvent: nothing, onSound: nothing });
  const answer = (message) => sockets.at(-1).onmessage({ data: JSON.stringify(message) });
  sockets[0].onopen();
  answer({ type: "started", session: "s", key: "k", received: 0 });
  for (const samples of [[1, 2, 3], [4, 5, 6], [7, 8]]) connection.speak(Int16Array.from(samples));
  sockets[0].onclose();
  window.dispatchEvent(new Event("online"));
  sockets[1].onopen();
  answer({ type: "resumed", session: "s", key: "k", received: 4 });
  connection.close();
  window.WebSocket = WebSocket;
  return sockets.map(({ sent }) => sent);
}"""


def test_audio_is_sent_again_from_where_the_server_has_it(runner, page):
    first, second = runner.run(page.evaluate(SENT_AGAIN))
    assert first == ["start", [1, 2, 3], [4, 5, 6], [7, 8]]
    assert second == ["resume", [5, 6], [7, 8]]


@pytest.mark.parametrize(
    ("peaks", "said"),
    [
        ([0.0] * 10, [True]),
        ([0.0] * 9, []),
        ([0.0] * 20 + [0.1] + [0.0] * 20, [True, False]),
        ([0.01] + [0.0] * 20, []),
    ],
)
def test_silence_from_the_beginning_is_said_until_it_ends(peaks, said, runner, page):
    assert runner.run(page.evaluate(LEVELS, peaks))[-1] == said


NAME = """async (key) => (await import("/static/room.js")).roomName(key)"""


def test_the_page_gives_a_room_the_name_that_the_server_does(runner, page):
    assert runner.run(page.evaluate(NAME, "k" * 32)) == room_name("k" * 32)


SUBTITLES = """async ([events, language, kind]) => {
  const { Texts } = await import("/static/texts.js");
  const { subtitles } = await import("/static/subtitles.js");
  const texts = new Texts();
  for (const event of events) texts.apply(event);
  return subtitles(texts, language, kind);
}"""
LONG = (
    "Naïve trains to Berlin — half past nine, at 12 500 € (or so) — leave; “we” would like three of the tickets. " * 3
)
CHINESE = (
    "去柏林的火车九点半出发，我们要3张票。明天早上九点在图书馆见面，然后一起去吃饭。请把这份文件交给经理，他下午会看。"
)
JAPANESE = "今日は天気がいいですね。散歩に行きましょう、公園まで。" * 2
THAI = "ฉันอยากไปเที่ยวทะเลกับเพื่อนของฉัน ในวันหยุดสุดสัปดาห์นี้และปีหน้า " * 2


def talk(*sentences: tuple[str, float, float], **more: Any) -> list[PipelineEvent]:
    return [
        event
        for number, (text, start_s, end_s) in enumerate(sentences)
        for event in [*spoken(number, "So.", start_s, end_s, **more), *translated(number, [text], language="pt")]
    ]


HEBREW = "אני רוצה 3 כרטיסים ל Berlin, בבקשה, ואחר כך גם ארוחת צהריים. Berlin!"

TALKS = [
    talk((HEBREW, 0.0, 4.0), ("שלום", 5.0, 6.0), ("Say שלום to everybody.", 7.0, 9.0), ("12", 10.0, 11.0)),
    talk((r"<b>{\an8}1</b> \N --> &lt; 0:00:01,500", 0.0, 2.0), ("12", 3.0, 4.0)),
    talk((LONG, 2.0, 20.0), ("Yes.", 20.0, 21.0), (LONG, 21.0, 24.0)),
    talk(("x" * 100 + " and more", 0.0, 0.2), ("No.", 0.3, 0.4), ("Why?", 4.0, 5.0)),
    talk(
        *((f"Sentence {n} is said.", 0.4 * n, 0.4 * n + 0.3) for n in range(20))
    ),  # they get late, and share subtitles
    talk(*((f"{n}.", float(n), n + 0.3) for n in range(3)), ("Far away.", 9.0, 9.2), before_pause=False),
    [replace(each, speaker="Ann") for each in talk((LONG, 0.0, 6.0)) if isinstance(each, SourceText | SourceSentence)]
    + talk((LONG, 0.0, 6.0))[2:],
]


@pytest.mark.parametrize("kind", ["srt", "vtt", "txt"])
@pytest.mark.parametrize("events", TALKS)
def test_downloads_are_the_files_that_the_program_writes(events, kind, runner, page, tmp_path):
    sink = sink_makers(SubtitleRules())[kind](tmp_path / "file", languages=["pt"])
    for event in events:
        sink.write(event)
    sink.close()
    found = runner.run(page.evaluate(SUBTITLES, [records(events), "pt", kind]))
    assert found.strip() == (tmp_path / "file").read_text("utf-8").strip()


@pytest.mark.parametrize("text", [LONG, CHINESE, JAPANESE, THAI])
def test_downloads_break_no_rule(text, runner, page):
    events = talk((text, 2.0, 40.0), (text, 40.0, 78.0))
    cues = read_cues(runner.run(page.evaluate(SUBTITLES, [records(events), "pt", "srt"])))
    assert [*violations(cues, SubtitleRules())] == []
    assert "".join(line for cue in cues for line in cue.lines).replace(" ", "") == (2 * text).replace(" ", "")
    assert all(len(cue.lines) <= 2 for cue in cues)


CORRECT = """async (events) => {
  const { Board } = await import("/static/render.js");
  const { Texts } = await import("/static/texts.js");
  const { Editor } = await import("/static/edit.js");
  const elements = ["section", "div", "button"].map((name) => document.body.appendChild(document.createElement(name)));
  const [board, texts, sent] = [new Board(...elements), new Texts(), []];
  const { list } = board;
  const editor = new Editor(board, (message) => sent.push(message.speaker ?? message.text));
  const shown = () => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(() => resolve(list.querySelector(".target").textContent))));
  board.begin(texts);
  events.forEach((event) => board.changed(texts.apply(event)));
  await shown();
  editor.on = true;
  list.querySelector(".target").click();
  list.querySelector("input").value = "Ann";
  const field = list.querySelector("textarea");
  field.value = "New.";
  field.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", bubbles: true }));
  const meanwhile = await shown();
  list.querySelector(".target").click();
  const again = list.querySelector("textarea").value;
  editor.close(); // as where the server refuses
  const after = await shown();
  elements.forEach((each) => each.remove());
  return [meanwhile, again, after, sent];
}"""


def test_a_corrected_line_has_its_new_text_until_the_server_answers(runner, page):
    events = records([*spoken(0, "Yes."), *translated(0, ["是。"])])
    assert runner.run(page.evaluate(CORRECT, events)) == ["New.", "New.", "是。", ["New.", "Ann"]]


IN_THE_BACKGROUND = """async (events) => {
  const { Board } = await import("/static/render.js");
  const { Texts } = await import("/static/texts.js");
  const elements = ["section", "div", "button"].map((name) => document.body.appendChild(document.createElement(name)));
  const [board, texts] = [new Board(...elements), new Texts()];
  const frames = window.requestAnimationFrame;
  window.requestAnimationFrame = () => 1;
  board.begin(texts);
  events.forEach((event) => board.changed(texts.apply(event)));
  while (!board.spoken.textContent) await new Promise((resolve) => setTimeout(resolve));
  window.requestAnimationFrame = frames;
  elements.forEach((each) => each.remove());
  return board.spoken.textContent;
}"""


def test_a_page_that_goes_to_the_background_while_a_frame_is_due_says_its_text(runner, page):
    events = records([*spoken(0, "Yes."), *translated(0, ["是。"])])
    assert runner.run(page.evaluate(IN_THE_BACKGROUND, events)) == "是。"
