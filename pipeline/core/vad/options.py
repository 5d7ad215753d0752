"""Options of the VAD stage."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ..bounds import CheckedOptions, one_of, within


@dataclass(frozen=True)
class VadConfig(CheckedOptions):
    """Voice activity: which frames are speech, and where a segment of speech begins and ends."""

    # Probability at which speech begins, for sound 12 dB above the noise floor. Quieter sound needs more, louder less.
    threshold: float = within(0.6, 0.01, 0.99)
    # Probability at which speech continues. Hoarse and whispering voices have less than half of it for seconds.
    release_threshold: float = within(0.2, 0.01, 0.99)
    # Weight of the level, in natural-log odds of the probability per dB.
    level_weight: float = within(0.15, 0, 1)
    # Frames this far above the noise floor are kept next to speech, even if not detected as speech.
    audible_db: float = within(10.0, 0, 100)
    # Length of a frame, for which the detectors decide.
    frame_ms: int = one_of(20, 10, 20, 30)
    # Audio kept before the first frame of a segment, for quiet onsets.
    pre_roll_ms: int = within(100, 0, 2_000)
    # Audio kept after the last frame of a segment, for quiet endings.
    post_roll_ms: int = within(80, 0, 2_000)
    # Audible frames up to this far before and after speech belong to the segment: faint first and last sounds.
    faint_ms: int = within(500, 0, 2_000)
    # Milliseconds of silence between two segments up to which the second one has it too, so that words are heard there that are
    # not detected as speech. It counts to the segment's length.
    fill_ms: int = within(6_000, 0, 10_000)
    # Window in which most frames must be speech to open a segment. A click is one frame, a syllable is ten.
    trigger_ms: int = within(100, 20, 1_000)
    # Silence after the last speech frame that closes a segment.
    hangover_ms: int = within(500, 20, 10_000)
    # Silence after which the speech since the last long pause is recognised as a whole in live runs, as if nothing followed; 0: not
    # before the pause is long.
    early_ms: int = within(200, 0, 10_000)
    # A segment with less speech than this is dropped as noise. "Yes." has about 250 ms.
    min_speech_ms: int = within(140, 0, 5_000)
    # Maximum segment length; Whisper's window is 30 s.
    max_segment_ms: int = within(10_000, 1_000, 29_000)
    # A maximum-length cut is made at the quietest frame within this distance before the limit.
    cut_search_ms: int = within(3_000, 0, 30_000)
    # webrtcvad proposes and Silero confirms, or one of them decides alone. The thresholds apply to Silero.
    detector: str = one_of("webrtc+silero", "webrtc+silero", "webrtc", "silero")
    # webrtcvad's aggressiveness, from 0 (keeps the most) to 3 (filters the most). Use 0 if Silero confirms.
    mode: int = within(0, 0, 3)

    @property
    def opening_ms(self) -> int:
        """The longest opening of a segment, without a silence before it."""
        return self.pre_roll_ms + self.faint_ms + self.trigger_ms + self.min_speech_ms

    @property
    def filled_ms(self) -> int:
        """``fill_ms``, or as much as leaves room for speech in a segment."""
        return max(0, min(self.fill_ms, self.max_segment_ms - self.opening_ms - 1))

    def conflicts(self) -> Iterator[str]:
        """Options that contradict each other: one sentence each, with the names of the keys."""
        if self.cut_search_ms >= self.max_segment_ms:
            yield f"vad.cut_search_ms ({self.cut_search_ms}) must be less than vad.max_segment_ms ({self.max_segment_ms})"
        if self.release_threshold > self.threshold:
            yield (
                f"vad.release_threshold ({self.release_threshold:g}) must not be more than "
                f"vad.threshold ({self.threshold:g}): speech must not need a higher probability to continue than to begin"
            )
        if self.post_roll_ms > self.hangover_ms:
            yield (
                f"vad.post_roll_ms ({self.post_roll_ms}) must not be more than vad.hangover_ms ({self.hangover_ms}): "
                "a segment ends with its hangover, and there is no later audio to add"
            )
        if self.opening_ms >= self.max_segment_ms:
            yield (
                f"vad.max_segment_ms ({self.max_segment_ms}) must be more than vad.pre_roll_ms, faint_ms, trigger_ms and "
                f"min_speech_ms together ({self.opening_ms})"
            )
        if self.hangover_ms >= self.max_segment_ms:
            yield (
                f"vad.hangover_ms ({self.hangover_ms}) must be less than vad.max_segment_ms ({self.max_segment_ms}), "
                "or the maximum length cuts a silence before the hangover ends the segment"
            )
