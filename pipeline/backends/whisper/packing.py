"""Pack segments into one window, assign its words to them, and decide which to recognise again alone. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from ...core import SAMPLE_RATE, MissingSpeech, Samples, SpeechSegment, Transcript, Word, gaps, resembles_part
from ...languages import letters
from .continuation import continued

_Timed = TypeVar("_Timed", bound=Word | MissingSpeech)
# Letters per second, and the share of its time that they fill, below which a segment was probably left out of its window.
_FEWEST_LETTERS_PER_S = 5.0
_LEAST_FILLED = 0.6
_LETTERS_OF_ONE_OF_CHINESE = 3


@dataclass(frozen=True, eq=False)
class Pack:
    """Segments concatenated with short silences between them."""

    segments: tuple[SpeechSegment, ...]
    offsets: tuple[int, ...]
    """Index in ``samples`` at which each segment begins."""
    samples: Samples
    """[n] int16."""


def pack(segments: Sequence[SpeechSegment]) -> Pack:
    """Concatenate segments of one recording, given in order."""
    parts: list[Samples] = []
    offsets: list[int] = []
    offset = 0
    for segment, gap in zip(segments, (0, *gaps(segments)), strict=True):
        parts += [np.zeros(gap, np.int16), segment.samples]
        offsets.append(offset + gap)
        offset += gap + len(segment.samples)
    samples = segments[0].samples if len(segments) == 1 else np.concatenate(parts)
    return Pack(tuple(segments), tuple(offsets), samples)


def unpack(words: Sequence[_Timed], packed: Pack) -> list[list[_Timed]]:
    """The words of each segment, or its stretches without words, with times in the recording.

    ``words``: with times in seconds from the pack's first sample. Each goes to the segment that its middle lies in, or to the
    nearest one.
    """
    bounds = [
        (offset / SAMPLE_RATE, (offset + len(segment.samples)) / SAMPLE_RATE)
        for segment, offset in zip(packed.segments, packed.offsets, strict=True)
    ]
    shares: list[list[_Timed]] = [[] for _ in bounds]
    number = 0
    for word in words:
        middle = (word.start_s + word.end_s) / 2
        # Segments keep their order: never assign a word to an earlier segment than the word before.
        number = min(range(number, len(bounds)), key=lambda i: max(bounds[i][0] - middle, middle - bounds[i][1], 0.0))
        (start_s, end_s), segment = bounds[number], packed.segments[number]
        shift = segment.start_s - start_s
        times = (shift + min(max(time_s, start_s), end_s) for time_s in (word.start_s, word.end_s))
        shares[number].append(replace(word, start_s=next(times), end_s=next(times)))
    return shares


@dataclass(frozen=True)
class Share:
    """What was heard of one segment in a window."""

    segment: SpeechSegment
    words: Sequence[Word]
    transcript: Transcript | None
    """None if there are no words, or doubtful ones."""
    sparse: bool = False
    """Whether the words are few for so much speech."""

    @property
    def unsure(self) -> bool:
        """Whether the segment must be recognised alone."""
        return self.transcript is None or self.sparse


def sparse(segment: SpeechSegment, words: Sequence[Word]) -> bool:
    """Whether words, at least one, are too few for a segment and far from filling it: some were probably left out."""
    speech_s = segment.speech_end_s - segment.speech_start_s
    spoken = sum(_LETTERS_OF_ONE_OF_CHINESE if c >= "\u2e80" else 1 for word in words for c in letters(word.text))
    filled_s = words[-1].end_s - words[0].start_s
    return spoken < _FEWEST_LETTERS_PER_S * speech_s and filled_s < _LEAST_FILLED * speech_s


def doubted(shares: Sequence[Share], alone: Mapping[int, Transcript]) -> list[SpeechSegment]:
    """The neighbours of segments that were recognised alone with another text: their words may be mixed up.

    Where a segment has no words in the window but some alone, it is usually left out there. Its neighbours are doubted only
    if they seem to have its words. Few words of a segment that is rejected alone may be the neighbours' own.

    Args:
        shares: those of a window.
        alone: the transcripts of segments that were recognised alone, by segment id.
    """
    segments: dict[int, SpeechSegment] = {}
    for number, share in enumerate(shares):
        again = alone.get(share.segment.id)
        if again is None or not (again.is_sure or (share.words and _doubted(again))):
            continue
        text = again.text
        before = [near for near in shares[:number] if near.words][-1:]
        after = [near for near in shares[number + 1 :] if near.words][:1]
        if share.words:
            mixed_up = letters(_text(share)) != letters(text)
        else:
            mixed_up = resembles_part(text, "".join(map(_text, (*before, *after))))
        if mixed_up:
            segments |= {near.segment.id: near.segment for near in (*before, *after) if near.segment.id not in alone}
    return list(segments.values())


def _doubted(alone: Transcript) -> bool:
    """Whether something was heard that may not have been said."""
    return not (alone.is_sure or alone.is_noise)


def _text(share: Share) -> str:
    return "".join(word.text for word in share.words)


def in_order(shares: Sequence[Share], alone: Mapping[int, Transcript]) -> list[Transcript]:
    """The transcripts of a window's segments.

    ``alone``: the transcripts of segments that were recognised alone, by segment id. A rejected or uncertain one does not
    replace that of the window, unless the words of that are a neighbour's, who has them alone.
    """
    transcripts: list[Transcript] = []
    before: Word | None = None
    for number, share in enumerate(shares):
        again, transcript = alone.get(share.segment.id), share.transcript
        if again is not None and (again.is_sure or transcript is None or _elsewhere(number, shares, alone)):
            transcript = again
        elif transcript is not None and before is not None:
            transcript = continued(transcript, before)
        assert transcript is not None, f"segment {share.segment.id} was not recognised alone"
        before = share.words[-1] if share.words and transcript.is_sure else None
        transcripts.append(transcript)
    return transcripts


def _elsewhere(number: int, shares: Sequence[Share], alone: Mapping[int, Transcript]) -> bool:
    """Whether the words of a segment in which others are heard alone are those at the edge of a neighbour alone."""
    said = letters(_text(shares[number]))
    if not _doubted(alone[shares[number].segment.id]):
        return False
    before, after = shares[max(0, number - 1) : number], shares[number + 1 : number + 2]
    return any(
        edge(letters(alone[neighbour.segment.id].text), said) and not edge(letters(_text(neighbour)), said)
        for edge, neighbours in ((str.endswith, before), (str.startswith, after))
        for neighbour in neighbours
        if neighbour.segment.id in alone and alone[neighbour.segment.id].is_sure
    )
