"""Speech that was kept while the connection was made is late from the first moment; a recording is not."""

import asyncio

import pytest

from pipeline import Models, PipelineConfig
from pipeline.events import SAMPLE_RATE
from pipeline.server.chains import Chain
from pipeline.server.intake import BufferedSpeech
from pipeline.server.limits import ServerLimits
from pipeline.server.session import Session

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


def test_the_pace_is_measured_anew_after_a_wait():
    parts = (10.0, AT_ONCE, False), (2.5, 1.0, False), (1.0, 0.1, True), (3.3, 1.0, False)
    assert spoken_at(*parts) == [pytest.approx(90, abs=0.2)]


@pytest.mark.parametrize(
    "parts",
    [
        [(200.0, 3.0, False)],
        [(20.0, AT_ONCE, False), (100.0, 3.0, False)],
        [(30.0, AT_ONCE, False), (100.0, 1.0, True)],
        [(30.0, AT_ONCE, False), (1.0, 0.2, True), (10.0, AT_ONCE, False), (1.0, 0.2, True), (10.0, AT_ONCE, False)],
        [(70.0, AT_ONCE, False), (100.0, 1.0, False)],
    ],
)
def test_a_recording_was_not_kept(parts):
    assert spoken_at(*parts) == []


def session(config: PipelineConfig, models: Models) -> Session:
    return Session(Chain(config, models), ServerLimits(), SAMPLE_RATE)


async def test_a_session_is_as_late_as_the_speech_that_was_kept(demo_config, demo_models):
    found, now_s = session(demo_config, demo_models), 100.0
    found.stats.clock = lambda: now_s
    message = bytes(2 * round(STEP_S * SAMPLE_RATE))
    for _ in range(200):
        await found.hear(message)
    found.stats.received(round(STEP_S * SAMPLE_RATE))  # the first message is fed
    for _ in range(70):
        now_s += STEP_S
        await found.hear(message)
    assert found.stats.age_s(5.0) == pytest.approx(22.0, abs=0.2)
    assert found.stats.ahead_s == pytest.approx(0.0, abs=0.2)


def test_audio_that_is_taken_and_not_fed_yet_is_still_behind(demo_config, demo_models):
    found = session(demo_config, demo_models)
    found.intake.push(bytes(2 * 20 * SAMPLE_RATE))
    assert found.stats.backlog_s() == 20.0
    assert asyncio.run(found.intake.take()) is not None
    assert found.stats.backlog_s() == 20.0
    found.stats.received(15 * SAMPLE_RATE)
    assert found.stats.backlog_s() == 5.0
