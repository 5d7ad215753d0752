"""Rules of the pages' scripts, each in its module alone: in Chromium, without a server, a network or a clock."""

import asyncio
import json
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import Any

import pytest
from playwright.async_api import Browser, Page

from pipeline.core.notices import Paused, TranslationLost
from pipeline.events import PipelineEvent, SourceText, TargetText
from pipeline.server.protocol import event_text
from tests.browser.browser import page_of_files
from tests.streams import changes, spoken, translated


@pytest.fixture(scope="module")
def page(runner: asyncio.Runner, browser: Browser) -> Iterator[Page]:
    """A page that can import the scripts."""
    stack = AsyncExitStack()
    yield runner.run(stack.enter_async_context(page_of_files(browser, "/overlay/x")))
    runner.run(stack.aclose())


# A connection whose sockets and timers do what the steps say. Gives what was sent over each socket and where it led, what the page
# was told, the timers that run, and how much audio the server does not have.
CONNECT = """async ([first, steps, kept]) => {
  const { Connection } = await import("/static/connection.js");
  const { WebSocket, setTimeout, clearTimeout } = window;
  const { now } = Date;
  const [sockets, timers, told] = [[], new Map(), []];
  let [time, count] = [1, 0];
  window.WebSocket = class {
    constructor(address) {
      Object.assign(this, { address: String(address), sent: [] });
      sockets.push(this);
    }
    send(data) { this.sent.push(typeof data === "string" ? JSON.parse(data) : [...data]); }
    close() { this.closed = true; }
  };
  window.setTimeout = (work, ms) => (timers.set((count += 1), { work, ms }), count);
  window.clearTimeout = (timer) => timers.delete(timer);
  Date.now = () => time;
  const run = (silence) => {
    const [timer, { work }] = [...timers].find(([, { ms }]) => (ms === 8000) === silence);
    timers.delete(timer);
    work();
  };
  try {
    const connection = new Connection(first, {
      onState: (state, detail) => told.push([state, detail?.code ?? null]),
      onEvent: ({ type }) => told.push(type),
    }, kept ?? undefined, "a room");
    const does = {
      open: () => sockets.at(-1).onopen(),
      hear: (message, at = -1) => sockets.at(at).onmessage({ data: JSON.stringify(message) }),
      lose: (at = -1) => sockets.at(at).onclose(),
      retry: () => run(false),
      silence: () => run(true),
      later: (ms) => (time += ms),
      speak: (...samples) => connection.speak(Int16Array.from(samples)),
    };
    for (const [step, ...values] of steps) does[step] ? does[step](...values) : connection[step](...values);
    return {
      sent: sockets.map(({ sent }) => sent),
      addresses: sockets.map(({ address }) => address),
      told,
      waits: [...timers.values()].map(({ ms }) => ms).filter((ms) => ms !== 8000),
      ahead: connection.ahead,
      kept: connection.waiting.length,
    };
  } finally {
    Object.assign(window, { WebSocket, setTimeout, clearTimeout });
    Date.now = now;
  }
}"""
START = {"type": "start", "sample_rate": 2}
STARTED = {"type": "started", "session": "s", "key": "k", "received": 0}
BEGUN = [["open"], ["hear", STARTED]]
AGAIN = [["lose"], ["retry"], ["open"]]


def resumed(received: int) -> list[Any]:
    return ["hear", {"type": "resumed", "session": "s", "key": "k", "received": received}]


def status(received: int) -> list[Any]:
    return ["hear", {"type": "status", "received": received}]


@pytest.fixture
def connected(runner: asyncio.Runner, page: Page) -> Any:
    """Does steps with a connection."""

    def work(steps: Sequence[Any], first: Any = START, kept: Any = None) -> Any:
        return runner.run(page.evaluate(CONNECT, [first, steps, kept]))

    return work


SPOKEN = [["speak", 1, 2, 3], ["speak", 4, 5, 6], ["mark", {"type": "pause"}], ["speak", 7, 8]]


