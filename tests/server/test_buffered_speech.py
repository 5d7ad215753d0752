"""Speech that was kept while the connection was made is late from the first moment; a recording is not."""

import pytest

from pipeline.core.run.stats import PipelineStats
from pipeline.events import SAMPLE_RATE
from pipeline.server.intake import BufferedSpeech, Intake, Timing

STEP_S, AT_ONCE = 0.1, 1e6


def spoken_at(*parts: tuple[float, float, bool]) -> list[float]:
    """What is found out about a stream in parts: seconds of audio, their pace, and whether the sender has to wait."""
    kept, now_s, heard_s, found = BufferedSpeech(), 100.0, 0.0, list[float]()
    for length_s, pace, waits in parts:
        for _ in range(round(length_s / STEP_S)):
            now_s, heard_s = now_s + STEP_S / pace, heard_s + STEP_S
            if (at_s := kept.heard(now_s, heard_s, waits)) is not None:
                found.append(at_s)
    return found


@pytest.mark.parametrize("kept_s", [0.1, 1.0, 20.0, 50.0])
def test_speech_that_comes_at_once_and_goes_on_at_real_pace_was_kept(kept_s):
    assert spoken_at((kept_s, AT_ONCE, False), (20.0, 1.0, False)) == [pytest.approx(100 - kept_s, abs=0.2)]


def test_kept_speech_may_have_to_wait_and_be_followed_by_a_pause():
    parts = (30.0, AT_ONCE, False), (1.0, 0.5, True), (10.0, AT_ONCE, False), (0.4, 0.1, False), (20.0, 1.0, False)
    assert spoken_at(*parts) == [pytest.approx(60, abs=2)]


@pytest.mark.parametrize(
    "parts",
    [
        [(200.0, 3.0, False)],
        [(20.0, AT_ONCE, False), (100.0, 3.0, False)],
        [(30.0, AT_ONCE, False), (100.0, 1.0, True)],
        [(30.0, AT_ONCE, False), (1.0, 0.2, True), (10.0, AT_ONCE, False), (1.0, 0.2, True), (10.0, AT_ONCE, False)],
        [(70.0, AT_ONCE, False), (100.0, 1.0, False)],
        [
            (20.0, AT_ONCE, False),
            (12.0, 3.0, False),
            (1.0, 0.25, True),
            (30.0, 3.0, False),
        ],  # as fast as speech with the wait
    ],
)
def test_a_recording_was_not_kept(parts):
    assert spoken_at(*parts) == []


def test_a_stream_is_as_late_as_the_speech_that_was_kept():
    now_s, stats, intake = 100.0, PipelineStats(clock=lambda: now_s), Intake(SAMPLE_RATE, 30.0)
    timing = Timing(intake, stats, 2.0, now_s)
    message = bytes(2 * round(STEP_S * SAMPLE_RATE))
    for number in range(270):
        now_s += STEP_S * (number >= 200)
        intake.push(message)
        timing.heard(now_s)
        if not number:
            stats.received(len(message) // 2)  # the first message is fed
    assert stats.age_s(5.0) == pytest.approx(22.0, abs=0.2)
    assert stats.ahead_s == pytest.approx(0.0, abs=0.2)
