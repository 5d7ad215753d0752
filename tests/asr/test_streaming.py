"""A recogniser that emits partial text itself, in the stage and in the whole chain."""

import math
import subprocess
import sys
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from pipeline import PartialText, RecognitionOptions, SourceSentence, SourceText, Transcript, Translation
from pipeline.asr.context import Context
from pipeline.asr.recognizer import StreamedSegments
from pipeline.audio.recording import Recording
from pipeline.events import SAMPLE_RATE, TranscriptSoFar, Word
from pipeline.run.options import DraftOptions
from tests.asr.test_stage import growing, run, run_live
from tests.chain import events_of
from tests.conftest import HANG_S, PHRASES, ROOT, read_wav
from tests.drafting import Pace, Steady, chunks
from tests.vad.test_stage import cut

# What speaks to recognisers through their interface.
SPEAKING = ("context", "drafting", "drafts", "language_segmenter", "recognizer", "stage")
SAID = ("Where", "is", "it?")


class WordByWord:
    """Hears a word of ``SAID`` in each half second; what it hears of the newest half second is a guess."""

    def __init__(self, fails_at=-1):
        self.streams = []
        self.fails_at = fails_at
        """The stream whose end fails."""

    def open(self, options):
        self.streams.append(Stream(fails=len(self.streams) == self.fails_at))
        return self.streams[-1]


class Stream:
    def __init__(self, *, fails):
        self.fed = []
        """Samples of each call."""
        self.ended, self._fails = False, fails

    def feed(self, samples):
        assert not self.ended
        self.fed.append(len(samples))
        length_s = sum(self.fed) / SAMPLE_RATE
        words = spoken(length_s)
        guess = [Word(" wear", words[-1].end_s, length_s)] if words else []
        return PartialText([*words, *guess], len(words), "en")

    def finish(self):
        if self._fails:
            raise OSError("connection refused")
        self.ended = True
        words = spoken(sum(self.fed) / SAMPLE_RATE)
        return PartialText(words, len(words), "en")


def spoken(length_s):
    return [Word(f" {SAID[at % len(SAID)]}", at / 2, at / 2 + 0.5) for at in range(math.floor(2 * length_s))]


@pytest.fixture(scope="module")
def segments():
    return cut(read_wav(PHRASES), 1600)[:3]


def text_of(segment):
    return "".join(word.text for word in spoken(len(segment.samples) / SAMPLE_RATE)).strip()


def transcripts(found):
    return [each for each in found if isinstance(each, Transcript)]


def committed(found, number):
    """The texts committed so far in a segment, one for each event."""
    states = [each.transcript if isinstance(each, TranscriptSoFar) else each for each in found]
    return [
        "".join(word.text for word in state.words[: state.committed_words])
        for state in states
        if isinstance(state, Transcript) and state.segment_id == number and state.rejected is None
    ]


def test_a_stream_is_fed_with_what_is_new_in_its_segment(segments):
    recognizer = WordByWord()
    streamed, options = StreamedSegments(recognizer), RecognitionOptions()
    first, second, _ = segments
    for part in growing(first)[:-1]:
        draft = streamed.draft(part.segment, options)
        assert draft.committed_words == max(0, len(draft.words) - 1)
    found = streamed.transcribe([first, second], options)
    assert [each.text for each in found] == [text_of(first), text_of(second)]
    assert found[1].words[0].start_s == second.start_s
    assert [sum(stream.fed) for stream in recognizer.streams] == [len(first.samples), len(second.samples)]
    streamed.draft(first, options)
    shorter = replace(first, samples=first.samples[:SAMPLE_RATE])
    assert [each.text for each in streamed.transcribe([shorter], options)] == [text_of(shorter)]  # more had been heard
    (silent,) = streamed.transcribe([replace(first, samples=np.zeros(100, np.int16))], options)
    assert silent.rejected == "empty"