@pytest.mark.parametrize(
    ("told", "received", "again"),
    [
        (0, 0, [[1, 2, 3], [4, 5, 6], {"type": "pause"}, [7, 8]]),
        (3, 3, [[4, 5, 6], {"type": "pause"}, [7, 8]]),
        (4, 4, [[5, 6], {"type": "pause"}, [7, 8]]),
        (4, 5, [[6], {"type": "pause"}, [7, 8]]),
        (5, 6, [{"type": "pause"}, [7, 8]]),
        (6, 6, [{"type": "pause"}, [7, 8]]),
        (4, 7, [[8]]),
        (0, 8, []),
        (7, 7, [[8]]),
        (8, 8, []),
    ],
)
def test_all_that_the_server_does_not_have_is_sent_again_and_nothing_else(told, received, again, connected):
    found = connected([*BEGUN, *SPOKEN, status(told), *AGAIN, resumed(received)])
    first, second = found["sent"]
    assert first == [START, [1, 2, 3], [4, 5, 6], {"type": "pause"}, [7, 8]]
    assert second == [{"type": "resume", "session": "s", "key": "k"}, *again]
    assert found["ahead"] == 8 - received
    assert found["kept"] == sum(end > told for end in (3, 6, 8)) + (told <= 6)  # the mark is before what follows it


@pytest.mark.parametrize(
    ("steps", "sent"),
    [
        ([["end"], ["end"], ["speak", 1], ["mark", {"type": "pause"}]], [{"type": "end"}]),
        ([["speak", 1], ["end"], *AGAIN, resumed(0)], [[1], {"type": "end"}]),
        ([["pause", True]], [[0, 0, 0, 0, 0], {"type": "pause", "on": True}]),
        ([["pause", False]], [{"type": "pause", "on": True}]),
        ([["lose"], ["speak", 1], ["send", {"type": "mask"}], ["retry"], ["open"], resumed(0)], [[1]]),
        ([["close"], ["speak", 1], ["end"]], []),
        ([["replaceGlossary", "a"], *AGAIN, resumed(0)], [{"type": "glossary", "text": "a"}]),
        ([["replaceGlossary", ""], *AGAIN, resumed(0)], [{"type": "glossary", "text": ""}]),
        ([["replaceGlossary", "a"], ["hear", {"type": "glossary"}], *AGAIN, resumed(0)], []),
        ([["replaceGlossary", "a"], ["end"], *AGAIN, resumed(0)], [{"type": "end"}]),
        ([["addTarget", "de"], *AGAIN, resumed(0)], [{"type": "add_target", "language": "de"}]),
        ([["addTarget", "de"], ["hear", {"type": "targets", "targets": ["fr"]}], *AGAIN, resumed(0)], [{"type": "add_target", "language": "de"}]),
        ([["addTarget", "de"], ["hear", {"type": "targets", "targets": ["de"]}], *AGAIN, resumed(0)], []),
        ([["addTarget", "de"], ["hear", {"type": "not_added", "language": "de"}], *AGAIN, resumed(0)], []),
        ([["addTarget", "de"], ["hear", {"type": "not_added", "language": "fr"}], *AGAIN, resumed(0)], [{"type": "add_target", "language": "de"}]),
    ],
)  # fmt: skip
def test_what_is_to_be_told_is_told_once_over_the_connection_that_there_is(steps, sent, connected):
    assert connected([*BEGUN, *steps])["sent"][-1][1:] == sent


def test_a_token_is_sent_when_a_speaker_comes_back(connected):
    sent = connected([*BEGUN, *AGAIN], START | {"token": "secret"})["sent"]
    assert sent[1] == [{"type": "resume", "session": "s", "key": "k", "token": "secret"}]


def test_a_page_that_takes_a_session_over_counts_on_from_what_the_server_has(connected):
    found = connected(
        [["speak", 9], ["open"], resumed(100), ["speak", 1, 2], *AGAIN, resumed(101)], kept={"session": "s", "key": "k"}
    )
    assert found["sent"][0][0] == found["sent"][1][0] == {"type": "resume", "session": "s", "key": "k"}
    assert (found["sent"][1][1:], found["ahead"]) == ([[2]], 1)


def test_a_page_waits_longer_after_each_failure_until_it_is_connected(connected):
    failures = [step for _ in range(5) for step in (["lose"], ["retry"])]
    for count, wait_ms in enumerate([500, 1_000, 2_000, 4_000, 5_000, 5_000]):
        assert connected([*failures[: 2 * count], ["lose"]])["waits"] == [wait_ms]
    assert connected([*failures, *BEGUN, ["lose"]])["waits"] == [500]


REFUSED, LOST = ["refused", "lost"], ["lost", None]


