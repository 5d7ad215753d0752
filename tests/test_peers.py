"""What users of comparable software hit, at the level of the whole chain: none of it happens here.

The same cases a level below are with the stages: short and unspaced sentences in tests/nmt/test_sentences.py, loops and
inventions in tests/asr, first and last words in tests/vad, delay in tests/test_overload.py.
"""

from __future__ import annotations

import asyncio
import io
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import srt
from rich.console import Console

from pipeline import Delta, EndOfInput, Models, NmtStage, PipelineConfig, PipelineEvent, SpeechTranslator, Transcript
from pipeline.bench.errors import units
from pipeline.events import Samples, SpeechSegment
from pipeline.nmt.model import MarianModel
from pipeline.run.stats import PipelineStats
from pipeline.sinks.srt import SrtSink
from pipeline.sinks.terminal import TerminalSink
from pipeline.subtitles.rules import SubtitleRules
from tests.conftest import EXAMPLES, HANG_S, PHRASES, ROOT, SHIPPED_TRANSLATORS, read_wav


def chain(config: PipelineConfig, models: Models, *parts: Samples) -> list[PipelineEvent]:
    """The events of a run over the parts, one after the other."""

    async def work() -> list[PipelineEvent]:
        async with SpeechTranslator(config, models) as translator:
            reading = asyncio.create_task(collect(translator))
            for part in parts:
                await translator.feed(part)
            await translator.end()
            return await reading

    async def collect(translator: SpeechTranslator) -> list[PipelineEvent]:
        return [event async for event in translator.events()]

    return asyncio.run(work())


def texts(events: list[PipelineEvent]) -> list[str]:
    return [event.text for event in events if isinstance(event, Transcript)]


def translated(model: MarianModel, text: str, language: str, target: str) -> list[Delta]:
    """The stage's deltas for one transcript."""

    async def work() -> list[Delta]:
        inbox: asyncio.Queue[Transcript | EndOfInput] = asyncio.Queue()
        outbox: asyncio.Queue[PipelineEvent] = asyncio.Queue()
        inbox.put_nowait(Transcript(0, 0.0, 1.0, text, language))
        inbox.put_nowait(EndOfInput(1.0))
        await NmtStage(model, inbox, outbox, target=target).run()
        items = [outbox.get_nowait() for _ in range(outbox.qsize())]
        return [item for item in items if isinstance(item, Delta)]

    return asyncio.run(work())


@pytest.mark.parametrize("text", ["Yes.", "Thank you.", "No", "OK!"])
def test_an_utterance_of_a_word_or_two_is_translated(text: str, demo_models: Models) -> None:
    deltas = translated(demo_models.translations["zh"], text, "en", "zh")
    assert deltas[-1].final
    assert "".join(delta.text for delta in deltas).strip()


def test_text_without_spaces_is_translated_sentence_by_sentence() -> None:
    model = MarianModel.load(SHIPPED_TRANSLATORS["demo-zh-en"])
    deltas = translated(model, "你好。我们明天去北京。谢谢", "zh", "en")
    assert [delta.source for delta in deltas if delta.end_of_sentence] == ["你好。", "我们明天去北京。", "谢谢"]


def test_an_abbreviation_and_a_decimal_point_end_no_sentence(demo_models: Models) -> None:
    deltas = translated(demo_models.translations["zh"], "Mr. Lee pays 3.5 dollars. Thank you.", "en", "zh")
    assert [d.source for d in deltas if d.end_of_sentence] == ["Mr. Lee pays 3.5 dollars.", "Thank you."]


def test_speech_from_the_first_sample_to_the_last_is_translated(
    demo_config: PipelineConfig, demo_models: Models
) -> None:
    """No silence before the first word nor after the last: the end of the input delivers the segment."""
    whole = chain(demo_config, demo_models, read_wav(EXAMPLES / "travel.wav"))
    first = next(event for event in whole if isinstance(event, Transcript))
    speech = read_wav(EXAMPLES / "travel.wav")[: round(first.end_s * 16_000)]
    loud = np.flatnonzero(np.abs(speech) > 500)
    events = chain(demo_config, demo_models, speech[loud[0] : loud[-1]])
    assert [units(text, "en") for text in texts(events)] == [units(first.text, "en")]
    assert any(isinstance(event, Delta) and event.final for event in events)