def test_words_that_the_recogniser_calls_stable_are_committed_at_once(segments):
    recognizer = WordByWord()
    items = [item for segment in segments for item in (*growing(segment), segment)]
    found = run_live(recognizer, items, context=Context(8_000, 2_000), drafts=DraftOptions(every_ms=300))
    assert [each.text for each in transcripts(found)] == [text_of(segment) for segment in segments]
    assert [sum(stream.fed) for stream in recognizer.streams] == [len(segment.samples) for segment in segments]
    for segment in segments:
        states = committed(found, segment.id)
        assert len(states) >= 3
        assert all(after.startswith(before) for before, after in pairwise(states))
    drafts = [each.transcript for each in found if isinstance(each, TranscriptSoFar)]
    assert all(each.committed_words >= len(each.words) - 1 for each in drafts)
    assert any(each.text.endswith("wear") for each in drafts)
    assert not any("wear" in each for segment in segments for each in committed(found, segment.id))


def test_joined_segments_and_those_of_a_stage_without_drafts_have_a_stream_each(segments):
    for options in ({"join_ms": lambda: 19_000}, {}):
        recognizer = WordByWord()
        found = run(recognizer, segments, **options)
        assert [each.text for each in transcripts(found)] == [text_of(segment) for segment in segments]
        assert len(recognizer.streams) == 3


def test_words_beyond_a_cut_are_in_the_next_segment(segments):
    first, *_ = segments
    at = 16 * SAMPLE_RATE // 10  # three words and a bit
    end = first.start_sample + at
    left = replace(first, samples=first.samples[:at], forced_cut=True, speech_end_sample=end)
    right = replace(first, id=1, start_sample=end, samples=first.samples[at:])
    recognizer = WordByWord()
    found = run_live(recognizer, [*growing(first)[:-1], left, right], drafts=DraftOptions(every_ms=300))
    one, two = transcripts(found)
    assert (one.text, one.committed_words) == ("Where is it?", 3)
    assert two.text.startswith("Where")  # was committed before the cut
    assert two.committed_words > 0


def test_a_stream_that_fails_costs_what_is_not_committed(segments):
    recognizer = WordByWord(fails_at=0)
    first, second, _ = segments
    found = run_live(recognizer, [*growing(first), first, second], drafts=DraftOptions(every_ms=300))
    shown, failed, after = transcripts(found)
    assert shown.text
    assert shown.text == committed(found, 0)[-1].strip()
    assert (failed.rejected, after.text) == ("failed", text_of(second))


def test_the_chain_shows_and_translates_what_a_stream_has_heard(demo_config, demo_models, monkeypatch):
    recognizer = WordByWord()
    models = replace(demo_models, recognizer=recognizer)
    events = events_of(demo_config, models, Steady(chunks(read_wav(PHRASES)), Pace(monkeypatch)), live=True)
    sentences = [event for event in events if isinstance(event, SourceSentence)]
    assert len(sentences) > 3
    assert [event.text for event in sentences].count("Where is it?") > 3
    assert sum(isinstance(event, Translation) for event in events) == len(sentences)
    before = [event for event in events[: events.index(sentences[0])] if isinstance(event, SourceText)]
    assert max(event.committed for event in before) > 0
    assert any("wear" in event.text for event in events if isinstance(event, SourceText))
    assert not any("wear" in event.text for event in sentences)
    assert len(recognizer.streams) == len({event.segment_id for event in events if isinstance(event, Transcript)})


def test_a_recording_has_the_text_of_whole_segments(demo_config, demo_models):
    models = replace(demo_models, recognizer=WordByWord())
    events = events_of(demo_config, models, Recording(PHRASES), live=False)
    assert [each.text for each in transcripts(events)] == [text_of(one) for one in cut(read_wav(PHRASES), 1600)]


def test_the_interface_of_recognisers_imports_no_engine():
    modules = ", ".join(f"pipeline.asr.{name}" for name in SPEAKING)
    engines = '{"ctranslate2", "faster_whisper", "onnxruntime", "pipeline.asr.whisper"}'
    code = f"import sys, {modules}; print(sorted({engines} & sys.modules.keys()))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=HANG_S)
    assert (done.stdout, done.stderr) == ("[]\n", "")
