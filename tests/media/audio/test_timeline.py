"""Where the audio of a new connection to a stream lies in time: what was heard is dropped, and silence fills gaps."""

import numpy as np
import pytest

from pipeline.media.audio.timeline import overlap, place, silence_due
from tests.conftest import PHRASES, read_wav

SPEECH = read_wav(PHRASES)[: 6 * 16_000]
NOISE = np.random.default_rng(1).integers(-9_000, 9_000, 60 * 16_000).astype(np.int16)


@pytest.mark.parametrize(("came_in_s", "goes_on_at"), [(0.0, 64_000), (3.0, 32_000)])
def test_what_was_heard_or_was_silent_is_left_out_of_what_a_server_has_kept(came_in_s, goes_on_at):
    """The stream broke off after three seconds, a second of silence followed, and the server begins a second before that.
    A connection that sends no faster than in real time has kept nothing: what seems to be known is a repetition."""
    position, new = place(
        SPEECH[32_000:80_000], SPEECH[:48_000], 48_000, 64_000,
        came_at=round((9 - came_in_s) * 16_000), now=9 * 16_000, lead=-8_000,
    )  # fmt: skip
    assert np.array_equal(new, SPEECH[goes_on_at:80_000])
    assert (position > 64_000) == (came_in_s > 0), "silence only where nothing was kept"


@pytest.mark.parametrize(("kept_s", "away_s"), [(0, 1), (0, 20), (3, 1), (3, 3), (3, 10), (8, 2), (8, 7), (8, 30)])
def test_audio_lies_where_it_was_said_whatever_the_server_has_kept(kept_s, away_s):
    """The server began with what it had kept, so that the time line is ahead by this: sample n is said at n - kept."""
    lost_at, came_at, now = (kept_s + 4) * 16_000, (4 + away_s) * 16_000, (5 + away_s) * 16_000
    delivered = lost_at + silence_due(lost_at, came_at, kept_s * 16_000)
    position, new = place(
        NOISE[came_at : now + kept_s * 16_000], NOISE[lost_at - 48_000 : lost_at],
        lost_at, delivered, came_at=came_at, now=now, lead=kept_s * 16_000,
    )  # fmt: skip
    assert position == max(came_at, delivered)
    assert np.array_equal(new, NOISE[position : now + kept_s * 16_000])


def test_the_time_line_stays_ahead_as_far_as_the_first_connection_was_and_the_next_has_kept():
    def position(lead: int, kept: int) -> int:
        start = NOISE[: 16_000 + kept]
        return place(start, SPEECH, 0, 0, came_at=144_000, now=160_000, lead=lead)[0]

    assert position(lead=0, kept=0) == position(lead=0, kept=8_000) + 8_000 == 144_000
    assert position(lead=16_000, kept=8_000) == 144_000
    assert position(lead=4_000, kept=8_000) == 140_000
    assert position(lead=0, kept=240_000) == 0  # what was delivered stays


def test_silence_is_due_only_for_what_no_server_can_have_kept():
    assert silence_due(16_000, 16_000 + 80_000, 0) == 0
    assert silence_due(16_000, 16_000 + 80_001, 0) == 1
    assert silence_due(16_000, 32_000, 80_000) == 16_000  # the first connection gave the five seconds at once
    assert silence_due(48_000, 32_000, 90_000) == 0


def test_silence_that_is_alike_everywhere_is_not_taken_for_what_was_heard():
    hum = (30 * np.sin(np.arange(3 * 16_000) / 7)).astype(np.int16)
    start = np.concatenate([hum, SPEECH[:16_000]])
    assert overlap(hum, start) == 0
    assert overlap(9 * hum, np.concatenate([9 * hum, SPEECH[:16_000]])) > 0


@pytest.mark.parametrize("quiet", [0, 8_000])
def test_what_was_heard_before_is_found_in_audio_that_begins_before_its_end(quiet):
    said = np.concatenate([SPEECH[:48_000], np.zeros(quiet, np.int16)])
    assert overlap(said, np.concatenate([said[16_000:], SPEECH[48_000:]])) == len(said) - 16_000
    assert overlap(said, SPEECH[48_000:]) == 0
