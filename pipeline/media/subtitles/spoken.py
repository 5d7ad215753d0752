"""Sentences as they were said, with the times of their words: openai/whisper's segments, and places of words in lines. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any

from ...core import SourceSentence, Transcript, Word, trimmed_words
from ...languages import spaced
from .lines import Lines
from .text import normalized


def whisper_segment(number: int, sentence: SourceSentence, text: str, heard: Iterable[Transcript]) -> dict[str, Any]:
    """A sentence with the fields of openai/whisper's segments, and ``text``. There are no tokens and no seeking.

    The recogniser's measures are the worst of the stretches, of those ``heard``, that the sentence spans.
    """
    parts = [
        transcript
        for transcript in heard
        if transcript.rejected is None
        and transcript.start_s < sentence.end_s
        and transcript.end_s > sentence.start_s
        and transcript.speaker == sentence.speaker
    ]
    return {
        "id": number,
        "start": round(sentence.start_s, 3),
        "end": round(sentence.end_s, 3),
        "text": text,
        "avg_logprob": min((transcript.mean_log_probability for transcript in parts), default=0.0),
        "compression_ratio": max((transcript.compression_ratio for transcript in parts), default=1.0),
        "no_speech_prob": max((transcript.no_speech_probability for transcript in parts), default=0.0),
        "seek": 0,
        "temperature": 0.0,
        "tokens": [],
    }


def whisper_words(sentence: SourceSentence) -> list[dict[str, Any]]:
    """The words as openai/whisper has them: joined, they are the text with a blank before it."""
    blank = " " if spaced(sentence.language) else ""
    return [
        {"word": blank + word.text, "start": round(word.start_s, 3), "end": round(word.end_s, 3)}
        | ({"probability": round(word.probability, 4)} if word.probability is not None else {})
        for word in trimmed_words(sentence)
    ]


def words_in_lines(sentence: SourceSentence, cues: list[Lines]) -> Iterator[list[list[tuple[Word, str]]]]:
    """The words of each cue and line with the text that is shown of each, blanks included.

    ``cues``: the laid-out text of the sentence, of which only blanks at breaks are left out.
    """
    words = trimmed_words(sentence)
    owners = iter([word for word in words for letter in normalized(word.text) if not letter.isspace()])
    word = words[0]
    for lines in cues:
        shown = []
        for line in lines:
            letters = []
            for letter in line:
                word = word if letter.isspace() else next(owners, word)
                letters.append((word, letter))
            parts = groupby(letters, lambda pairs: id(pairs[0]))
            shown.append(
                [(part[0][0], "".join(letter for _, letter in part)) for _, pairs in parts if (part := list(pairs))]
            )
        yield shown
