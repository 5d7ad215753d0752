"""The words of a sentence as a reader sees them, with their times. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pipeline.events import SourceSentence, Word
from pipeline.languages import spaced


def whole_words(sentence: SourceSentence) -> list[Word]:
    """The words without blanks at their ends; joined, with blanks where the language has them, they are the text.

    Pieces of a recogniser without a blank between them are one word, as " 1" and ",000" are. In a language without blanks,
    only marks belong to the word before. If word times are unknown, the time is divided evenly among the words.
    """
    apart = spaced(sentence.language)
    found: list[Word] = []
    for piece in sentence.words or _divided(sentence, apart):
        if found and not piece.text[:1].isspace() and (apart or not piece.text[:1].isalnum()):
            found[-1] = replace(found[-1], text=found[-1].text + piece.text, end_s=piece.end_s)
        else:
            found.append(piece)
    return [replace(word, text=word.text.strip()) for word in found]


def _divided(sentence: SourceSentence, apart: bool) -> Sequence[Word]:
    texts = [f" {text}" for text in sentence.text.split()] if apart else list(sentence.text)
    step_s = (sentence.end_s - sentence.start_s) / max(1, len(texts))
    starts_s = [sentence.start_s + step_s * at for at in range(len(texts))]
    return [Word(text, start_s, start_s + step_s) for text, start_s in zip(texts, starts_s, strict=True)]
