"""A recogniser that emits partial text itself, in the stage and in the whole chain."""

import math
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from pipeline import PartialText, RecognitionOptions, SourceSentence, SourceText, Translation
from pipeline.core.asr.recognizer import StreamedSegments
from pipeline.events import SAMPLE_RATE, Word
from pipeline.media.audio.recording import Recording
from tests.chain import events_of
from tests.conftest import HANG_S, PHRASES, ROOT, read_wav
from tests.core.asr.test_stage import OFTEN, finals, growing, grown, run, run_live, so_far
from tests.core.vad.test_stage import cut
from tests.drafting import Pace, Steady, chunks

# What speaks to recognisers through their interface.
SPEAKING = ("context", "final", "groups", "language_segmenter", "live.drafts", "recognizer", "stage")
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


def test_a_stream_is_fed_with_what_is_new_in_its_segment(segments):
    recognizer = WordByWord()
    streamed, options = StreamedSegments(recognizer), RecognitionOptions()
    first, second, _ = segments
    for part in growing(first)[:-1]:
        draft = streamed.draft(part.segment, options)
        assert draft.steady_words == max(0, len(draft.words) - 1)
    found = streamed.transcribe([first, second], options)
    assert [each.text for each in found] == [text_of(first), text_of(second)]
    assert found[1].words[0].start_s == second.start_s
    assert [sum(stream.fed) for stream in recognizer.streams] == [len(first.samples), len(second.samples)]
    streamed.draft(first, options)
    shorter = replace(first, samples=first.samples[:SAMPLE_RATE])
    assert [each.text for each in streamed.transcribe([shorter], options)] == [text_of(shorter)]  # more had been heard
    (silent,) = streamed.transcribe([replace(first, samples=np.zeros(100, np.int16))], options)
    assert silent.rejected == "empty"


def test_words_that_the_recogniser_calls_stable_are_steady_at_once(segments):
    recognizer = WordByWord()
    streamed = StreamedSegments(recognizer)
    found, _ = run_live(streamed, grown(segments), drafts=OFTEN)
    assert finals(found) == finals(run(StreamedSegments(WordByWord()), segments))
    assert [each.text for each in finals(found)] == [text_of(segment) for segment in segments]
    drafts = [each[-1] for each in so_far(found)]
    assert len(drafts) >= 9
    assert all(each.steady_words >= len(each.words) - 1 for each in drafts)
    assert any(each.text.endswith("wear") for each in drafts)


def test_a_stream_that_fails_costs_its_segment(segments):
    failed, after = finals(run(StreamedSegments(WordByWord(fails_at=0)), segments[:2], single=True))
    assert (failed.rejected, after.text) == ("failed", text_of(segments[1]))


def test_a_stream_that_fails_in_a_pause_costs_nothing(segments):
    found, _ = run_live(StreamedSegments(WordByWord(fails_at=0)), grown(segments[:2]), single=True, drafts=OFTEN)
    assert [each.text for each in finals(found)] == list(map(text_of, segments[:2]))


def test_the_chain_shows_and_translates_what_a_stream_has_heard(demo_config, demo_models, monkeypatch):
    recognizer = WordByWord()
    models = replace(demo_models, recognizer=recognizer)
    events = events_of(demo_config, models, Steady(chunks(read_wav(PHRASES)), Pace(monkeypatch)), live=True)
    sentences = [event for event in events if isinstance(event, SourceSentence)]
    assert len(sentences) > 3
    assert [event.text for event in sentences].count("Where is it?") > 3
    assert sum(isinstance(event, Translation) for event in events) == len(sentences)
    before = [event for event in events[: events.index(sentences[0])] if isinstance(event, SourceText)]
    assert max(event.steady for event in before) > 0
    assert any("wear" in event.text for event in events if isinstance(event, SourceText))
    assert not any("wear" in event.text for event in sentences)


def test_a_recording_has_the_text_of_whole_segments(demo_config, demo_models):
    models = replace(demo_models, recognizer=WordByWord())
    events = events_of(demo_config, models, Recording(PHRASES), live=False)
    assert [each.text for each in finals(events)] == [text_of(one) for one in cut(read_wav(PHRASES), 1600)]


def test_the_interface_of_recognisers_imports_no_engine():
    modules = ", ".join(f"pipeline.core.asr.{name}" for name in SPEAKING)
    engines = '{"ctranslate2", "faster_whisper", "onnxruntime", "pipeline.backends.whisper"}'
    code = f"import sys, {modules}; print(sorted({engines} & sys.modules.keys()))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=HANG_S)
    assert (done.stdout, done.stderr) == ("[]\n", "")
