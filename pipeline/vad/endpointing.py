"""Where speech segments begin and end: a pure state machine over frame decisions.

Frames and decisions go in, segments come out. No clock, no device, no model: the caller says whether a frame is speech.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

import numpy as np

from pipeline.bounds import one_of, within
from pipeline.events import Samples, SpeechSegment


@dataclass(frozen=True)
class EndpointingOptions:
    """Endpointing rules, in milliseconds of audio."""

    frame_ms: int = one_of(20, 10, 20, 30)
    # Audio kept from before the first frame of a segment and from after its last: quiet onsets and ends.
    pre_roll_ms: int = within(100, 0, 2_000)
    post_roll_ms: int = within(80, 0, 2_000)
    # So far from sure speech, on both sides, what is only audible belongs to the segment: faint first and last sounds.
    faint_ms: int = within(500, 0, 2_000)
    # So many of the last frames must be speech before a segment opens: a click is one frame, a syllable is ten.
    trigger_ms: int = within(100, 20, 1_000)
    # Silence after the last speech frame that closes a segment.
    hangover_ms: int = within(500, 20, 10_000)
    # A segment with less speech than this is dropped as a noise burst. "Yes." has about 250 ms.
    min_speech_ms: int = within(140, 0, 5_000)
    # A segment is cut here at the latest; Whisper's window is 30 s.
    max_segment_ms: int = within(15_000, 1_000, 29_000)
    # A maximum-length cut falls on the quietest frame within this distance before the limit.
    cut_search_ms: int = within(3_000, 0, 30_000)


# Faint sound goes on across the closure of a stop consonant.
_CLOSURE_MS = 60


class _Frame(NamedTuple):
    samples: Samples
    speech: bool
    audible: bool


class Endpointer:
    """Turns frames and what was decided of them into segments.

    Segments never overlap. Between the first and the last sample of a stretch of speech nothing is lost: where the
    maximum length cuts, the next segment begins with the very next sample.
    """

    def __init__(self, options: EndpointingOptions) -> None:
        self.options = options
        frame = options.frame_ms
        self._pre_roll, self._post_roll = options.pre_roll_ms // frame, options.post_roll_ms // frame
        self._faint, self._closure = options.faint_ms // frame, _CLOSURE_MS // frame
        self._trigger = max(1, options.trigger_ms // frame)
        self._hangover = max(1, options.hangover_ms // frame)
        self._min_speech = max(1, options.min_speech_ms // frame)
        self.limit(None)
        # Not in speech: the newest frames, enough for the trigger window and what may be kept from before it.
        self._waiting: deque[_Frame] = deque(maxlen=self._trigger + self._faint + self._pre_roll)
        self._open: list[_Frame] = []
        self._open_start = 0
        self._in_speech = False
        self._continued = False  # the open segment follows a maximum-length cut
        self._silent = 0
        self._position = 0  # samples seen
        self._next_id = 0

    def limit(self, max_segment_ms: int | None) -> None:
        """Cut at this length, where it is less than the configured one, until told otherwise; None ends that."""
        options = self.options
        self._max = min(options.max_segment_ms, max_segment_ms or options.max_segment_ms) // options.frame_ms
        self._search = min(options.cut_search_ms // options.frame_ms, self._max - 1)

    def push(self, samples: Samples, is_speech: bool, audible: bool = False) -> list[SpeechSegment]:
        """One more frame; returns the segments that it completes (none, or one).

        ``audible``: not sure to be speech, but to be kept if it adjoins speech.
        """
        self._position += len(samples)
        frame = _Frame(samples, is_speech, audible or is_speech)
        if not self._in_speech:
            self._waiting.append(frame)
            # Hysteresis: most of the trigger window must be speech to open, one speech frame keeps it open.
            before = max(0, len(self._waiting) - self._trigger)
            if sum(frame.speech for frame in islice(self._waiting, before, None)) * 10 >= 8 * self._trigger:
                self._start(before)
            return []
        self._open.append(frame)
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
            if sum(frame.speech for frame in self._waiting) < self._min_speech:
                return []
            self._start(0)
        return self._close()

    def _start(self, before: int) -> None:
        """Open a segment at the first speech among the waiting frames that is not ``before``."""
        frames = list(self._waiting)
        first = next(i for i, frame in enumerate(frames) if frame.speech and i >= before)
        first -= self._reach(reversed(frames[max(0, first - self._faint) : first])) + self._pre_roll
        self._open = frames[max(0, first) :]
        self._open_start = self._position - sum(len(frame.samples) for frame in self._open)
        self._waiting.clear()
        self._in_speech = True
        self._silent = 0

    def _close(self) -> list[SpeechSegment]:
        frames, self._open = self._open, []
        needed = 1 if self._continued else self._min_speech
        self._in_speech = self._continued = False
        if sum(frame.speech for frame in frames) < needed:
            # A noise burst. Its tail may be the pre-roll of what follows, for no segment holds it.
            self._waiting.extend(frames)
            return []
        end = _speech_end(frames)
        end += self._reach(frames[end : end + self._faint]) + self._post_roll
        self._waiting.extend(frames[end:])
        return [self._segment(frames[:end], forced=False)]

    def _reach(self, frames: Iterable[_Frame]) -> int:
        """How many frames, counted from speech, lie up to the last audible one that no longer pause parts from it."""
        reach = 0
        for count, frame in enumerate(frames, 1):
            if frame.audible:
                reach = count
            elif count - reach > self._closure:
                break
        return reach

    def _cut(self) -> SpeechSegment:
        """Cut the open segment at the quietest frame near its limit; the rest stays open."""
        # Beyond the limit, where the limit has become shorter than what is open, any frame will do.
        first = max(0, min(len(self._open), self._max) - self._search)
        # Where the limit is short, what is near it may be the pre-roll: a segment without speech.
        first = max(first, next((i for i, frame in enumerate(self._open) if frame.speech), 0))
        energies = [_energy(frame.samples) for frame in self._open[first:]]
        at = first + int(np.argmin(energies)) + 1 if energies else len(self._open)
        segment = self._segment(self._open[:at], forced=True)
        self._open_start += len(segment.samples)
        self._open = self._open[at:]
        self._continued = True
        return segment

    def _segment(self, frames: list[_Frame], forced: bool) -> SpeechSegment:
        samples = np.concatenate([frame.samples for frame in frames])
        segment = SpeechSegment(
            self._next_id,
            self._open_start,
            samples,
            forced_cut=forced,
            speech_end_sample=self._open_start + sum(len(frame.samples) for frame in frames[: _speech_end(frames)]),
            heard_sample=self._position,
        )
        self._next_id += 1
        return segment


def _speech_end(frames: Sequence[_Frame]) -> int:
    """How many frames there are up to the last that is speech."""
    return max((i for i, frame in enumerate(frames, 1) if frame.speech), default=0)


def _energy(frame: Samples) -> float:
    return float(np.mean(np.square(frame.astype(np.float32))))
