"""Every consumer of a stream ends up with the same texts, in whatever states they come and however these interleave."""

import html
import io
import itertools
import json
import tempfile
import threading
from collections.abc import Iterable, Sequence
from pathlib import Path

import pysubs2
import pytest
import srt
import webvtt
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from pipeline.core.captions.states import OpenTexts, State
from pipeline.events import PipelineEvent
from pipeline.media.latency.emissions import unit_of, units
from pipeline.media.sinks.ass import AssSink
from pipeline.media.sinks.cue_file import CueSink
from pipeline.media.sinks.jsonl import JsonlSink, read_event
from pipeline.media.sinks.latency_log import open_latency_log
from pipeline.media.sinks.queued import Delivery, QueuedSink
from pipeline.media.sinks.sink import Sink
from pipeline.media.sinks.srt import SrtSink
from pipeline.media.sinks.terminal import TerminalSink
from pipeline.media.sinks.txt import TextSink
from pipeline.media.sinks.vtt import VttSink
from pipeline.media.subtitles.rules import SubtitleRules
from pipeline.media.subtitles.text import normalized
from tests.conftest import examples
from tests.media.sinks.test_files import flat, unmarked
from tests.media.subtitles.strategies import CHINESE, ENGLISH, RIGHT_TO_LEFT
from tests.streams import states, streams

LANGUAGES = ("zh", "de")
RULES = SubtitleRules()

Texts = dict[tuple[int, str], str]
"""(sentence, language) → text; the source is in English."""


def written(sink: Sink, events: Iterable[PipelineEvent]) -> None:
    for event in events:
        sink.write(event)
    sink.close()


def newest(events: Iterable[PipelineEvent]) -> Texts:
    """The newest state of each text."""
    texts, found = OpenTexts(), Texts()
    for event in events:
        if isinstance(event, State):
            texts.push(event)
            found[event.sentence, event.language] = event.text
    return found


def in_jsonl(path: Path, events: Sequence[PipelineEvent]) -> tuple[Texts, dict[str, str]]:
    """The texts of the events read back, and those of the cues of each language."""
    written(JsonlSink(path, RULES, languages=LANGUAGES), events)
    records = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    cues = {
        language: "".join("".join(r["lines"]) for r in records if r["type"] == "cue" and r["language"] == language)
        for language in LANGUAGES
    }
    return newest(states(event for record in records if (event := read_event(record)) is not None)), cues


def in_files(folder: Path, events: Sequence[PipelineEvent], language: str) -> dict[str, str]:
    """The translation as other programs read it from each subtitle file."""
    kinds: dict[str, type[CueSink | TextSink]] = {"srt": SrtSink, "vtt": VttSink, "ass": AssSink, "txt": TextSink}
    paths = {kind: folder / f"out.{language}.{kind}" for kind in kinds}
    for kind, sink in kinds.items():
        written(sink(paths[kind], RULES, languages=[language]), events)
    return {
        "srt": "".join(cue.content for cue in srt.parse(paths["srt"].read_text("utf-8"))),
        "vtt": html.unescape("".join(cue.raw_text for cue in webvtt.read(str(paths["vtt"])).captions)),
        "ass": "".join(line.plaintext for line in pysubs2.load(str(paths["ass"]), encoding="utf-8", format_="ass")),
        "txt": paths["txt"].read_text("utf-8"),
    }


def in_terminal(events: Sequence[PipelineEvent]) -> Texts:
    """The texts as printed into a pipe."""
    file = io.StringIO()
    written(TerminalSink(Console(file=file), LANGUAGES), events)
    return printed(file.getvalue())


def printed(text: str) -> Texts:
    """The texts of sentences that a ``TerminalSink`` printed, numbered in their order."""
    found, number = Texts(), -1
    for line in text.splitlines():
        head, text = line[:17], line[17:]
        if head.strip():
            number += 1
            found[number, "en"] = text
        else:
            language, _, text = text.partition(": ")
            found[number, language] = text
    return found


