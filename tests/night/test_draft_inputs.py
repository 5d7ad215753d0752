"""An hour of silence in the middle of a sentence of a live run with drafts."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from pipeline import SourceSentence, SourceText, Transcript
from pipeline.bench.processes import resident_mb
from pipeline.bench.words import edits, scored_units
from pipeline.events import SAMPLE_RATE
from tests.conftest import PHRASES, read_wav
from tests.drafting import Steady, chunks
from tests.test_draft_inputs import of, pace, run

__all__ = ["pace"]


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="this system does not tell the resident memory")
def test_an_hour_of_silence_in_a_sentence_ends_it(demo_config, demo_models, pace):
    speech = read_wav(PHRASES)
    at, hour = 2 * SAMPLE_RATE, 3_600 * SAMPLE_RATE  # in the middle of the first sentence
    silence = np.zeros(4 * SAMPLE_RATE, np.int16)
    said = [chunks(speech[:at]), [silence] * (hour // len(silence)), chunks(speech[at : 8 * SAMPLE_RATE])]
    memory_mb = []
    ended_s = []

    def look(so_far):
        if so_far in (at + hour // 60, at + hour):
            memory_mb.append(resident_mb())

    def ended(event):
        if isinstance(event, SourceSentence):
            ended_s.append(source.said / SAMPLE_RATE)

    source = Steady([chunk for part in said for chunk in part], pace, look)
    events, _ = run(demo_config, demo_models, source, at_event=ended)
    first, second = of(events)[:2]
    assert ended_s[0] <= 2 + 4 + 4, "the long pause ends the sentence, not what is said after it"
    assert memory_mb[1] - memory_mb[0] < 20, "an hour of samples is 115 MB"
    assert scored_units(first.text, "en")[:3] == scored_units("The plane from", "en")
    assert edits(scored_units(second.text, "en"), scored_units("arrives at seven o'clock in the evening", "en")) <= 1
    assert (first.end_s, second.start_s, second.end_s) == pytest.approx((2.0, 3602.0, 3604.24), abs=0.3)
    assert all(before.end_s <= after.start_s + 0.001 for before, after in pairwise(second.words))
    transcript = next(event for event in events if isinstance(event, Transcript) and event.start_s > 3_600)
    drafts = events[: events.index(transcript)]
    assert sum(isinstance(event, SourceText) and event.sentence == 1 for event in drafts) >= 3