@pytest.mark.parametrize(
    ("first", "steps", "last"),
    [
        (START, [*BEGUN, ["later", 90_000], ["lose"], ["later", 30_000], ["retry"], ["lose"]], LOST),
        (START, [*BEGUN, ["later", 90_000], ["lose"], ["later", 30_001], ["retry"], ["lose"]], REFUSED),
        (START, [*BEGUN, ["lose"], ["later", 20_000], *AGAIN[1:], resumed(0), ["later", 20_000], ["lose"]], LOST),
        ({"type": "watch"}, [["open"], ["lose"], ["later", 90_000], ["retry"], ["lose"]], LOST),
        (START, [*BEGUN, ["silence"]], LOST),
        (START, [*BEGUN, ["hear", {"type": "end"}], ["lose"]], ["ended", None]),
        (START, [*BEGUN, ["hear", {"type": "snapshot", "events": [{"type": "end"}]}], ["lose"]], ["ended", None]),
        (START, [*BEGUN, ["hear", {"type": "snapshot", "events": [{"type": "delta"}]}], ["lose"]], LOST),
        (START, [*BEGUN, ["hear", {"type": "error", "code": "idle"}], ["lose"]], "error"),
        (START, [*BEGUN, ["hear", {"type": "error", "code": "else"}], ["lose"]], LOST),
    ],
    ids=[
        "for 30 s", "longer", "again", "a reader", "nothing comes", "the end", "the end in a snapshot", "no end",
        "a final error", "another error",
    ],
)  # fmt: skip
def test_what_a_page_says_of_a_connection_that_is_lost(first, steps, last, connected):
    found = connected(steps, first)
    assert found["told"][-1] == last
    assert len(found["waits"]) == (last == LOST)  # whether it is to try again


def test_what_an_earlier_connection_does_is_ignored(connected):
    found = connected([*BEGUN, ["lose"], ["retry"], ["lose", 0], ["hear", {"type": "end"}, 0]])
    assert (found["told"][-1], found["waits"]) == (LOST, [])


def test_a_page_goes_where_the_server_sends_it_at_once_and_next_time_begins_here(connected):
    elsewhere = {"type": "error", "code": "elsewhere", "address": "wss://two.example/v1/session?placed=1"}
    found = connected([["open"], ["hear", elsewhere], ["lose"], *BEGUN, ["lose"], ["retry"]])
    assert [address.partition("://")[2] for address in found["addresses"]] == [
        "localhost/v1/session?room=a+room",
        "two.example/v1/session?placed=1&room=a+room",
        "localhost/v1/session?room=a+room",
    ]
    assert "error" not in found["told"]


def records(events: Sequence[PipelineEvent]) -> list[dict[str, Any]]:
    return [json.loads(event_text(event)) for event in changes(events)]


SUBTITLES = """async ([events, language, kind]) => {
  const { Texts } = await import("/static/texts.js");
  const { subtitles } = await import("/static/subtitles.js");
  const texts = new Texts();
  for (const event of events) texts.apply(event);
  return subtitles(texts, language, kind);
}"""
SAID = [
    *spoken(0, "Yes.", 1.0, 3.0),
    *translated(0, ["是。"]),
    *spoken(1, "So <b>& on", 3_661.5, 3_664.25),
    TargetText(1, "zh", "等"),
    SourceText(2, "en", "And", 0, 3_665.0, 3_666.0),
    *spoken(3, "好的", 3_667.0, 3_668.0, language="zh"),
    *translated(3, ["Good"], language="en"),
]
NAMED = [
    replace(event, speaker=name)
    for number, (text, name) in enumerate([("A", "Ann"), ("B", "Ann"), ("C", None), ("D", "Ann"), ("好", "Bo & C")])
    for event in spoken(number, text, 2.0 * number, 2.0 * number + 1)
]


@pytest.mark.parametrize(
    ("events", "language", "kind", "text"),
    [
        (SAID, "", "txt", "Yes.\nSo <b>& on\n好的\n"),
        (SAID, "zh", "txt", "是。\n好的\n"),
        (SAID, "de", "txt", ""),
        (SAID, "zh", "srt", "1\n00:00:01,000 --> 00:00:03,000\n是。\n\n2\n01:01:07,000 --> 01:01:08,000\n好的\n"),
        (SAID[4:6], "", "vtt", "WEBVTT\n\n01:01:01.500 --> 01:01:04.250\nSo &lt;b&gt;&amp; on\n"),
        (SAID[4:6], "", "srt", "1\n01:01:01,500 --> 01:01:04,250\nSo <\u2060b>& on\n"),
        (spoken(0, "  ", 1.0, 2.0), "", "txt", ""),
        (NAMED, "", "txt", "Ann: A\nB\nC\nAnn: D\nBo & C：好\n"),
        (NAMED[8:], "", "srt", "1\n00:00:08,000 --> 00:00:09,000\nBo & C：好\n"),
        (NAMED[8:], "", "vtt", "WEBVTT\n\n00:00:08.000 --> 00:00:09.000\n<v Bo &amp; C>好\n"),
        ([*spoken(0, "A", 1.0, 1.2), *spoken(1, "B", 1.0, 1.0)], "", "srt",
         "1\n00:00:01,000 --> 00:00:01,833\nA\n\n2\n00:00:01,916 --> 00:00:02,749\nB\n"),
    ],
    ids=[
        "what was said", "a translation", "another language", "srt", "vtt", "word joiners", "a blank", "speakers", "a speaker",
        "a voice", "short ones",
    ],
)  # fmt: skip
def test_finished_text_alone_is_downloaded(events, language, kind, text, runner, page):
    assert runner.run(page.evaluate(SUBTITLES, [records(events), language, kind])) == text


