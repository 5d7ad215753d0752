"""Statistics are counted on several threads at once, and the lag of a room where nobody speaks does not grow."""

import itertools
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator

import numpy as np
import pytest

from pipeline.core.run.stats import PipelineStats
from pipeline.events import MissingSpeech, SourceSentence, SpeechSegment, Transcript, Word

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


def test_the_latency_of_a_segment_is_that_of_its_first_token_alone():
    times_s = itertools.count(10.0, 0.5)
    stats = PipelineStats(clock=lambda: next(times_s))
    stats.received(32_000)
    stats.audio_samples = 32_000
    stats.segment_closed(SpeechSegment(0, 0, np.zeros(16_000, np.int16), heard_sample=32_000))
    stats.token(1.0)  # of what was said before
    for _ in range(3):
        stats.token(2.0)
    assert (stats.tokens, len(stats.first_token_s)) == (4, 1)


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


def test_what_is_left_out_of_a_text_is_withheld_but_only_all_of_it_is_rejected():
    stats = PipelineStats()
    missing = (MissingSpeech(1.0, 2.5, "uncertain"),)
    stats.transcribed(Transcript(0, 0.0, 4.0, "Yes.", "en", missing=missing))
    stats.transcribed(Transcript(1, 4.0, 6.0, "Yes, yes.", "en", repeated=True))
    stats.transcribed(Transcript(2, 6.0, 7.0, "", "en", rejected="silence"))
    stats.transcribed(Transcript(3, 7.0, 9.0, "", "en", rejected="silence", repeated=True))
    stats.transcribed(Transcript(4, 9.0, 9.5, "No.", "en"))
    assert (stats.withheld_s, stats.rejected) == ({"uncertain": 1.5, "repetition": 2.0, "silence": 3.0}, 2)


def test_a_summary_names_the_newest_of_what_was_withheld():
    stats = PipelineStats()
    for number in range(12):
        stats.not_shown(60.0 * number, 60.0 * number + 0.5, f"reason {number}")
    assert (
        stats.withheld_summary(2) == "6.0 s: reason 10 0:10:00–0:10:00, reason 11 0:11:00–0:11:00, and 10 more before"
    )
    assert stats.withheld_summary(12).endswith("reason 11 0:11:00–0:11:00")


def test_a_term_that_was_corrected_is_counted_once_whatever_its_number_of_words():
    stats = PipelineStats()
    words = (Word(" load", 0, 1, heard="lode balance or"), Word(" balancer", 1, 2, heard=""), Word(" it", 2, 3))
    stats.delivered(SourceSentence(0, "en", "load balancer it", words=words, terms=("load balancer",)))
    assert (stats.terms, stats.corrected) == (1, 1)


def test_the_audio_began_when_it_was_spoken_not_when_it_came():
    stats = PipelineStats(clock=lambda: 10.0)
    stats.spoken_from(4.0)
    stats.spoken_from(6.0)  # cannot be: something was spoken before
    assert stats.stream_s == 6.0
    stats.received(16_000)
    assert stats.stream_s == 6.0
    assert stats.ahead_s == -5.0


def test_audio_that_was_not_fed_in_the_end_does_not_count():
    stats = PipelineStats(clock=lambda: 10.0)
    for samples in (16_000, 32_000, -32_000):
        stats.received(samples)
    assert (stats.received_samples, stats.stream_s) == (16_000, 1.0)


def test_the_working_time_of_each_stage_is_kept():
    stats = PipelineStats(clock=iter([0.0, 1.0, 1.0, 3.0, 3.0, 3.5]).__next__)
    for stage in ("asr", "nmt", "asr"):
        with stats.busy(stage):
            pass
    assert stats.busy_s == {"asr": 1.5, "nmt": 2.0}


def test_calls_in_progress_are_known_by_number():
    stats = PipelineStats()
    with stats.busy("asr"):
        (first,) = stats.calls
        with pytest.raises(ZeroDivisionError), stats.busy("nmt"):
            assert list(stats.calls.values()) == ["asr", "nmt"]
            raise ZeroDivisionError
        assert stats.calls == {first: "asr"}
    with stats.busy("asr"):
        assert first not in stats.calls
    assert not stats.calls


def test_a_language_does_not_lose_what_it_has_translated_by_an_older_sentence():
    stats = PipelineStats(languages={"zh"})
    stats.translated("zh", 9.0)
    stats.translated("zh", 3.0)
    stats.segment_closed(SpeechSegment(0, 0, np.zeros(16_000, np.int16), heard_sample=5 * 16_000))
    stats.translated("zh", 0.0)
    assert stats._pending == {}


@pytest.mark.parametrize(
    ("counted", "line"),
    [
        ({"terms": 3, "corrected": 1}, "3 terms of the glossary heard, 1 of them corrected"),
        ({"failures": {"ASR": "timed out"}}, "the ASR stage failed at times, the last time with: timed out"),
        ({"translated_terms": 3}, "3 of 3 terms translated as given"),
        (
            {"translated_terms": 9, "missed_terms": Counter(a=1, b=2, c=1, d=1, e=1, f=1)},
            "2 of 9 terms translated as given; missed 7: b, a, c, d, e",
        ),
        ({"instead": 2}, "2 translations are local, because the server of nmt.url gave none"),
        ({"doubtful": 2}, "texts without a translation, because there is no translator from their language: 2"),
        ({"appended_otherwise": 2}, "2 words were sent in deltas otherwise than in the final text"),
        ({"overflows": 1}, "audio was lost 1 times: this machine does not keep up"),
        ({"overflows": 0, "lost_s": 0.5}, "audio was lost 0 times: this machine does not keep up"),
    ],
)
def test_a_summary_has_a_line_for_what_a_user_should_know_and_no_other(counted, line):
    stats = PipelineStats(clock=lambda: 4.0, started=2.0, audio_samples=8 * 16_000, sentences=1, **counted)
    assert stats.summary().splitlines() == ["8.0 s of audio in 2.0 s (4.0 times real time), 1 sentence", line]


def test_details_have_the_latency_and_the_lag_if_there_are_any():
    stats = PipelineStats(segments=3, rejected=1, tokens=9, load_s=1.5)
    line = "3 segments, 1 not translated, 9 tokens; models loaded in 1.50 s; time in stages: "
    assert stats.details() == f"{line}none"
    stats.busy_s, stats.longest_lag_s, stats.undrafted = {"asr": 1.0, "nmt": 2.5}, 6.0, 2
    stats.first_token_s.extend([1.0, 5.0, 2.0])
    assert stats.details().splitlines() == [
        f"{line}asr 1.00 s, nmt 2.50 s",
        "first token after a segment's end: median 2.00 s, longest 5.00 s",
        "lag: 6.0 s at most; 2 segments without drafts to keep up",
    ]
