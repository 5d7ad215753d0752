"""Audio of any rate becomes 16 kHz, nothing of it is lost, and too much of it waits. Who sends nothing is silent."""

import asyncio

import numpy as np
import pytest

from pipeline.core.run.stats import PipelineStats
from pipeline.events import SAMPLE_RATE, Samples
from pipeline.server.intake import Intake, SilentSender, Timing
from pipeline.server.protocol import ProtocolError


def tone(rate: int, seconds: float) -> Samples:
    return np.round(8_000 * np.sin(2 * np.pi * 440 * np.arange(round(rate * seconds)) / rate)).astype(np.int16)


def taken(intake: Intake) -> Samples:
    async def work() -> Samples:
        found = []
        while (samples := await intake.take()) is not None:
            found.append(samples)
        return np.concatenate(found) if found else np.zeros(0, np.int16)

    return asyncio.run(work())


def test_a_sender_may_go_on_at_another_rate():
    intake = Intake(48_000, 60.0)
    for rate in (48_000, 16_000, 16_000, 8_000):
        intake.go_on_at(rate)
        intake.push(tone(rate, 1.0).astype("<i2").tobytes() + b"\0" * (rate == 48_000))  # and half a sample
    intake.end()
    found = taken(intake)
    assert abs(len(found) - 4 * SAMPLE_RATE) <= 128
    assert np.corrcoef(found[SAMPLE_RATE : 2 * SAMPLE_RATE - 64], tone(SAMPLE_RATE, 1.0)[:-64])[0, 1] > 0.9


@pytest.mark.parametrize("rate", [8_000, 16_000, 22_050, 44_100, 48_000, 192_000])
def test_audio_of_any_rate_becomes_16_khz(rate):
    intake = Intake(rate, 60.0)
    samples = tone(rate, 2.0)
    for begin in range(0, len(samples), 1_001):
        intake.push(samples[begin : begin + 1_001].astype("<i2").tobytes())
    intake.end()
    intake.end()
    assert intake.received == len(samples)
    found = taken(intake)
    assert abs(len(found) - 2 * SAMPLE_RATE) <= 64
    length = min(len(found), 2 * SAMPLE_RATE)
    wanted = tone(SAMPLE_RATE, 2.0)[:length].astype(float)
    assert np.corrcoef(found[:length], wanted)[0, 1] > 0.99


def test_audio_at_16_khz_stays_as_it_is():
    intake = Intake(SAMPLE_RATE, 60.0)
    samples = np.arange(-5, 5, dtype=np.int16)
    intake.push(samples.tobytes())
    intake.end()
    assert np.array_equal(taken(intake), samples)


@pytest.mark.parametrize("size", [1, 3, 1_001])
def test_half_a_sample_is_completed_by_the_next_message(size):
    intake = Intake(SAMPLE_RATE, 60.0)
    data = tone(SAMPLE_RATE, 0.1).tobytes() + b"\x01"
    for begin in range(0, len(data), size):
        intake.push(data[begin : begin + size])
    intake.end()
    assert intake.received == len(data) // 2
    assert taken(intake).tobytes() == data[:-1]


def test_half_a_sample_is_forgotten_with_its_connection():
    intake = Intake(SAMPLE_RATE, 60.0)
    intake.push(b"abc")
    intake.resume()  # the sender goes on after one sample
    intake.push(b"cd")
    intake.end()
    assert taken(intake).tobytes() == b"abcd"


def test_audio_after_the_end_is_refused():
    intake = Intake(SAMPLE_RATE, 60.0)
    intake.end()
    with pytest.raises(ProtocolError, match="after the end"):
        intake.push(b"ab")
    assert intake.received == 0


def test_nothing_is_taken_from_an_empty_intake():
    for rate in (SAMPLE_RATE, 48_000):
        intake = Intake(rate, 1.0)
        intake.end()
        assert len(taken(intake)) == 0


async def test_the_sender_waits_while_too_much_waits():
    intake = Intake(SAMPLE_RATE, 1.0)
    intake.push(bytes(2 * SAMPLE_RATE))
    await intake.room()
    intake.push(bytes(2))
    waiting = asyncio.create_task(intake.room())
    await asyncio.sleep(0)
    assert not waiting.done()
    assert intake.waiting_s > 1.0
    assert intake.holding
    await intake.take()
    await waiting
    assert (intake.waiting_s, intake.holding) == (0.0, False)
    intake.push(bytes(4 * SAMPLE_RATE))
    intake.end()
    await intake.room()


def test_what_the_resampler_holds_comes_at_the_end_once():
    intake = Intake(8_000, 60.0)
    intake.push(tone(8_000, 1.0).tobytes())
    before_s = intake.arrived_s
    intake.end()
    intake.end()
    assert before_s < intake.arrived_s == pytest.approx(1.0, abs=0.005)