# What is true of the texts after some events, by an expression.
TEXTS = """async ([events, asked]) => {
  const { Texts, textFor } = await import("/static/texts.js");
  const texts = new Texts();
  for (const event of events) texts.apply(event);
  return new Function("texts", "textFor", `return ${asked}`)(texts, textFor);
}"""


def source(number: int, text: str = "Yes.", **more: Any) -> dict[str, Any]:
    times = {"start_s": 2.0 * number, "end_s": 2.0 * number + 1}
    return {"type": "source_sentence", "sentence": number, "language": "en", "text": text, **times, **more}


def target(number: int, text: str = "是。", language: str = "zh", **more: Any) -> dict[str, Any]:
    return {"type": "translation", "sentence": number, "language": language, "text": text, **more}


def draft(number: int, text: str, language: str = "zh", **more: Any) -> dict[str, Any]:
    return {"type": "delta", "sentence": number, "language": language, "text": text, **more}


def corrected(number: int, text: str, **more: Any) -> dict[str, Any]:
    return {"type": "correction", "sentence": number, "text": text, **more}


LOST_SPEECH = {"type": "transcript", "rejected": "uncertain", "start_s": 5.0, "end_s": 6.0, "missing": []}
ZH = "texts.sentences.get(0).targets.get('zh')"
SOURCE = "texts.sentences.get(0).source"


@pytest.mark.parametrize(
    ("events", "asked", "answer"),
    [
        ([source(0), target(0), source(1), source(2), draft(2, "x")], "texts.reached", 3),
        ([source(3), source(1)], "texts.reached", 7),
        ([draft(0, "x")], "texts.reached", 0),
        ([source(2), source(0), source(1, ""), draft(1, "", language="de")], "texts.shown().map((one) => one.number)", [0, 2]),
        ([source(0, ""), target(0)], "texts.shown().length", 1),
        ([source(0, doubtful=True)], f"{SOURCE}.doubtful", True),
        ([source(0, uncertain=True), target(0)], f"{ZH}.doubtful", True),
        ([source(0), target(0, doubtful=True), corrected(0, "对", language="zh")], f"[{ZH}.doubtful, {ZH}.corrections]", [False, 1]),
        ([source(0), corrected(0, "No."), corrected(0, "Yes.")], f"[{SOURCE}.text, {SOURCE}.corrections]", ["Yes.", 2]),
        ([source(0, doubtful=True), corrected(0, "Yes.", speaker="Ann")], f"[{SOURCE}.corrections, {SOURCE}.doubtful, texts.sentences.get(0).speaker]", [0, True, "Ann"]),
        ([source(0, speaker="Ann"), corrected(0, "No.")], "texts.sentences.get(0).speaker", "Ann"),
        ([source(0, speaker="Ann"), corrected(0, "Yes.", speaker="")], "texts.sentences.get(0).speaker", ""),
        ([draft(0, "ab", steady=1), draft(0, "c", withdrawn=1, steady=2)], f"[{ZH}.steady, {ZH}.draft, {ZH}.done]", ["ac", "", False]),
        ([draft(0, "ab", steady=2), draft(0, "c")], f"[{ZH}.steady, {ZH}.draft]", ["", "abc"]),
        ([source(0), target(0, terms=["a", "b"], missed_terms=["b"])], f"[{ZH}.terms, {ZH}.missed]", [["a", "b"], ["b"]]),
        ([LOST_SPEECH, LOST_SPEECH | {"rejected": "silence"}, LOST_SPEECH | {"rejected": "empty"}], "texts.missing.length", 1),
        ([LOST_SPEECH, {"type": "snapshot", "events": []}], "texts.missing.length", 0),
        ([source(0), draft(1, "x"), {"type": "snapshot", "events": [source(2)]}], "[...texts.sentences.keys()]", [0, 2]),
        ([source(0), target(0), {"type": "snapshot", "events": [source(0)]}], "texts.sentences.get(0).targets.size", 0),
        ([source(0), {"type": "snapshot", "events": [source(2)]}], "texts.apply({ type: 'snapshot', events: [] })", []),
        ([source(0)], "textFor(texts.sentences.get(0), 'en-GB').text", "Yes."),
        ([source(0), target(0, "Aye.", "en-GB")], "textFor(texts.sentences.get(0), 'en-GB').text", "Aye."),
        ([source(0)], "textFor(texts.sentences.get(0), 'zh') ?? null", None),
    ],
)  # fmt: skip
def test_what_the_texts_are_after_some_events(events, asked, answer, runner, page):
    assert runner.run(page.evaluate(TEXTS, [events, asked])) == answer


