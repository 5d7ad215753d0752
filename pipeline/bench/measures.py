"""The figures of a live run, from its events with the times at which they were received. Pure.

docs/measuring.md defines each figure.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..core import SourceSentence, SourceText, State, TargetText, Translation, trimmed_words
from ..media import (
    Emission,
    Reference,
    Scores,
    TextSoFar,
    Unit,
    aligned,
    mean_scores,
    normalized_erasure,
    stream_scores,
    unit_of,
)
from ..media import units as text_units
from .words import (
    Newest,
    ReceivedEvent,
    ShownUnit,
    erased_units,
    is_final,
    scored_units,
    shown_units,
    source_texts,
    steady_units,
    target_texts,
)


@dataclass(frozen=True)
class Spread:
    """Seconds. Percentiles are interpolated linearly."""

    count: int
    mean_s: float
    p50_s: float
    p90_s: float

    @classmethod
    def of(cls, values_s: Sequence[float]) -> Spread | None:
        """The spread of values in seconds; None without values."""
        if not values_s:
            return None
        p50_s, p90_s = (float(value) for value in np.percentile(values_s, [50, 90]))
        return cls(len(values_s), statistics.fmean(values_s), p50_s, p90_s)


@dataclass(frozen=True)
class TextMeasures:
    """The figures of one text: the recognised one, or a translation."""

    unit: Unit
    units: int
    """Units of the final text, split at spaces; punctuation belongs to its word."""
    first_shown: Spread | None
    """Delay from the end of each word until it was first shown; None if word times are unknown."""
    settled: Spread | None
    """Delay from the end of each word until it stood where and as it does in the end."""
    final: Spread | None
    """Delay from the end of each word until it was declared final."""
    erasure: float
    """Units withdrawn per unit of the final text."""
    changed: float
    """Share of the final words that had another word in their place before. Case and punctuation do not count."""
    changed_late: float
    """Share of those that changed more than ``LATE_S`` seconds after something was shown in their place."""
    kept: float
    """Share of the words that were called steady that the final text has, in order."""
    steady: Spread | None
    """Delay from the end of each of these words until it was called steady."""
    displayed_lagging: Scores | None
    """Lagging of the text as displayed: a unit counts from its last display."""
    final_lagging: Scores | None
    """Lagging of the final text."""


@dataclass(frozen=True)
class WordErrors:
    """Differences of the final source text from a reference, in words (or characters) without case and punctuation."""

    units: int
    """Number of words (or characters) of the reference."""
    substituted: int
    missing: int
    extra: int

    @property
    def rate(self) -> float:
        """Word error rate, or character error rate."""
        return (self.substituted + self.missing + self.extra) / max(1, self.units)


@dataclass(frozen=True)
class LiveMeasures:
    """The figures of a live run."""

    source: TextMeasures
    target: TextMeasures
    target_after_source: Spread | None
    """Delay from the first recognised text of each sentence to the first text of its translation."""
    against_offline: WordErrors | None
    """The recognised text against that of the whole recording recognised at once; None if that is unknown."""
    against_text: WordErrors | None
    """The recognised text against a given one; None without one."""


@dataclass(frozen=True)
class SpokenUnit:
    """A word, or a character in a language without spaces, and when it had been said."""

    text: str
    """The word without case and punctuation; see ``pipeline.bench.words.scored_units``."""
    end_s: float


def measured(
    received: Sequence[ReceivedEvent],
    languages: tuple[str, str],
    duration_s: float,
    *,
    offline: Sequence[SourceSentence] | None = None,
    references: Sequence[Reference] = (),
    transcript: str | None = None,
) -> LiveMeasures:
    """Measure a run.

    Args:
        languages: spoken and translated into.
        offline: the sentences of the whole recording recognised at once, with word times; None: unknown.
        references: translations to score against; without any, each sentence is scored against its own translation.
        transcript: what is said.
    """
    spoken_language, language = languages
    source, target = source_texts(received), target_texts(received, language)
    sentences = [one.event for one in received if isinstance(one.event, SourceSentence)]
    source_units, target_units = shown_units(source, spoken_language), shown_units(target, language)
    spoken = None if offline is None else spoken_units(offline)
    ends_s = ends_of(source_units, spoken or [])
    target_ends_s = diagonal_ends(target_units, _ends_by_sentence(source_units, ends_s))
    texts = [unit.text for unit in source_units]
    wanted = None if transcript is None else scored_units(transcript, spoken_language)
    source_references = [] if offline is None else _references(offline, unit_of(spoken_language))
    # A reference without times covers the whole recording.
    timed = [replace(one, duration_ms=min(one.duration_ms, duration_s * 1000)) for one in references]
    return LiveMeasures(
        _text_measures(source, source_units, ends_s, spoken_language, source_references, sentences, duration_s),
        _text_measures(target, target_units, target_ends_s, language, timed, sentences, duration_s),
        Spread.of(_first_text_delays(source, target)),
        None if spoken is None else word_errors([unit.text for unit in spoken], texts),
        None if wanted is None else word_errors(wanted, texts),
    )


def _text_measures(
    texts: Sequence[Newest],
    shown: Sequence[ShownUnit],
    ends_s: Sequence[float | None],
    language: str,
    references: Sequence[Reference],
    sentences: Sequence[SourceSentence],
    duration_s: float,
) -> TextMeasures:
    unit = unit_of(language)
    displayed = _emitted(texts, unit)
    final = _emitted([newest for newest in texts if is_final(newest.state)], unit)
    count = sum(map(len, displayed.values()))
    timed = [(word, end_s) for word, end_s in zip(shown, ends_s, strict=True) if end_s is not None]
    steady = steady_units(texts, language)
    kept = [(each.called_s, ends_s[each.place]) for each in steady if each.place is not None]
    return TextMeasures(
        unit,
        count,
        Spread.of([word.shown_s - end_s for word, end_s in timed]),
        Spread.of([word.settled_s - end_s for word, end_s in timed]),
        Spread.of([word.final_s - end_s for word, end_s in timed]),
        normalized_erasure(erased_units(texts, unit), count),
        sum(word.changed for word in shown) / max(1, len(shown)),
        sum(word.changed_late for word in shown) / max(1, len(shown)),
        len(kept) / max(1, len(steady)),
        Spread.of([called_s - end_s for called_s, end_s in kept if end_s is not None]),
        lagging(displayed, references, sentences, duration_s),
        lagging(final, references, sentences, duration_s),
    )


def _emitted(newest: Iterable[Newest], unit: Unit) -> dict[int, list[Emission]]:
    """The emissions of each sentence."""
    texts: dict[int, TextSoFar] = {}
    for item in newest:
        texts.setdefault(item.state.sentence, TextSoFar(unit)).push(_in_progress(item.state), item.elapsed_s)
    return {number: text.emissions() for number, text in sorted(texts.items())}


def _in_progress(state: State) -> SourceText | TargetText:
    """A state as one that may go on."""
    if isinstance(state, SourceSentence):
        return SourceText(state.sentence, state.language, state.text, heard_s=state.heard_s)
    if isinstance(state, Translation):
        return TargetText(state.sentence, state.language, state.text, heard_s=state.heard_s)
    return state


def lagging(
    emitted: Mapping[int, Sequence[Emission]],
    references: Sequence[Reference],
    sentences: Sequence[SourceSentence],
    duration_s: float,
) -> Scores | None:
    """LAAL and LongYAAL over the sentences of ``references``, to which the text is resegmented: StreamLAAL.

    Without references, over the run's own sentences that take time, each with its own text as the reference.
    """
    if references:
        return stream_scores(
            [unit for of_sentence in emitted.values() for unit in of_sentence], references, 1000 * duration_s
        )
    pairs = []
    for sentence in sentences:
        if sentence.end_s <= sentence.start_s:  # words that were heard after the end of the speech
            continue
        text = emitted.get(sentence.sentence, [])
        reference = Reference(
            tuple(unit.text for unit in text), sentence.start_s * 1000, (sentence.end_s - sentence.start_s) * 1000
        )
        pairs.append((reference, text))
    return mean_scores(pairs, 1000 * duration_s)


def _references(sentences: Sequence[SourceSentence], unit: Unit) -> list[Reference]:
    return [
        Reference(tuple(words), sentence.start_s * 1000, (sentence.end_s - sentence.start_s) * 1000)
        for sentence in sentences
        if (words := text_units(sentence.text, unit)) and sentence.end_s > sentence.start_s
    ]


def spoken_units(sentences: Iterable[SourceSentence]) -> list[SpokenUnit]:
    """The units of sentences with the end of the word that each belongs to; see ``trimmed_words``."""
    return [
        SpokenUnit(unit, word.end_s)
        for sentence in sentences
        for word in trimmed_words(sentence)
        for unit in scored_units(word.text, sentence.language)
    ]


def ends_of(shown: Sequence[ShownUnit], spoken: Sequence[SpokenUnit]) -> list[float | None]:
    """For each unit shown, the end of the equal unit that was spoken; None if the alignment pairs it with no equal one."""
    ends: list[float | None] = [None] * len(shown)
    for i, j in aligned([unit.text for unit in spoken], [unit.text for unit in shown]):
        if i is not None and j is not None and spoken[i].text == shown[j].text:
            ends[j] = spoken[i].end_s
    return ends


def _ends_by_sentence(shown: Sequence[ShownUnit], ends_s: Sequence[float | None]) -> dict[int, list[float]]:
    """For each sentence, the end of each of its units.

    A unit without one takes that of the unit before it, or else of the next. Sentences without any are left out.
    """
    ends: dict[int, list[float | None]] = {}
    for unit, end_s in zip(shown, ends_s, strict=True):
        ends.setdefault(unit.sentence, []).append(end_s)
    filled: dict[int, list[float]] = {}
    for number, of_sentence in ends.items():
        last = next((end_s for end_s in of_sentence if end_s is not None), None)
        if last is not None:
            filled[number] = [last := last if end_s is None else end_s for end_s in of_sentence]
    return filled


def diagonal_ends(shown: Sequence[ShownUnit], ends_s: Mapping[int, Sequence[float]]) -> list[float | None]:
    """For each unit of a translation, the end of the source unit at the same share of its sentence.

    Unit i of n (from 1) needs the first ⌈i·m/n⌉ of m source units: the ideal policy of average lagging (Ma et al. 2019,
    https://arxiv.org/abs/1810.08398), with the real times of the words instead of an even pace. None if they are unknown.

    Args:
        ends_s: sentence → the ends of its source units.
    """
    lengths: dict[int, int] = {}
    for unit in shown:
        lengths[unit.sentence] = lengths.get(unit.sentence, 0) + 1
    counts: dict[int, int] = {}
    ends: list[float | None] = []
    for unit in shown:
        i = counts[unit.sentence] = counts.get(unit.sentence, 0) + 1
        of_source = ends_s.get(unit.sentence)
        needed = math.ceil(i * len(of_source) / lengths[unit.sentence]) if of_source else 0
        ends.append(of_source[needed - 1] if of_source else None)
    return ends


def word_errors(reference: Sequence[str], hypothesis: Sequence[str]) -> WordErrors:
    """Count the differences in the best alignment."""
    pairs = aligned(reference, hypothesis)
    return WordErrors(
        len(reference),
        substituted=sum(i is not None and j is not None and reference[i] != hypothesis[j] for i, j in pairs),
        missing=sum(j is None for _, j in pairs),
        extra=sum(i is None for i, _ in pairs),
    )


def _first_text_delays(source: Iterable[Newest], target: Iterable[Newest]) -> list[float]:
    """For each sentence that has both texts, the seconds from the first source text to the first target text."""
    began_s, followed_s = _first_texts(source), _first_texts(target)
    return [followed_s[number] - began_s[number] for number in began_s if number in followed_s]


def _first_texts(texts: Iterable[Newest]) -> dict[int, float]:
    """Sentence → when its first text was shown."""
    firsts: dict[int, float] = {}
    for newest in texts:
        if newest.state.text.strip():
            firsts.setdefault(newest.state.sentence, newest.elapsed_s)
    return firsts