def in_simulstreams_log(path: Path, events: Sequence[PipelineEvent], language: str, *, final: bool) -> str:
    """Read as simulstream does: what is deleted must be the newest tokens."""
    log = open_latency_log(path, unit_of(language), language, final=final)
    log.start("talk.wav", lambda: 1000.0)
    written(log, events)
    tokens: list[str] = []
    for line in map(json.loads, path.read_text("utf-8").splitlines()[1:]):
        deleted = len(line["deleted_tokens"])
        assert line["deleted_tokens"] == tokens[len(tokens) - deleted :]
        tokens[len(tokens) - deleted :] = line["generated_tokens"]
    return "".join(tokens).replace("▁", " ")


def in_simulevals_log(path: Path, events: Sequence[PipelineEvent], language: str, *, final: bool) -> str:
    log = open_latency_log(path, unit_of(language), language, final=final)
    log.start("talk.wav", lambda: 1000.0)
    written(log, events)
    prediction = json.loads(path.read_text("utf-8"))["prediction"]
    assert isinstance(prediction, str)
    return prediction


def plain(text: str) -> str:
    """``text`` without blanks, line ends and direction marks."""
    return unmarked(flat(text))


@settings(max_examples=examples(40))
@given(streams(st.one_of(ENGLISH, CHINESE, RIGHT_TO_LEFT), LANGUAGES))
def test_every_consumer_ends_up_with_the_same_texts(stream):
    expected = {(number, "en"): text for number, text in stream.sources.items()} | stream.translations
    joined = {
        language: "".join(expected[number, language] for number in sorted(stream.sources)) for language in LANGUAGES
    }
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        texts, cues = in_jsonl(folder / "out.jsonl", stream.events)
        assert newest(stream.events) == texts == expected
        terminal = in_terminal(stream.events)
        assert {key: plain(text) for key, text in terminal.items()} == {key: plain(expected[key]) for key in expected}
        for language, text in joined.items():
            shown = plain(normalized(text))
            assert plain(cues[language]) == shown
            for kind, found in in_files(folder, stream.events, language).items():
                assert plain(found) == shown, kind
            unit = unit_of(language)
            said = units(" ".join(expected[number, language] for number in sorted(stream.sources)), unit)
            for final in (False, True):
                log, line = (folder / f"{language}-{final}{suffix}" for suffix in (".jsonl", ".log"))
                assert units(in_simulstreams_log(log, stream.events, language, final=final), unit) == said
                assert units(in_simulevals_log(line, stream.events, language, final=final), unit) == said


@pytest.mark.slow
@settings(max_examples=examples(300))
@given(
    streams(st.sampled_from(["One.", "Two three.", "四五。"]), LANGUAGES),
    st.lists(st.integers(0, 3), min_size=1),
    st.sampled_from([2, 6, 1000]),
)
def test_a_terminal_that_is_slow_or_stopped_ends_up_with_the_same_texts(stream, taken, capacity):
    """After each event the terminal takes as many as the next number says; 0 is a stopped one. No other text than that of
    sentences that are counted as dropped is missing."""
    file, gate = io.StringIO(), threading.Semaphore(0)
    terminal = TerminalSink(Console(file=file), LANGUAGES)

    def show(event: PipelineEvent) -> None:
        gate.acquire()
        terminal.write(event)

    display = QueuedSink(show, Delivery.LATEST, capacity)
    for event, count in zip(stream.events, itertools.cycle(taken), strict=False):
        display.write(event)
        for _ in range(count):
            gate.release()
    for _ in stream.events:
        gate.release()
    display.drain()
    display.close()
    expected = {(number, "en"): text for number, text in stream.sources.items()} | stream.translations
    shown = printed(file.getvalue())
    whole = sum(all(shown.get((number, each)) for each in ("en", *LANGUAGES)) for number in stream.sources)
    assert whole >= len(stream.sources) - display.dropped
    assert display.dropped or shown == expected
