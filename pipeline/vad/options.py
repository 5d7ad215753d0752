"""Options of the VAD stage."""

from __future__ import annotations

from dataclasses import dataclass

from pipeline.bounds import one_of, within
from pipeline.vad.endpointing import EndpointingOptions
from pipeline.vad.gate import GateOptions


@dataclass(frozen=True)
class VadConfig(EndpointingOptions, GateOptions):
    # webrtcvad proposes and Silero confirms, or one of them alone; the thresholds are Silero's.
    detector: str = one_of("webrtc+silero", "webrtc+silero", "webrtc", "silero")
    # webrtcvad's aggressiveness: 0 keeps the most, 3 filters the most. Where Silero confirms, nothing should be missed.
    mode: int = within(0, 0, 3)
