"""The reference of a live run: the whole recording recognised at once, with word times."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pipeline.bench.asr import packs
from pipeline.bench.errors import units
from pipeline.bench.vad import segments_of
from pipeline.config import PipelineConfig
from pipeline.events import Samples, SourceSentence
from pipeline.sentences.assembler import SentenceAssembler
from pipeline.sentences.whole import whole_words

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
    """The units of sentences with the end of the word that each belongs to; see ``whole_words``."""
    return [
        SpokenUnit(unit, word.end_s)
        for sentence in sentences
        for word in whole_words(sentence)
        for unit in units(word.text, sentence.language)
    ]
