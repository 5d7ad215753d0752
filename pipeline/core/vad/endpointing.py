"""Endpointing: a pure state machine that turns frames and their speech decisions into segments.

It uses no clock, device or model: the caller decides whether a frame is speech.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import NamedTuple

import numpy as np

from ..events import SAMPLE_RATE, Samples, SpeechSegment
from .options import VadConfig

# Maximum silence inside faint sound: the closure of a stop consonant.
_CLOSURE_MS = 60
# Loud sound of this length in the silence after speech is a voiceless word, and so is more of it no later than this. It keeps the
# segment open for so long at most.
_WORD_MS, _AFTER_WORD_MS, _MOST_WORDS_MS = 100, 100, 400


class _Frame(NamedTuple):
    samples: Samples
    speech: bool
    audible: bool
    loud: bool


class Endpointer:
    """Turns frames and their decisions into segments.

    Segments never overlap, and no sample inside continuous speech is lost: after a maximum-length cut, the next segment
    begins with the next sample.
    """

    def __init__(self, options: VadConfig) -> None:
        self.options = options
        frame = options.frame_ms
        self._pre_roll, self._post_roll = options.pre_roll_ms // frame, options.post_roll_ms // frame
        self._faint, self._closure = options.faint_ms // frame, _CLOSURE_MS // frame
        self._trigger = max(1, options.trigger_ms // frame)
        self._hangover = max(1, options.hangover_ms // frame)
        self._word, self._after_word, self._most_words = (
            each // frame for each in (_WORD_MS, _AFTER_WORD_MS, _MOST_WORDS_MS)
        )
        self._min_speech = max(1, options.min_speech_ms // frame)
        self._max = options.max_segment_ms // frame
        self._cut_search = min(options.cut_search_ms // frame, self._max - 1)
        # Outside speech, the newest frames: the trigger window, and the faint sound and pre-roll, or the silence, before it.
        before = max(self._faint + self._pre_roll, options.filled_ms // frame)
        self._recent: deque[_Frame] = deque(maxlen=self._trigger + before)
        self._open: list[_Frame] = []
        self._open_start = self._speech_start = 0
        self._in_speech = False
        self._after_cut = False  # True if the open segment follows a maximum-length cut
        self._silent_frames = 0
        self.received = 0
        """Samples of all frames so far."""
        self._next_id = 0

    @property
    def in_speech(self) -> bool:
        """Whether a segment is open."""
        return self._in_speech

    @property
    def silent_ms(self) -> int:
        """Silence at the end of the open segment."""
        return self._silent_frames * self.options.frame_ms if self._in_speech else 0

    @property
    def settled(self) -> int:
        """Samples to whose speech, as far as it was detected, no later segment adds any."""
        if self._in_speech:
            return self._speech_start
        reach = self._trigger + 2 * (self._faint + self._pre_roll)  # twice at the end of the input: see ``flush``
        return self.received - reach * self.options.frame_ms * SAMPLE_RATE // 1000

    def so_far(self) -> SpeechSegment | None:
        """The open segment as it would be if it were closed now; None if it would be dropped."""
        if not self._in_speech or self._lacks_speech(self._open):
            return None
        return self._segment(self._open[: self._end_of(self._open)], forced=False)

    def push(self, samples: Samples, is_speech: bool, audible: bool = False, loud: bool = False) -> list[SpeechSegment]:
        """Add a frame; return the segments that it completes (none or one).

        ``audible``: the frame may not be speech, but is kept if it adjoins speech. ``loud``: it is kept in the silence after
        speech, if it is one of several.
        """
        self.received += len(samples)
        frame = _Frame(samples, is_speech, audible or is_speech, loud)
        if not self._in_speech:
            self._recent.append(frame)
            # Hysteresis: a segment opens if 80 % of the trigger window is speech; one speech frame keeps it open.
            before = max(0, len(self._recent) - self._trigger)
            if sum(frame.speech for frame in islice(self._recent, before, None)) * 10 >= 8 * self._trigger:
                self._start(before)
            return []
        self._open.append(frame)
        self._silent_frames = 0 if is_speech else self._silent_frames + 1
        if self._silent_frames >= self._hangover + self._most_words or (
            self._silent_frames >= self._hangover and not self._words_end(self._open[-self._word - self._after_word :])
        ):
            return self._close()
        if len(self._open) >= self._max:
            return [self._cut()]
        return []

    def flush(self) -> list[SpeechSegment]:
        """End the input; return the segment in progress, if any."""
        if not self._in_speech:
            # Speech that began too close to the end to open a segment still counts.
            before = max(0, len(self._recent) - self._trigger - self._faint - self._pre_roll)
            if sum(frame.speech for frame in islice(self._recent, before, None)) < self._min_speech:
                return []
            self._start(before)
        return self._close()

    def _start(self, before: int) -> None:
        """Open a segment at the first speech frame of the recent frames from index ``before`` on."""
        frames = list(self._recent)
        first = next(i for i, frame in enumerate(frames) if frame.speech and i >= before)
        first -= self._audible_reach(reversed(frames[max(0, first - self._faint) : first])) + self._pre_roll
        first = max(0, first)
        self._speech_start = self.received - sum(len(frame.samples) for frame in frames[first:])
        filled = self.options.filled_ms and self._next_id and len(frames) < (self._recent.maxlen or 0)
        self._open = frames if filled else frames[first:]
        self._open_start = self.received - sum(len(frame.samples) for frame in self._open)
        self._recent.clear()
        self._in_speech = True
        self._silent_frames = 0

    def _close(self) -> list[SpeechSegment]:
        frames, self._open = self._open, []
        dropped = self._lacks_speech(frames)
        self._in_speech = self._after_cut = False
        if dropped:
            # Noise. No segment contains these frames, so they may become the pre-roll of the next one.
            self._recent.extend(frames)
            return []
        end = self._end_of(frames)
        self._recent.extend(frames[end:])
        return [self._close_segment(frames[:end], forced=False)]

    def _lacks_speech(self, frames: Sequence[_Frame]) -> bool:
        """Whether the frames of a segment have too little speech to be one."""
        return sum(frame.speech for frame in frames) < (1 if self._after_cut else self._min_speech)

    def _end_of(self, frames: list[_Frame]) -> int:
        """Number of frames of a segment: up to its last speech, voiceless words and faint sound after it, and the post-roll."""
        end = _speech_end(frames)
        reach = self._audible_reach(frames[end : end + self._faint])
        return end + max(reach, self._words_end(frames[end:])) + self._post_roll

    def _words_end(self, frames: Sequence[_Frame]) -> int:
        """Number of frames up to the end of the last loud sound that is as long as a word; 0 if there is none."""
        words_end = length = 0
        for count, frame in enumerate(frames, 1):
            length = length + 1 if frame.loud else 0
            words_end = count if length >= self._word else words_end
        return words_end

    def _audible_reach(self, frames: Iterable[_Frame]) -> int:
        """Count frames, going away from speech, up to the last audible one before a gap above ``_CLOSURE_MS``."""
        reach = 0
        for count, frame in enumerate(frames, 1):
            if frame.audible:
                reach = count
            elif count - reach > self._closure:
                break
        return reach

    def _cut(self) -> SpeechSegment:
        """Cut the open segment at the quietest frame near its limit; the rest stays open."""
        first = max(0, len(self._open) - self._cut_search)
        # With a short limit, the search range may reach into the pre-roll: the segment would have no speech.
        first = max(first, next((i for i, frame in enumerate(self._open) if frame.speech), 0))
        energies = [np.mean(np.square(frame.samples.astype(np.float32))) for frame in self._open[first:]]
        cut = first + int(np.argmin(energies)) + 1 if energies else len(self._open)
        segment = self._close_segment(self._open[:cut], forced=True)
        self._open_start += len(segment.samples)
        self._speech_start = self._open_start
        self._open = self._open[cut:]
        self._after_cut = True
        return segment

    def _close_segment(self, frames: list[_Frame], forced: bool) -> SpeechSegment:
        segment = self._segment(frames, forced)
        self._next_id += 1
        return segment

    def _segment(self, frames: list[_Frame], forced: bool) -> SpeechSegment:
        samples = np.concatenate([frame.samples for frame in frames])
        return SpeechSegment(
            self._next_id,
            self._open_start,
            samples,
            forced_cut=forced,
            speech_end_sample=self._open_start + sum(len(frame.samples) for frame in frames[: _speech_end(frames)]),
            heard_sample=self.received,
            speech_start_sample=self._speech_start,
        )


def _speech_end(frames: Sequence[_Frame]) -> int:
    """Number of frames up to and including the last speech frame."""
    return max((i for i, frame in enumerate(frames, 1) if frame.speech), default=0)