class Sender:
    """A sender as it is seen at the times at which a session looks."""

    def __init__(self) -> None:
        self.now_s, self.sent_s, self.given_s = 50.0, 0.0, 0.0
        self.silent = SilentSender(2.25, self.now_s)

    def send(self, seconds: float, *, pace: float = 1.0) -> None:
        for _ in range(round(seconds / 0.25)):
            self.now_s += 0.25 / pace
            self.sent_s += 0.25
            self.silent.heard(self.now_s)
            assert self.due() == 0.0

    def stall(self, seconds: float) -> float:
        """The silence that it gets."""
        before_s = self.given_s
        for _ in range(round(seconds / 0.25)):
            self.now_s += 0.25
            self.due()
        return self.given_s - before_s

    def due(self) -> float:
        due_s = self.silent.due_s(self.now_s, self.now_s - 50.0 - self.sent_s - self.given_s)
        self.given_s += due_s
        return due_s


def test_a_sender_that_sends_nothing_is_silent_for_as_long():
    sender = Sender()
    sender.send(10)
    assert sender.stall(1.25) == 0.0
    assert sender.stall(0.25) == 1.5
    assert sender.stall(60) == 60.0
    sender.send(5)
    assert sender.stall(3) == 3.0
    assert sender.silent.ahead_s == 0.0


def test_what_comes_late_after_a_stall_does_not_add_up():
    sender = Sender()
    for _ in range(20):
        sender.send(10)
        sender.stall(3)
        sender.send(3, pace=1e6)
    ahead_s = sender.sent_s + sender.given_s - (sender.now_s - 50.0)
    assert ahead_s == pytest.approx(sender.silent.ahead_s + 3, abs=0.5)  # so that the session knows of it


def test_a_sender_that_is_faster_than_speech_gets_what_ends_its_sentence():
    sender = Sender()
    sender.send(30, pace=1e6)
    assert sender.stall(20) == 2.25
    assert sender.stall(60) == pytest.approx(47.75, abs=0.01)  # since its recording would have ended


async def test_silence_counts_as_audio_that_has_come_and_not_as_received():
    intake = Intake(8_000, 60.0)
    intake.push(tone(8_000, 1.0).tobytes())
    before_s = intake.arrived_s
    intake.fill(0.5)
    assert (intake.received, intake.arrived_s) == (8_000, before_s + 0.5)
    intake.fill(0.0)
    found = await intake.take()
    assert found is not None
    assert not found[-8_000:].any()


class Timed:
    """An intake, of which all that comes is fed to the stages at once, and its times."""

    def __init__(self) -> None:
        self.now_s = 50.0
        self.stats = PipelineStats(clock=lambda: self.now_s)
        self.intake = Intake(SAMPLE_RATE, 60.0)
        self.timing = Timing(self.intake, self.stats, 2.25, self.now_s)

    def hear(self, seconds: float, *, fed: bool = True) -> None:
        before_s = self.intake.arrived_s
        self.intake.push(bytes(2 * round(seconds * SAMPLE_RATE)))
        if fed:
            self.stats.received(round((self.intake.arrived_s - before_s) * SAMPLE_RATE))
        self.timing.heard(self.now_s)

    def filled_s(self, after_s: float, *, expected: bool = True) -> float:
        """The silence that is added after some seconds."""
        before_s, self.now_s = self.intake.arrived_s, self.now_s + after_s
        self.timing.fill(self.now_s, expected=expected)
        return self.intake.arrived_s - before_s


def test_silence_stands_for_what_an_expected_sender_does_not_send():
    timed = Timed()
    assert timed.filled_s(10.0) == 0.0  # it has sent nothing yet
    timed.hear(1.0)
    assert timed.filled_s(10.0, expected=False) == 0.0
    assert timed.filled_s(1.0) == 0.0
    assert timed.filled_s(9.0) == pytest.approx(10.0)


def test_silence_is_counted_anew_when_audio_has_come_again():
    timed = Timed()
    for _ in range(2):
        timed.hear(1.0)
        assert timed.filled_s(1.0) == 0.0
        assert timed.filled_s(9.0) == pytest.approx(10.0, abs=1.5)
    timed.hear(1.0)
    assert timed.filled_s(1.0) == 0.0


def test_a_sender_that_has_to_wait_is_not_silent():
    timed = Timed()
    timed.hear(61.0, fed=False)
    assert timed.filled_s(10.0) == 0.0


def test_what_waits_or_is_not_fed_yet_is_behind():
    timed = Timed()
    timed.hear(20.0, fed=False)
    assert asyncio.run(timed.intake.take()) is not None
    for fed_s, behind_s in ((0, 20.0), (15, 5.0), (6, 0.0)):  # in the end, more than has arrived
        timed.stats.received(fed_s * SAMPLE_RATE)
        assert timed.stats.backlog_s() == behind_s


def test_audio_that_is_far_ahead_of_real_time_has_no_age_and_silence_does_not_count():
    timed = Timed()
    timed.hear(29.0)
    assert timed.timing.age_s(0.0) == 29.0
    timed.hear(32.0)
    assert timed.timing.age_s(0.0) is None
    silent = Timed()
    for seconds in (1.0, 29.0):
        silent.hear(seconds)
    assert silent.filled_s(3.0) == 2.25  # which ends its sentence
    silent.hear(3.0)
    assert silent.stats.ahead_s > 30.0
    assert silent.timing.age_s(0.0) is not None