# The value of an expression in which a script's module is ``m``.
ASK = """async ([script, asked]) => {
  const m = await import(`/static/${script}.js`);
  return new Function("m", `return ${asked}`)(m);
}"""
PROGRESS = "{reached: 65, missing: [{start_s: 1}, {start_s: 70}]}"
KNOWN = "{sentences: new Map([[0, {targets: new Map([['zh', {terms: ['a', 'b'], missed: ['b']}], ['de', {terms: ['a'], missed: []}]])}]])}"


@pytest.mark.parametrize(
    ("script", "asked", "answer"),
    [
        ("languages", "m.sameLanguage('pt-BR', 'PT')", True),
        ("languages", "m.sameLanguage('zh', 'en')", False),
        ("languages", "m.targetChoices(['zh']).map(([code]) => code)", ["zh"]),
        ("languages", "m.targetChoices(['zh', 'de']).map(([code]) => code)", ["", "zh", "de"]),
        ("render", "[59.9, 60, 3599, 3600, 36061].map(m.clock)", ["0:59", "1:00", "59:59", "1:00:00", "10:01:01"]),
        ("recording", "[...m.mixed([new Float32Array([1, 2, -2, 0.5])])]", [32767, 32767, -32767, 16384]),
        ("recording", "[...m.mixed([new Float32Array([1, 0]), new Float32Array([0, -1])])]", [16384, -16383]),
        ("progress", f"m.progress({{lag_s: 1.25, viewers: 0}}, {PROGRESS}, 0)", "1.3 s behind · 2 not understood, the last at 1:10"),
        ("progress", f"m.progress({{lag_s: 1, viewers: 1}}, {PROGRESS}, 600)", "1:05 of 10:00 · 1 reader · 2 not understood, the last at 1:10"),
        ("progress", "m.progress({lag_s: 0, viewers: 2}, {reached: 0, missing: []}, 0)", "0.0 s behind · 2 readers"),
        ("messages", "m.errorMessage({code: 'other', message: 'it is so'}, true)", "It is so."),
        ("messages", "m.errorMessage({code: 'other', message: 'Is it so?'}, true)", "Is it so?"),
        ("messages", "m.errorMessage({code: 'idle', message: 'x'}, true).includes('Start')", True),
        ("messages", "m.errorMessage({code: 'idle', message: 'x'}, false).includes('Start')", False),
        ("messages", "m.endedEarly('Why.', {reached: 0})", "Why."),
        ("messages", "m.endedEarly('Why.', {reached: 61}).startsWith('Why. What was said until 1:01 ')", True),
        ("glossary", f"m.counts({KNOWN})", {"seen": 3, "missed": ["b"]}),
        ("glossary", "m.kept(3, ['b'])", "2 of 3 terms translated as given."),
        ("glossary", "m.kept(1, [])", "1 of 1 term translated as given."),
        ("glossary", "m.kept(0, [])", ""),
        ("permission", "m.browserOf('Mozilla/5.0 Chrome/1 Safari/5')", "chromium"),
        ("terms", "m.tsv([['a', ''], ['', ''], ['#b', 'c\\td'], ['\"e\"', 'f', '', '', 'exact']], ['en', 'pt'])",
         'source:en\ttarget:pt\tvariants\ttarget_variants\tcase\na\t=\n\n #b\tc d\n"""e"""\tf\t\t\texact\n'),
        ("terms", "m.tsv([['a', 'b']], null)", "source\ttarget\tvariants\ttarget_variants\tcase\na\tb\n"),
        ("terms", "m.terms('a\\tb\\n\\n# no\\n#\\nc\\t=', ['en', 'pt'])", [["a", "b", "", "", ""], ["c", "", "", "", ""]]),
        ("terms", "m.terms('source:pt\\ttarget:en\\nb\\ta\\nc\\t', ['en', 'pt'])", [["a", "b", "", "", ""], ["c", "", "", "", ""]]),
        ("terms", "m.terms('source:pt\\ttarget:fr\\na\\tb', ['en', 'pt'])", [["a", "b", "", "", ""]]),
        ("terms", "m.terms('source:en\\ttarget:pt\\na\\tb', ['en', 'pt'])", [["a", "b", "", "", ""]]),
        ("terms", "m.terms('target\\tsource\\nb\\ta', ['en', 'pt'])", [["a", "b", "", "", ""]]),
        ("terms", "m.terms('a\\tb\\nsource\\ttarget', ['en', 'pt'])", [["a", "b", "", "", ""], ["source", "target", "", "", ""]]),
        ("terms", "m.terms('\"a\\nb\"\\t\"c \"\"d\"\"\"', [])", [["a\nb", 'c "d"', "", "", ""]]),
    ],
)  # fmt: skip
def test_what_a_script_answers(script, asked, answer, runner, page):
    assert runner.run(page.evaluate(ASK, [script, asked])) == answer


