"""The reference of a live run: the whole recording recognised at once, with word times."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pipeline.bench.asr import packs
from pipeline.bench.errors import units
from pipeline.bench.vad import segments_of
from pipeline.config import PipelineConfig
from pipeline.events import Samples, SourceSentence, Word
from pipeline.languages import spaced
from pipeline.sentences.assembler import SentenceAssembler

if TYPE_CHECKING:
    from pipeline.loading import Models

_BEAMS = 5


@dataclass(frozen=True)
class SpokenUnit:
    """A word, or a character in a language without spaces, and when it had been said."""

    text: str
    """Without case and punctuation; see ``pipeline.bench.errors.units``."""
    end_s: float


def offline_sentences(samples: Samples, models: Models, config: PipelineConfig) -> list[SourceSentence]:
    """The sentences of a recording, recognised in windows of several segments with at least five hypotheses.

    What the recogniser withholds is left out.
    """
    assembler, found = SentenceAssembler(config.sentences), []
    beams = max(_BEAMS, config.asr.beam_size)
    for pack in packs(segments_of(samples, config.vad)):
        for transcript in models.recognizer.transcribe_packed(pack, beams):
            found += assembler.push(transcript)
    found += assembler.end()
    return [event for event in found if isinstance(event, SourceSentence)]


def spoken_units(sentences: Iterable[SourceSentence]) -> list[SpokenUnit]:
    """The units of sentences with the end of the word that each belongs to.

    If word times are unknown, the time of a sentence is divided evenly among its units.
    """
    found: list[SpokenUnit] = []
    for sentence in sentences:
        if not sentence.words:
            texts = units(sentence.text, sentence.language)
            step_s = (sentence.end_s - sentence.start_s) / max(1, len(texts))
            found += [SpokenUnit(text, sentence.start_s + step_s * at) for at, text in enumerate(texts, 1)]
        for text, end_s in _whole_words(sentence.words, sentence.language):
            found += [SpokenUnit(unit, end_s) for unit in units(text, sentence.language)]
    return found


def _whole_words(words: Sequence[Word], language: str) -> list[tuple[str, float]]:
    """The texts and ends of words. In a language with spaces, parts without a blank between them are one word: 1 ,000."""
    found: list[tuple[str, float]] = []
    for word in words:
        if found and spaced(language) and not word.text[:1].isspace():
            found[-1] = found[-1][0] + word.text, word.end_s
        else:
            found.append((word.text, word.end_s))
    return found
