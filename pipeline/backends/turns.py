"""Who speaks, told by the voice, in one channel: turns of speech, the words where they begin, and the speakers of sentences."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..core import (
    SAMPLE_RATE,
    PipelineEvent,
    Samples,
    SegmentSoFar,
    SourceSentence,
    SpeakerOptions,
    SpeechSegment,
    StageSpec,
    Transcript,
    Word,
    with_stage,
)
from ..languages import MARKS, final_marks, spaced
from .voices import HOP_SAMPLES, WINDOW_SAMPLES, Vector, VoiceModel

# Less speech makes no new voice: it is the one that is most alike, if it is at all. Less than this says nothing of whom it is.
_LEAST_NEW_S, _LEAST_ALIKE, _LEAST_S = 1.0, 0.2, 0.25
# Of less speech, vectors of one voice may be so much less alike.
_LITTLE_S, _LITTLE_LESS = 2.0, 0.1
# In noise, too, where the softest tenth of the sound is at most 20 dB below speech.
_NOISY_LESS, _NOISY_RATIO = 0.1, 100
# A shorter gap in a voice is a breath or the closure of a consonant. In so long a piece of speech (3 s), the voice does not change.
_GAP_FRAMES, _PIECE_FRAMES = 9, 178
# The cosine of two pieces of what the model takes for one voice that are of two.
_ALIKE_PIECES = 0.35
# Sentences come at most so long after their audio.
_KEPT_S = 120.0
_MOST_VOICES = 50
# A turn begins at the end of a sentence, if one is so near: words are timed less exactly than voices.
_NEAR_S = 0.6


class VoiceTurn(NamedTuple):
    """A voice is heard from one time to another. Turns of several voices may overlap."""

    start_s: float
    end_s: float
    voice: int


class _Piece(NamedTuple):
    """Speech in which the voice does not change, as far as known."""

    start_s: float
    end_s: float
    vector: Vector | None
    """None: it is too short."""
    seconds: float
    group: int | None
    """The group of pieces with a voice like this one."""


class VoiceGroups:
    """Groups vectors by voice as they come. Pure; a group is the sum of its vectors, weighted by their seconds."""

    def __init__(self, threshold: float) -> None:
        """``threshold``: the cosine of two vectors of one voice, at least."""
        self.threshold = threshold
        self.sums: list[Vector] = []

    def group(self, vector: Vector | None, seconds: float, *, noisy: bool = False) -> int | None:
        """The number of the group of a vector of so much speech; None if that is too little to tell."""
        if vector is None:
            return None
        alike = [float(vector @ total / (np.linalg.norm(total) + 1e-9)) for total in self.sums]
        best = int(np.argmax(alike)) if alike else -1
        little = alike and min(seconds, float(np.linalg.norm(self.sums[best]))) < _LITTLE_S
        less = (_LITTLE_LESS if little else 0) + (_NOISY_LESS if noisy else 0)
        if alike and alike[best] >= self.threshold - less:
            self.sums[best] = self.sums[best] + seconds * vector
        elif seconds >= _LEAST_NEW_S and len(alike) < _MOST_VOICES:
            self.sums.append(seconds * vector)
            return len(self.sums) - 1
        elif not alike or alike[best] < _LEAST_ALIKE:
            return None
        return best


def with_speakers(model: VoiceModel, stages: Sequence[StageSpec], options: SpeakerOptions) -> list[StageSpec]:
    """``stages`` of one run, and those that tell its voices apart; see ``ToldSpeakers``."""
    told = ToldSpeakers(model, options)
    heard = with_stage(stages, "voices", told.hear, after="VAD")
    divided = with_stage(heard, "turns", told.divided, after="ASR")
    return with_stage(divided, "speakers", told.named, after="sentences")


class ToldSpeakers:
    """Names the voices of one run "1", "2" and so on. Each method runs on a thread of its own.

    Turns depend on segments and transcripts alone, not on when they come: they are the same in live runs and recordings.
    """

    def __init__(self, model: VoiceModel, options: SpeakerOptions) -> None:
        self._model, self._groups = model, VoiceGroups(options.threshold)
        self._heard: deque[SpeechSegment] = deque()
        self._told = -1
        """The last segment whose turns are known."""
        self._turns: deque[VoiceTurn] = deque()
        self._voice: int | None = None
        """The voice of the last word."""

    def hear(self, event: PipelineEvent | SpeechSegment | SegmentSoFar) -> object:
        """Keep the speech for a while."""
        if isinstance(event, SpeechSegment):
            self._heard.append(event)
        return event

    def divided(self, event: PipelineEvent) -> PipelineEvent:
        """The event; a transcript with the words where another voice begins."""
        if not isinstance(event, Transcript):
            return event
        for segment in list(self._heard):
            if self._told < segment.id <= event.segment_id:
                self._turns += self._turns_of(segment, event.words)
                self._told = segment.id
        while self._heard and self._heard[0].id <= self._told and self._heard[0].end_s < event.start_s - _KEPT_S:
            self._heard.popleft()
        starts, self._voice = turn_starts(event.words, list(self._turns), self._voice, apart=spaced(event.language))
        return replace(event, turns=starts) if starts else event

    def named(self, event: PipelineEvent) -> PipelineEvent:
        """The event; a sentence that has ended with its speaker, whose voice is heard longest in it."""
        if isinstance(event, Transcript | SourceSentence):
            while self._turns and self._turns[0].end_s < event.start_s - _KEPT_S:
                self._turns.popleft()
        if not isinstance(event, SourceSentence) or event.sound is not None:
            return event
        voice = longest_voice(list(self._turns), event.start_s, event.end_s)
        return event if voice is None else replace(event, speaker=str(1 + voice))

    def _turns_of(self, segment: SpeechSegment, words: Sequence[Word] = ()) -> list[VoiceTurn]:
        """The turns of a segment, in as many windows as it takes. ``words``: what was recognised in it, or after it."""
        turns: list[VoiceTurn] = []
        ends_s = [words[index].start_s for index in _sentence_ends(words)]
        begin_s = min([segment.speech_start_s, *(word.start_s for word in words[:1])])  # words may be in the silence
        end = segment.start_sample + len(segment.samples)
        length = end - max(segment.start_sample, round(begin_s * SAMPLE_RATE))
        windows = -(-length // WINDOW_SAMPLES)
        for number in range(windows):
            first, last = (end - length + length * window // windows for window in (number, number + 1))
            turns += self._turns_between(first, last, ends_s, [*self._turns, *turns])
        return turns

    def _turns_between(
        self, begin: int, end: int, ends_s: Sequence[float], before: Sequence[VoiceTurn]
    ) -> list[VoiceTurn]:
        """The turns between two samples of the stream, in a window that ends with them and begins in what was heard ``before``.

        The model often takes two voices for one, so what is one voice to it is divided into groups of pieces that are alike.
        """
        start = end - WINDOW_SAMPLES
        window = self._sound(start, end)
        frames, first_frame = (
            window.reshape(-1, HOP_SAMPLES),
            -((start - begin) // HOP_SAMPLES),
        )  # rounded up: turns begin in it
        activity = self._model.activity(window)
        silent: NDArray[np.bool_] = np.asarray(~activity.any(axis=1))
        noisy = _is_noisy(frames, ~silent)
        if silent[first_frame:].sum() * HOP_SAMPLES >= _LEAST_NEW_S * SAMPLE_RATE:
            quiet = silent & self._model.activity(window, levelled=True).any(axis=1)
            activity = np.column_stack([activity, quiet])
        cuts = [round((end_s * SAMPLE_RATE - start) / HOP_SAMPLES) for end_s in ends_s]
        turns: list[VoiceTurn] = []
        for active in activity.T:
            alone = active & (activity.sum(axis=1) == 1)
            groups, pieces = VoiceGroups(_ALIKE_PIECES), list[_Piece]()
            for first, last in _pieces(active, first_frame, cuts):
                clear = alone[first:last].sum() * HOP_SAMPLES >= _LEAST_NEW_S * SAMPLE_RATE
                speech = frames[first:last][(alone if clear else active)[first:last]].ravel()
                seconds = len(speech) / SAMPLE_RATE
                vector = self._model.vector(speech) if seconds >= _LEAST_S else None
                start_s, end_s = ((start + frame * HOP_SAMPLES) / SAMPLE_RATE for frame in (first, last))
                pieces.append(_Piece(start_s, end_s, vector, seconds, groups.group(vector, seconds, noisy=noisy)))
            voices = [
                self._groups.group(vectors / np.linalg.norm(vectors), float(np.linalg.norm(vectors)), noisy=noisy)
                for vectors in groups.sums
            ]
            grouped = [
                VoiceTurn(piece.start_s, piece.end_s, voice)
                for piece in pieces
                if piece.group is not None and (voice := voices[piece.group]) is not None
            ]
            same = [turn for turn in (*before, *grouped) if _is_active(turn, active, start)]
            for piece in pieces:
                if piece.group is None:
                    voice = (
                        self._groups.group(piece.vector, piece.seconds, noisy=noisy)
                        if not same
                        else _nearest(piece, same)
                    )
                    grouped += [VoiceTurn(piece.start_s, piece.end_s, voice)] if voice is not None else []
            turns += grouped
        return sorted(turns)

    def _sound(self, begin: int, end: int) -> Samples:
        """What was heard between two samples of the stream [end - begin]; silence where there is no segment."""
        sound = np.zeros(end - begin, np.int16)
        for segment in list(self._heard):
            first = segment.start_sample
            low, high = max(first, begin), min(first + len(segment.samples), end)
            if low < high:
                sound[low - begin : high - begin] = segment.samples[low - first : high - first]
        return sound


def _is_noisy(frames: Samples, active: NDArray[np.bool_]) -> bool:
    """Whether speech is hardly louder than the softest sound.

    Args:
        frames: of sound, [n, HOP_SAMPLES]; zeros are none.
        active: those with speech, [n].
    """
    power = np.square(frames, dtype=np.float32).mean(axis=1)
    heard = power > 0
    return bool((active & heard).any() and power[active].mean() < _NOISY_RATIO * np.percentile(power[heard], 10))


def _pieces(active: NDArray[np.bool_], begin: int, cuts: Sequence[int]) -> Iterator[tuple[int, int]]:
    """The stretches of active frames [n] from ``begin`` on, over short gaps, cut before the frames ``cuts``: first frame, and the one after the last."""
    frames = np.flatnonzero(active[begin:]) + begin
    for stretch in np.split(frames, np.flatnonzero(np.diff(frames) > _GAP_FRAMES) + 1):
        if len(stretch):
            bounds = [int(stretch[0]), int(stretch[-1]) + 1]
            bounds[1:1] = sorted({cut for cut in cuts if bounds[0] < cut < bounds[1]})
            for first, last in pairwise(bounds):
                count = -(-(last - first) // _PIECE_FRAMES)
                yield from pairwise([first + (last - first) * number // count for number in range(count + 1)])


def _is_active(turn: VoiceTurn, active: NDArray[np.bool_], start: int) -> bool:
    """Whether most frames of a turn are active; the first of them begins with the sample ``start``."""
    first, last = (max(0, round((time_s * SAMPLE_RATE - start) / HOP_SAMPLES)) for time_s in (turn.start_s, turn.end_s))
    return bool(2 * active[first:last].sum() > len(active[first:last]))


def _nearest(piece: _Piece, turns: Sequence[VoiceTurn]) -> int:
    return min(turns, key=lambda turn: max(turn.start_s - piece.end_s, piece.start_s - turn.end_s)).voice


def longest_voice(turns: Sequence[VoiceTurn], start_s: float, end_s: float, before: int | None = None) -> int | None:
    """The voice that is heard longest between two times, of several the one ``before``; None if none is."""
    heard_s: dict[int, float] = {}
    for turn in turns:
        both_s = min(turn.end_s, end_s) - max(turn.start_s, start_s)
        if both_s > 0:
            heard_s[turn.voice] = heard_s.get(turn.voice, 0.0) + both_s
    return max(heard_s, key=lambda voice: (heard_s[voice], voice == before), default=None)


def turn_starts(
    words: Sequence[Word], turns: Sequence[VoiceTurn], before: int | None, *, apart: bool = True
) -> tuple[tuple[int, ...], int | None]:
    """The words, by index, with which another voice begins than that of the word before, and the voice of the last one.

    A turn begins at the end of a sentence, or at either end of the words, if one is near.

    Args:
        before: the voice of the word before the first.
        apart: words are separated by blanks.
    """
    ends = [0, *_sentence_ends(words), len(words)]
    starts: dict[int, int | None] = {0: before}
    voice = before
    for index, word in enumerate(words):
        heard = longest_voice(turns, word.start_s, word.end_s, voice)
        if heard is None or heard == voice or (apart and index and not word.text[:1].isspace()):
            continue
        voice, begin_s = heard, word.start_s
        nearest = min(ends, key=lambda end: abs(_time(words, end) - begin_s))
        starts[nearest if abs(_time(words, nearest) - begin_s) <= _NEAR_S else index] = voice
    begun, voice = list[int](), before
    for index in sorted(starts):
        if index < len(words) and starts[index] != voice:
            begun += [index] if voice is not None else []
            voice = starts[index]
    return tuple(begun), voice


def _sentence_ends(words: Sequence[Word]) -> list[int]:
    """The words, by index, before which a sentence has ended."""
    return [index for index in range(1, len(words)) if set(final_marks(words[index - 1].text)) & set(MARKS)]


def _time(words: Sequence[Word], index: int) -> float:
    """The time before a word; after the last one, its end."""
    return words[index].start_s if index < len(words) else words[-1].end_s