RECENT = """async () => {
  const { recentPairs, usePair } = await import("/static/recent.js");
  localStorage.removeItem("speech-translation-pairs");
  for (let number = 0; number < 9; number++) usePair("en", `t${number}`);
  usePair("en", "t3");
  return recentPairs().map(([, target]) => target);
}"""


def test_the_last_pairs_of_languages_are_remembered_each_once(runner, page):
    assert runner.run(page.evaluate(RECENT)) == ["t3", "t8", "t7", "t6", "t5", "t4", "t2", "t1"]


# Draws events, some at a time; gives what was told to screen readers, and the numbers of the rows.
BOARD = """async ([parts, language]) => {
  const { Board } = await import("/static/render.js");
  const { Texts } = await import("/static/texts.js");
  const [list, spoken, newest] = ["div", "div", "button"].map((name) => document.createElement(name));
  const [texts, board] = [new Texts(), new Board(list, spoken, newest)];
  board.begin(texts);
  board.language = language;
  for (const events of parts) {
    for (const event of events) board.changed(texts.apply(event));
    board.draw();
  }
  return [[...spoken.children].map((each) => each.textContent), [...list.querySelectorAll("article")].map((row) => Number(row.dataset.number))];
}"""


def test_screen_readers_have_the_newest_of_what_was_said_and_each_text_once(runner, page):
    parts = [[source(0), target(0, "a"), draft(1, "x")], [source(0), target(0, "a")]]
    assert runner.run(page.evaluate(BOARD, [parts, "zh"]))[0] == ["a"]
    parts = [
        [source(0), target(0, "a")],
        [corrected(0, "b", language="zh")],
        [source(1), target(1, "c", doubtful=True)],
    ]
    assert runner.run(page.evaluate(BOARD, [parts, "zh"]))[0] == ["a", "corrected b", "may be wrong c"]
    many = [event for number in range(25) for event in (source(number), target(number, str(number)))]
    assert runner.run(page.evaluate(BOARD, [[many], "zh"]))[0] == [str(number) for number in range(5, 25)]


def test_rows_are_in_the_order_of_the_sentences_and_go_with_their_text(runner, page):
    parts = [[source(2), draft(3, "x"), source(0)], [source(1), draft(3, "", withdrawn=1)]]
    assert runner.run(page.evaluate(BOARD, [parts, "zh"]))[1] == [0, 1, 2]


TERMS = """async (event) => {
  const { Texts } = await import("/static/texts.js");
  const { rows } = await import("/static/render.js");
  const texts = new Texts();
  texts.apply(event);
  return [...rows(texts.sentences.get(0), "zh", true)[1].children].map((item) => item.className);
}"""


def test_a_term_is_shown_as_missed_as_often_as_it_was(runner, page):
    event = target(0, terms=["a", "b", "a", "a"], missed_terms=["a", "a"])
    assert runner.run(page.evaluate(TERMS, event)) == ["missed", "kept", "missed", "kept"]


