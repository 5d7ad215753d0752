"""Statistics are counted on several threads at once, and the lag of a room where nobody speaks does not grow."""

import sys
import threading
import time
from collections.abc import Iterator

import numpy as np
import pytest

from pipeline.events import SourceSentence, SpeechSegment, Transcript
from pipeline.run.stats import PipelineStats

_BLOCKS = 1_000


@pytest.fixture
def frequent_switches() -> Iterator[None]:
    """Threads are switched as often as possible."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


@pytest.mark.usefixtures("frequent_switches")
def test_the_working_time_of_several_languages_adds_up():
    """Their threads count it as that of one stage. By each thread's clock, every block takes one second."""
    stats, own = PipelineStats(), threading.local()

    def clock() -> float:
        time.sleep(0)  # lets the other thread run
        own.now = getattr(own, "now", 0.0) + 1.0
        return float(own.now)

    def work() -> None:
        for _ in range(_BLOCKS):
            with stats.busy("nmt"):
                pass

    stats.clock = clock
    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert stats.busy_s == {"nmt": 2.0 * _BLOCKS}


def test_sentences_that_may_be_misheard_are_counted():
    stats = PipelineStats()
    for number, uncertain in enumerate((False, True, True)):
        stats.delivered(SourceSentence(number, "en", "Yes.", uncertain=uncertain))
    assert "may be misheard, marked as uncertain: 2" in stats.summary()
    assert "misheard" not in PipelineStats().summary()


def test_segments_that_are_rejected_together_leave_no_lag_behind():
    now_s = 0.0
    stats = PipelineStats(clock=lambda: now_s)

    def hear(seconds: int) -> None:
        nonlocal now_s
        stats.received(seconds * 16_000)
        stats.audio_samples += seconds * 16_000
        now_s += seconds

    for number, start_s in enumerate((1, 4, 7)):
        hear(3)
        samples = np.zeros(16_000, np.int16)
        stats.segment_closed(SpeechSegment(number, start_s * 16_000, samples, heard_sample=stats.audio_samples))
    stats.delivered(Transcript(2, 4.0, 8.0, "", "en", rejected="uncertain", heard_s=9.0))
    hear(60)
    assert stats.lag_s == 66.0  # the first segment still waits for its text
    stats.delivered(Transcript(0, 1.0, 2.0, "", "en", rejected="uncertain", heard_s=3.0))
    assert stats.lag_s == 0.0


def test_a_language_that_is_lost_leaves_no_lag_behind():
    now_s = 0.0
    stats = PipelineStats(clock=lambda: now_s, languages={"de", "zh"})
    stats.received(10 * 16_000)
    stats.audio_samples = 10 * 16_000
    stats.segment_closed(SpeechSegment(0, 16_000, np.zeros(16_000, np.int16), heard_sample=3 * 16_000))
    now_s, stats.audio_samples = 60.0, 70 * 16_000
    stats.received(60 * 16_000)
    stats.translated("zh", 3.0)
    assert stats.lag_s == 60.0  # into the other language nothing has come
    stats.language_lost("de", "out of memory")
    assert stats.lag_s == 0.0
