"""What users of comparable software hit, at the level of the whole chain: none of it happens here.

The same cases a level below are with the stages: short and unspaced sentences in tests/core/sentences, loops and inventions in
tests/core/asr, first and last words in tests/core/vad, delay in tests/core/run/test_overload.py.
"""

import asyncio
import io

import numpy as np
import pytest
import srt
from rich.console import Console

from pipeline import SourceSentence, SpeechTranslator, TargetText, Transcript, Translation
from pipeline.bench.words import scored_units
from pipeline.core.run.stats import PipelineStats
from pipeline.events import SpeechSegment
from pipeline.media.sinks.srt import SrtSink
from pipeline.media.sinks.terminal import TerminalSink
from pipeline.media.subtitles.rules import SubtitleRules
from tests.conftest import EXAMPLES, PHRASES, read_wav
from tests.streams import spoken, translated


def chain(config, models, *parts, live=False):
    """The events of a run over the parts, one after the other."""

    async def work():
        async with SpeechTranslator(config, models, live=live) as translator:
            reading = asyncio.create_task(collect(translator))
            for part in parts:
                await translator.feed(part)
            await translator.end()
            return await reading

    async def collect(translator):
        return [event async for event in translator.events()]

    return asyncio.run(work())


def texts(events):
    return [event.text for event in events if isinstance(event, Transcript)]


@pytest.mark.slow
def test_speech_from_the_first_sample_to_the_last_is_translated(demo_config, demo_models):
    """No silence before the first word nor after the last: the end of the input delivers the segment."""
    whole = chain(demo_config, demo_models, read_wav(EXAMPLES / "travel.wav"))
    first = next(event for event in whole if isinstance(event, Transcript))
    speech = read_wav(EXAMPLES / "travel.wav")[: round(first.end_s * 16_000)]
    loud = np.flatnonzero(np.abs(speech) > 500)
    events = chain(demo_config, demo_models, speech[loud[0] : loud[-1]])
    assert [scored_units(text, "en") for text in texts(events)] == [scored_units(first.text, "en")]
    assert any(isinstance(event, Translation) and event.text for event in events)


@pytest.mark.slow
def test_after_a_long_silence_all_goes_on_as_before(demo_config, demo_models):
    speech, silence = read_wav(PHRASES)[: 16_000 * 52 // 5], np.zeros(16_000 * 120, np.int16)
    once = chain(demo_config, demo_models, speech, silence)
    twice = chain(demo_config, demo_models, speech, silence, speech, silence[: 16_000 * 2])
    before = [event for event in once if isinstance(event, Transcript)]
    after = [event for event in twice if isinstance(event, Transcript)][len(before) :]
    assert [scored_units(event.text, "en") for event in after] == [scored_units(event.text, "en") for event in before]
    assert [event.language for event in after] == [event.language for event in before]
    said = [event.text for event in after if event.rejected is None]
    ended = [event for event in twice if isinstance(event, SourceSentence) and event.start_s > 120]
    assert scored_units(" ".join(sentence.text for sentence in ended), "en") == scored_units(" ".join(said), "en") != []
    translated_ids = [event.sentence for event in twice if isinstance(event, Translation)]
    assert translated_ids == [event.sentence for event in twice if isinstance(event, SourceSentence)]


@pytest.mark.slow
def test_what_was_said_before_does_not_leak_into_what_is_heard(demo_models):
    speech = read_wav(PHRASES)[: 16_000 * 5]
    again = SpeechSegment(7, 0, speech)
    alone = demo_models.recognizer.transcribe([again])[0]
    for number in range(3):
        noise = np.random.default_rng(number).normal(0, 800, 16_000 * 3).astype(np.int16)
        demo_models.recognizer.transcribe([SpeechSegment(number, 0, noise)])
    assert demo_models.recognizer.transcribe([again])[0] == alone


def test_a_long_run_holds_no_more_and_keeps_its_first_line(tmp_path):
    """More than a thousand segments through what counts and what shows: history is in the file alone."""
    stats = PipelineStats()
    console = Console(file=io.StringIO(), width=60)
    terminal = TerminalSink(console, ["zh"])
    sinks = [SrtSink(tmp_path / "out.srt", SubtitleRules()), terminal]
    sizes = []
    for number in range(1_300):
        start_s = 3.0 * number
        stats.segment_closed(SpeechSegment(number, number * 48_000, np.zeros(32_000, np.int16)))
        heard_s = start_s + 2
        events = [
            Transcript(number, start_s, heard_s, f"Sentence {number}.", "en", heard_s=heard_s),
            *spoken(number, f"Sentence {number}.", start_s, heard_s),
            *translated(number, ["句子", f"{number}。"], heard_s=heard_s),
        ]
        for event in events:
            if isinstance(event, TargetText):
                stats.token(event.heard_s)
            stats.delivered(event)
            for sink in sinks:
                sink.write(event)
        sizes.append((len(stats._pending), len(stats.first_token_s), len(terminal._open)))
    for sink in sinks:
        sink.close()
    assert sizes[-1] == sizes[1_100] == (0, 1_000, 0)
    cues = list(srt.parse((tmp_path / "out.srt").read_text("utf-8")))
    assert len(cues) == 1_300
    assert cues[0].content == "句子0。"
