"""Where speech segments begin and end: a pure state machine over frame decisions.

Frames and decisions go in, segments come out. No clock, no device, no model: the caller says whether a frame is speech.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np

from pipeline.events import Samples, SpeechSegment


@dataclass(frozen=True)
class EndpointingOptions:
    """Endpointing rules, in milliseconds of audio."""

    frame_ms: int = 20
    # Audio kept from before the first speech frame: plosives and quiet onsets start before a VAD notices them.
    pre_roll_ms: int = 300
    # So many of the last frames must be speech before a segment opens: a click is one frame, a syllable is ten.
    trigger_ms: int = 100
    # Silence after the last speech frame that closes a segment.
    hangover_ms: int = 500
    # A segment with less speech than this is dropped as a noise burst. "Yes." has about 250 ms.
    min_speech_ms: int = 140
    # A segment is cut here at the latest; Whisper's window is 30 s.
    max_segment_ms: int = 15_000
    # A maximum-length cut falls on the quietest frame within this distance before the limit.
    cut_search_ms: int = 3_000


class Endpointer:
    """Turns (frame, is_speech) observations into segments.

    Segments never overlap. Between the first and the last sample of a stretch of speech nothing is lost: where the
    maximum length cuts, the next segment begins with the very next sample.
    """

    def __init__(self, options: EndpointingOptions) -> None:
        self.options = options
        frame = options.frame_ms
        self._pre_roll = options.pre_roll_ms // frame
        self._trigger = max(1, options.trigger_ms // frame)
        self._hangover = max(1, options.hangover_ms // frame)
        self._min_speech = max(1, options.min_speech_ms // frame)
        self.limit(None)
        # Not in speech: the newest frames, enough for the trigger window and the pre-roll before it.
        self._waiting: deque[tuple[Samples, bool]] = deque(maxlen=self._trigger + self._pre_roll)
        self._open: list[tuple[Samples, bool]] = []
        self._open_start = 0
        self._in_speech = False
        self._continued = False  # the open segment follows a maximum-length cut
        self._silent = 0
        self._position = 0  # samples seen
        self._next_id = 0

    @property
    def in_speech(self) -> bool:
        return self._in_speech

    def limit(self, max_segment_ms: int | None) -> None:
        """Cut at this length, where it is less than the configured one, until told otherwise; None ends that."""
        options = self.options
        self._max = min(options.max_segment_ms, max_segment_ms or options.max_segment_ms) // options.frame_ms
        self._search = min(options.cut_search_ms // options.frame_ms, self._max - 1)

    def push(self, frame: Samples, is_speech: bool) -> list[SpeechSegment]:
        """One more frame; returns the segments that it completes (none, or one)."""
        self._position += len(frame)
        if not self._in_speech:
            self._waiting.append((frame, is_speech))
            # Hysteresis: most of the trigger window must be speech to open, one speech frame keeps it open.
            recent = list(self._waiting)[-self._trigger :]
            if sum(speech for _, speech in recent) * 10 >= 8 * self._trigger:
                self._start()
            return []
        self._open.append((frame, is_speech))
        self._silent = 0 if is_speech else self._silent + 1
        if self._silent >= self._hangover:
            return self._close()
        if len(self._open) >= self._max:
            return [self._cut()]
        return []

    def flush(self) -> list[SpeechSegment]:
        """The input is over: deliver the segment in progress."""
        if not self._in_speech:
            # Speech that began too near the end to open a segment still counts.
            if sum(speech for _, speech in self._waiting) < self._min_speech:
                return []
            self._start()
        return self._close()

    def _start(self) -> None:
        self._open = list(self._waiting)
        self._open_start = self._position - sum(len(frame) for frame, _ in self._open)
        self._waiting.clear()
        self._in_speech = True
        self._silent = 0

    def _close(self) -> list[SpeechSegment]:
        frames, self._open = self._open, []
        needed = 1 if self._continued else self._min_speech
        self._in_speech = self._continued = False
        if sum(speech for _, speech in frames) < needed:
            # A noise burst. Its tail may be the pre-roll of what follows, for no segment holds it.
            self._waiting.extend(frames)
            return []
        return [self._segment(frames, forced=False)]

    def _cut(self) -> SpeechSegment:
        """Cut the open segment at the quietest frame near its limit; the rest stays open."""
        # Beyond the limit, where the limit has become shorter than what is open, any frame will do.
        first = max(0, min(len(self._open), self._max) - self._search)
        energies = [_energy(frame) for frame, _ in self._open[first:]]
        at = first + int(np.argmin(energies)) + 1 if energies else len(self._open)
        segment = self._segment(self._open[:at], forced=True)
        self._open_start += len(segment.samples)
        self._open = self._open[at:]
        self._continued = True
        return segment

    def _segment(self, frames: list[tuple[Samples, bool]], forced: bool) -> SpeechSegment:
        samples = np.concatenate([frame for frame, _ in frames])
        last = max((i for i, (_, speech) in enumerate(frames) if speech), default=-1)
        segment = SpeechSegment(
            self._next_id,
            self._open_start,
            samples,
            forced_cut=forced,
            speech_end_sample=self._open_start + sum(len(frame) for frame, _ in frames[: last + 1]),
            heard_sample=self._position,
        )
        self._next_id += 1
        return segment


def _energy(frame: Samples) -> float:
    return float(np.mean(np.square(frame.astype(np.float32))))