# Follows a room or session whose connections do what the steps say; gives what the page is told.
FOLLOW = """async ([name, steps]) => {
  const { follow } = await import("/static/follow.js");
  const { WebSocket, setTimeout, fetch } = window;
  const [sockets, told, asking, waiting] = [[], [], [], []];
  window.WebSocket = class {
    constructor() { sockets.push(this); }
    send() {}
    close() {}
  };
  window.setTimeout = (work, ms) => ((ms === 3000 ? asking : waiting).push(work), 0);
  try {
    follow(name, { onBegin: ({ session }) => told.push(session), onEvent() {}, onState: (...state) => told.push(state[0]) });
    for (const [step, value] of steps) {
      if (step === "begin") {
        sockets.at(-1).onopen();
        sockets.at(-1).onmessage({ data: JSON.stringify({ type: "watching", session: value }) });
      } else if (step === "hear") sockets.at(-1).onmessage({ data: JSON.stringify(value) });
      else if (step === "lose") sockets.at(-1).onclose();
      else if (step === "retry") waiting.pop()();
      else {
        window.fetch = async () => ({ json: async () => ({ session: value }) });
        await asking.pop()();
      }
    }
    return [told, sockets.length, asking.length];
  } finally {
    Object.assign(window, { WebSocket, setTimeout, fetch });
  }
}"""
ROOM = "r" * 22
GONE = ["hear", {"type": "error", "code": "no-session"}]
OVER = [["hear", {"type": "end"}], ["lose"]]


@pytest.mark.parametrize(
    ("name", "steps", "told", "connections", "asks"),
    [
        (ROOM, [GONE], ["connecting", "waiting"], 1, 1),
        (ROOM, [GONE, ["ask", None]], ["connecting", "waiting"], 1, 1),
        (ROOM, [GONE, ["ask", "a"], ["begin", "a"]], ["connecting", "waiting", "connecting", "a", "open"], 2, 0),
        (ROOM, [["begin", "a"], *OVER], ["connecting", "a", "open", "ended"], 1, 1),
        (ROOM, [["begin", "a"], *OVER, ["ask", "a"]], ["connecting", "a", "open", "ended"], 1, 1),
        (ROOM, [["begin", "a"], *OVER, ["ask", "b"], ["begin", "b"]], ["connecting", "a", "open", "ended", "connecting", "b", "open"], 2, 0),
        (ROOM, [["begin", "a"], ["lose"], ["retry"], GONE], ["connecting", "a", "open", "lost", "cut"], 2, 1),
        (ROOM, [["begin", "a"], ["lose"], ["retry"], ["begin", "a"]], ["connecting", "a", "open", "lost", "open"], 2, 0),
        ("a session", [["begin", "a"], ["lose"], ["retry"], GONE], ["connecting", "a", "open", "lost", "refused"], 2, 0),
        ("a session", [["begin", "a"], *OVER], ["connecting", "a", "open", "ended"], 1, 0),
        ("a session", [GONE], ["connecting", "refused"], 1, 0),
    ],
)  # fmt: skip
def test_readers_of_a_room_wait_for_its_next_session(name, steps, told, connections, asks, runner, page):
    assert runner.run(page.evaluate(FOLLOW, [name, steps])) == [told, connections, asks]


# The menus of languages after some steps: [name of a menu, value], or ["swap"]. Gives the first message's languages, the choices of
# both menus, and what the page knows of the choice.
CHOICE = """async ([languages, offered, recent, steps]) => {
  const { Choice } = await import("/static/choice.js");
  localStorage.setItem("speech-translation-pairs", JSON.stringify(recent));
  const form = document.createElement("form");
  form.innerHTML = "<label><select name=source></select></label><label><select name=target></select></label><button type=button name=swap></button>";
  document.body.append(form);
  try {
    const { source, target, swap } = form.elements;
    const choice = new Choice({ source, target, swap }, languages, document.createElement("span"), offered);
    for (const [name, value] of steps) {
      if (name === "swap") swap.click();
      else if (name === "use") choice.use();
      else if (name === "restore") choice.restore(value);
      else {
        form.elements[name].value = value;
        form.elements[name].dispatchEvent(new Event("change", { bubbles: true }));
      }
    }
    const values = ({ options }) => [...options].map(({ value }) => value);
    return {
      wanted: choice.wanted(), sources: values(source), targets: values(target), pair: choice.pair.pair, either: choice.pair.either,
      swap: swap.hidden ? "hidden" : swap.disabled ? "disabled" : "enabled", recent: JSON.parse(localStorage.getItem("speech-translation-pairs")),
    };
  } finally {
    form.remove();
    localStorage.removeItem("speech-translation-pairs");
  }
}"""


