"""How loud a device records."""

import numpy as np
import pytest

from pipeline.core.notices import InputLevel
from pipeline.events import Samples
from pipeline.media.audio.level import LevelCheck


def told(recorded: Samples) -> list[InputLevel]:
    check = LevelCheck("Mic")
    blocks = [recorded[at : at + 320] for at in range(0, len(recorded), 320)]
    found = [check.push(block, 0.02 * number) for number, block in enumerate(blocks, 1)]
    return [each for each in found if each is not None]


def noise(dbfs: float, seconds: float) -> Samples:
    loud = np.random.default_rng(1).normal(0, 32768 * 10 ** (dbfs / 20), round(16_000 * seconds))
    return np.clip(np.rint(loud), -32768, 32767).astype(np.int16)


def test_the_level_is_told_once():
    (level,) = told(noise(-40, 60))
    assert level == InputLevel(2.5, "Mic", pytest.approx(-40, abs=0.1))


def test_less_than_two_and_a_half_seconds_are_not_judged():
    assert not told(noise(-40, 2.4))


@pytest.mark.parametrize("dbfs", [-200, -96])
def test_a_muted_device_is_silent(dbfs):
    (level,) = told(noise(dbfs, 60))
    assert level.silent
    assert level.level_dbfs == pytest.approx(-90, abs=0.5)


@pytest.mark.parametrize(("peak", "silent"), [(3, True), (4, False)])
def test_a_device_is_silent_up_to_a_peak_of_three(peak, silent):
    recorded = np.zeros(48_000, np.int16)
    recorded[100] = -peak
    assert [level.silent for level in told(recorded)] == [silent]


def test_a_quiet_room_is_not_silent():
    (level,) = told(noise(-75, 60))
    assert not level.silent


def test_clipping_is_told_at_the_start():
    (level,) = told(noise(-3, 60))
    assert 0.1 < level.clipped < 0.2


def test_clipping_later_is_told_once():
    quiet, loud = noise(-40, 10), noise(-3, 5)
    first, later = told(np.concatenate([quiet, loud, quiet, loud]))
    assert (first.clipped, later.at_s) == (0.0, 12.5)
    assert later.clipped > 0.1


def test_a_few_samples_at_full_scale_are_not_clipping():
    recorded = noise(-40, 60)
    recorded[::2000] = 32767
    assert [level.clipped for level in told(recorded)] == [0.0]
