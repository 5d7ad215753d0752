"""Audio of any rate becomes 16 kHz, nothing of it is lost, and too much of it waits."""

import asyncio

import numpy as np
import pytest

from pipeline.events import SAMPLE_RATE, Samples
from pipeline.server.intake import Intake
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
    await intake.take()
    await waiting
    assert intake.waiting_s == 0.0
    intake.push(bytes(4 * SAMPLE_RATE))
    intake.end()
    await intake.room()