def served(source: str, *targets: str) -> dict[str, Any]:
    return {"source": source, "targets": list(targets)}


EN, PT, ANY = served("en", "pt", "zh"), served("pt", "en"), served("auto", "en", "pt")
MORE = [served("en", "de", "zh-TW"), served("fr", "en")]


@pytest.mark.parametrize(
    ("languages", "offered", "recent", "steps", "found"),
    [
        ([PT], [], [], [], {"wanted": {"targets": ["en"]}, "pair": ["pt", "en"], "swap": "hidden", "targets": ["en", "pt"]}),
        ([EN], [], [], [], {"wanted": {}, "targets": ["", "pt", "zh", "en"], "pair": []}),
        ([EN], [], [], [["target", "zh"]], {"wanted": {"targets": ["zh"]}, "pair": ["en", "zh"]}),
        ([EN], [], [], [["target", "en"]], {"wanted": {"targets": ["en"]}, "pair": []}),
        ([EN, PT], [], [], [["source", "pt"]], {"wanted": {"source": "pt", "targets": ["en"]}, "swap": "enabled"}),
        ([EN, PT], [], [], [["target", "pt"], ["swap"]], {"wanted": {"source": "pt", "targets": ["en"]}, "pair": ["pt", "en"]}),
        ([EN, PT], [], [], [["target", "pt"], ["swap"], ["swap"]], {"wanted": {"source": "en", "targets": ["pt"]}}),
        ([EN, PT], [], [], [["target", "zh"]], {"swap": "disabled"}),
        ([EN, PT], [], [], [["target", "en"]], {"swap": "disabled"}),
        ([ANY], [], [], [], {"wanted": {}, "targets": [""], "pair": ["en", "pt"], "either": True}),
        ([EN, ANY], [], [], [["source", "auto"]], {"wanted": {"source": "auto"}, "swap": "hidden", "either": True}),
        ([EN], MORE, [], [], {"sources": ["en", "fr"], "targets": ["", "pt", "zh", "de", "en"]}),
        ([EN], MORE, [["en", "de"], ["fr", "en"]], [], {"targets": ["de", "en", "", "pt", "zh"]}),
        ([EN], MORE, [["fr", "en"], ["en", "de"]], [], {"sources": ["fr", "en"]}),
        ([EN], MORE, [["xx", "yy"]], [["source", "fr"], ["use"]], {"recent": [["fr", "en"], ["xx", "yy"]]}),
        ([EN, PT], [], [], [["restore", {"source": "pt", "targets": ["en"]}]], {"wanted": {"source": "pt", "targets": ["en"]}}),
        ([EN, PT], [], [], [["target", "zh"], ["restore", {}]], {"wanted": {"source": "en"}}),
    ],
)  # fmt: skip
def test_what_is_chosen_in_the_menus_of_languages(languages, offered, recent, steps, found, runner, page):
    answer = runner.run(page.evaluate(CHOICE, [languages, offered, recent, steps]))
    assert {key: answer[key] for key in found} == found


@pytest.mark.parametrize(
    ("address", "locale", "language"),
    [
        ("", "zh-TW", "zh"),
        ("", "en-GB", ""),
        ("?language=he", "zh-CN", "he"),
        ("?language=", "zh-CN", ""),
        ("?language=de", "zh-CN", "zh"),
    ],
)
async def test_a_reader_gets_the_language_of_the_address_else_of_the_browser_else_all(
    address, locale, language, browser
):
    async with page_of_files(browser, f"/view/x{address}", SAID, locale=locale) as opened:
        await opened.wait_for_selector("#text article")
        assert await opened.locator("#language").evaluate("(select) => select.value") == language


@pytest.mark.parametrize(
    ("events", "language", "live", "problem"),
    [
        ([*SAID, Paused(9.0)], "zh", "no", False),
        ([*SAID, TranslationLost("zh", "full")], "zh", "yes", True),
        ([*SAID, TranslationLost("zh", "full")], "he", "yes", False),
        ([*SAID, TranslationLost("zh", "full")], "", "yes", True),
    ],
)
async def test_a_reader_who_comes_late_is_told_of_a_pause_and_of_the_loss_of_its_language(
    events, language, live, problem, browser
):
    async with page_of_files(browser, f"/view/x?language={language}", events) as opened:
        await opened.wait_for_selector("#text article")
        assert await opened.get_attribute("body", "data-live") == live
        assert await opened.locator("#problem").is_visible() is problem
        assert await opened.locator("#spoken p").count() == 0  # a screen reader begins with what is new
