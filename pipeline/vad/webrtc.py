"""Frame decisions from webrtcvad."""

from __future__ import annotations

import numpy as np
import webrtcvad

from pipeline.events import SAMPLE_RATE, Samples


class WebRtcVad:
    """Decides whether frames of ``frame_ms`` (10, 20 or 30) are speech. ``mode`` 0 keeps most, 3 filters most."""

    def __init__(self, mode: int, frame_ms: int) -> None:
        self.frame_samples = SAMPLE_RATE * frame_ms // 1000
        self._vad = webrtcvad.Vad(mode)

    def is_speech(self, frame: Samples) -> bool:
        """Decide one frame. A shorter frame (the last of the input) is padded with silence."""
        if len(frame) < self.frame_samples:
            frame = np.pad(frame, (0, self.frame_samples - len(frame)))
        return bool(self._vad.is_speech(frame.tobytes(), SAMPLE_RATE))
