"""Options of the VAD stage."""

from __future__ import annotations

from dataclasses import dataclass

from ..bounds import one_of, within
from .endpointing import EndpointingOptions
from .gate import GateOptions


@dataclass(frozen=True)
class VadConfig(EndpointingOptions, GateOptions):
    """Voice activity: which frames are speech, and where a segment of speech begins and ends."""

    # webrtcvad proposes and Silero confirms, or one of them decides alone. The thresholds apply to Silero.
    detector: str = one_of("webrtc+silero", "webrtc+silero", "webrtc", "silero")
    # webrtcvad's aggressiveness, from 0 (keeps the most) to 3 (filters the most). Use 0 if Silero confirms.
    mode: int = within(0, 0, 3)
