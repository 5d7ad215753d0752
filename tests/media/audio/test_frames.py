"""Long decoded frames are resampled in parts."""

import numpy as np
import pytest
from av.audio.frame import AudioFrame

from pipeline.media.audio.channels import MonoMixer
from pipeline.media.audio.frames import pieces


def frame_of(channels: int, samples: int, kind: str) -> AudioFrame:
    said = np.random.default_rng(0).integers(-9_000, 9_000, (channels, samples)).astype(np.int16)
    layout = {1: "mono", 2: "stereo"}.get(channels, f"{channels} channels")
    frame = AudioFrame.from_ndarray(said if kind == "s16p" else said.T.reshape(1, -1), kind, layout)
    frame.sample_rate, frame.pts = 4_000, 12_345
    return frame


@pytest.mark.parametrize(("channels", "kind"), [(1, "s16"), (2, "s16p"), (6, "s16p"), (16, "s16")])
def test_a_long_frame_is_divided_without_a_change(channels, kind):
    frame = frame_of(channels, 100_000, kind)
    whole = frame.to_ndarray()
    parts = [part.to_ndarray() for part in pieces(frame)]
    assert len(parts) > 3
    assert np.array_equal(np.concatenate(parts, axis=1), whole)


@pytest.mark.parametrize("channels", [1, 2])
def test_a_long_frame_is_resampled_a_part_at_a_time(channels):
    """It would take four times its size at once, and as floating-point numbers twice of that."""
    frame = frame_of(channels, 1_000_000, "s16")
    mixer = MonoMixer(frame.layout)
    sizes = [len(samples) for samples in mixer.push(frame)]
    assert max(sizes) < 200_000
    assert sum(sizes) + mixer.pending == pytest.approx(4_000_000, abs=1_000)
