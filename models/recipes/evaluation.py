"""Measures a compiled translator with the pipeline itself: scores, beginnings of sentences, odd input, time."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from measure import bleu_chrf
from odd import odd_lines
from pairs import Data
from tatoeba import Pair, spoken

from pipeline.backends.marian.model import MarianModel
from pipeline.backends.nmt_options import NmtConfig
from pipeline.core.nmt.translator import TranslationRequest
from pipeline.events import SourceSentence, Translation

BEAMS = (1, 4)
SAMPLES = 50  # sentences of each test set whose translations are reported
HALVES = 100  # sentences of each test set that are cut in half
_FINAL_MARKS = ".!?。！？…"
# A translation of half a sentence invents an ending if it has a final mark, or is so many times as long as the reference's
# share. References are freer than their sources: 1.5 spares most of the honest ones.
_LONGEST_SHARE = 1.5
# Length in words (English) or characters (Chinese) of the shortest sentence that is cut.
_SHORTEST = {"en": 6, "zh": 8}
_REPEATS = 4  # of a phrase in sequence that are a loop, unless the source has them


@dataclass(frozen=True)
class Beginnings:
    """What a translator makes of sentences that are cut in half."""

    sentences: int
    marked: int
    """Translations with a final mark."""
    long: int
    """Translations longer than ``_LONGEST_SHARE`` times the reference's share."""
    invented: int
    """Either of the two."""
    examples: tuple[tuple[str, str], ...]
    """Some of the halves and their translations."""


@dataclass(frozen=True)
class Oddities:
    """What a translator makes of odd input."""

    lines: int
    searched_again: int
    """The first search looped or reached the limit; the second one is what counts."""
    truncated: int
    looped: tuple[tuple[str, str], ...]
    """Lines and translations in which a phrase still repeats."""


@dataclass(frozen=True)
class Measured:
    """All figures of a translator."""

    scores: dict[tuple[str, int], dict[str, Any]]
    """``bleu_chrf`` by test set and number of beams."""
    beginnings: Beginnings
    oddities: Oddities
    load_s: float
    sentence_ms: float
    """Processor time of a sentence of 12 words, or 20 characters, on one core, greedy."""
    megabytes: float
    samples: dict[str, list[str]]
    """Greedy translations of the first ``SAMPLES`` sentences of each test set."""


def styled_sets(data: Data) -> dict[str, list[Pair]]:
    """All test sets, as written and in spoken style; the phrasebook's as written."""
    sets: dict[str, list[Pair]] = {}
    for name, pairs in data.tests.items():
        sets[name] = pairs
        sets[f"{name}, spoken style"] = [(spoken(source), target) for source, target in pairs]
    return sets | {"phrasebook": data.test_phrases}


def measure(directory: Path, data: Data, languages: tuple[str, str], beams: Iterable[int] = BEAMS) -> Measured:
    """All figures of the compiled translator in ``directory``."""
    began = time.process_time()
    model = MarianModel.load(directory, NmtConfig(cached_sentences=0, beam_size=max(beams)))
    load_s = time.process_time() - began
    return Measured(
        score(model, styled_sets(data), languages[1], beams),
        beginnings(model, data, *languages),
        oddities(model, data, languages[0]),
        load_s,
        sentence_ms(model, data, languages[0]),
        sum(path.stat().st_size for path in directory.iterdir()) / 1e6,
        {name: [t.text for t in translations(model, pairs[:SAMPLES])] for name, pairs in data.tests.items()},
    )


def score(
    model: MarianModel, sets: dict[str, list[Pair]], target: str, beams: Iterable[int]
) -> dict[tuple[str, int], dict[str, Any]]:
    """``bleu_chrf`` of the translations of each set, with each number of beams."""
    return {
        (name, width): bleu_chrf(
            [made.text for made in translations(model, pairs, width)], [b for _, b in pairs], target
        )
        for name, pairs in sets.items()
        for width in beams
    }


def translations(model: MarianModel, pairs: Iterable[Pair], beams: int = 1) -> list[Translation]:
    return [translation(model, source, beams) for source, _ in pairs]


def translation(model: MarianModel, text: str, beams: int = 1) -> Translation:
    events = model.stream(TranslationRequest(SourceSentence(0, model.languages[0] or "und", text), beams=beams))
    return next(event for event in events if isinstance(event, Translation))


def sentence_ms(model: MarianModel, data: Data, source: str) -> float:
    units = 20 if source == "zh" else 12
    texts = [text for pairs in data.tests.values() for text, _ in pairs if len(_units(text, source)) == units]
    began = time.process_time()
    for text in texts:
        translation(model, text)
    return 1000 * (time.process_time() - began) / len(texts)


def beginnings(model: MarianModel, data: Data, source: str, target: str) -> Beginnings:
    """The translations of sentences that are cut in half; see ``_LONGEST_SHARE``."""
    halves = []
    for pairs in data.tests.values():
        cut = _halves(pairs, source)
        halves += cut[:: max(1, len(cut) // HALVES)][:HALVES]
    found = [translation(model, text).text.strip() for text, _, _ in halves]
    marked = [made.endswith(tuple(_FINAL_MARKS)) for made in found]
    long = [too_long(made, wanted, share, target) for made, (_, wanted, share) in zip(found, halves, strict=True)]
    examples = tuple((half[0], text) for half, text in zip(halves, found, strict=True))
    return Beginnings(len(halves), sum(marked), sum(long), sum(map(max, marked, long)), examples[::15])


def too_long(translation: str, reference: str, share: float, language: str) -> bool:
    """Whether a translation of ``share`` of a sentence is longer than that share of ``reference`` explains."""
    return len(_units(translation, language)) > _LONGEST_SHARE * share * len(_units(reference, language))


def _halves(pairs: Sequence[Pair], source: str) -> list[tuple[str, str, float]]:
    """(first half, reference of the whole, the half's share) of the sentences that are long enough."""
    gap, halves = "" if source == "zh" else " ", []
    for text, reference in pairs:
        units = _units(text, source)
        if len(units) >= _SHORTEST[source]:
            count = len(units) // 2
            halves.append((gap.join(units[:count]).rstrip(",，、;；:："), reference, count / len(units)))
    return halves


def _units(text: str, language: str) -> list[str]:
    return list(text) if language == "zh" else text.split()


def oddities(model: MarianModel, data: Data, source: str) -> Oddities:
    """The translations of ``odd_lines``, made from the test sentences."""
    lines = odd_lines([text for pairs in data.tests.values() for text, _ in pairs], source)
    found = [translation(model, line) for line in lines]
    looped = tuple(
        (line, made.text) for line, made in zip(lines, found, strict=True) if loops(made.text) and not loops(line)
    )
    return Oddities(len(lines), sum(t.searched_again for t in found), sum(t.truncated for t in found), looped)


def loops(text: str) -> bool:
    """Whether a phrase of up to 24 characters with a letter or sign stands ``_REPEATS`` times in sequence."""
    plain = text.lower().replace(" ", "")
    for size in range(1, 25):
        for start in range(len(plain) - size * _REPEATS + 1):
            phrase = plain[start : start + size]
            if any(c.isalpha() for c in phrase) and plain.startswith(phrase * _REPEATS, start):
                return True
    return False