def test_after_a_long_silence_all_goes_on_as_before(demo_config: PipelineConfig, demo_models: Models) -> None:
    speech, silence = read_wav(PHRASES)[: 16_000 * 9], np.zeros(16_000 * 120, np.int16)
    once = chain(demo_config, demo_models, speech, silence)
    twice = chain(demo_config, demo_models, speech, silence, speech, silence[: 16_000 * 2])
    before = [event for event in once if isinstance(event, Transcript)]
    after = [event for event in twice if isinstance(event, Transcript)][len(before) :]
    assert [units(event.text, "en") for event in after] == [units(event.text, "en") for event in before]
    assert [event.language for event in after] == [event.language for event in before]
    finals = [event.segment_id for event in twice if isinstance(event, Delta) and event.final]
    assert set(finals) >= {event.segment_id for event in after if event.rejected is None} != set()


def test_text_that_was_shown_never_changes(demo_config: PipelineConfig, demo_models: Models) -> None:
    events = chain(demo_config, demo_models, read_wav(PHRASES))
    deltas = [event for event in events if isinstance(event, Delta)]
    assert deltas
    assert all(delta.withdrawn == 0 for delta in deltas)
    # A sentence grows only while it is the newest one, and not after its end.
    order = [(delta.segment_id, delta.sentence) for delta in deltas]
    assert order == sorted(order)
    assert all(
        delta.end_of_sentence == (here != after)
        for delta, here, after in zip(deltas, order, [*order[1:], None], strict=True)
    )


def test_what_was_said_before_does_not_leak_into_what_is_heard(demo_models: Models) -> None:
    speech = read_wav(PHRASES)[: 16_000 * 5]
    again = SpeechSegment(7, 0, speech)
    alone = demo_models.recognizer.transcribe(again)
    for number in range(3):
        noise = np.random.default_rng(number).normal(0, 800, 16_000 * 3).astype(np.int16)
        demo_models.recognizer.transcribe(SpeechSegment(number, 0, noise))
    assert demo_models.recognizer.transcribe(again) == alone


def test_a_long_run_holds_no_more_and_keeps_its_first_line(tmp_path: Path) -> None:
    """More than a thousand segments through what counts and what shows: history is in the file alone."""
    stats = PipelineStats()
    console = Console(file=io.StringIO(), width=60)
    sinks = [SrtSink(tmp_path / "out.srt", SubtitleRules()), TerminalSink(console)]
    sizes = []
    for number in range(1_300):
        start_s = 3.0 * number
        stats.segment_closed(SpeechSegment(number, number * 48_000, np.zeros(0, np.int16)))
        events: list[PipelineEvent] = [
            Transcript(number, start_s, start_s + 2, f"Sentence {number}.", "en"),
            Delta(number, 0, start_s, start_s + 2, f"句子{number}。", -0.1, 5, f"Sentence {number}."),
            Delta(
                number, 0, start_s, start_s + 2, "", -0.1, 0, f"Sentence {number}.", end_of_sentence=True, final=True
            ),
        ]
        for event in events:
            if isinstance(event, Delta):
                stats.token(number)
            stats.delivered(event)
            for sink in sinks:
                sink.write(event)
        sizes.append(
            sum(len(vars(stats)[name]) for name in ("_closed_at", "_pending_end_s", "busy_s", "first_token_s"))
        )
    for sink in sinks:
        sink.close()
    assert sizes[-1] == sizes[1_100] <= 1_000
    cues = list(srt.parse((tmp_path / "out.srt").read_text("utf-8")))
    assert len(cues) == 1_300
    assert cues[0].content == "句子0。"


def test_the_demo_opens_no_connection() -> None:
    program = """
import socket, sys
def refused(*_, **__):
    raise SystemExit("a connection was opened")
socket.socket.connect = socket.create_connection = socket.getaddrinfo = refused
from pipeline.apps.live import run
sys.exit(run([sys.argv[1], "--config", "demo", "--fast"]))
"""
    done = subprocess.run(
        [sys.executable, "-c", program, str(EXAMPLES / "travel.wav")],
        cwd=ROOT, capture_output=True, timeout=HANG_S, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr.decode()
    assert any("\u4e00" <= character <= "\u9fff" for character in done.stdout.decode())
