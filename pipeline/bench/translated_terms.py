"""Measure the translation of a glossary's terms: how many are kept, chrF and time, with the glossary and without.

Each line of the text file is a sentence, a tab, and its translation, in the languages of the glossary's first line; for the
other direction the columns change places.
"""

from __future__ import annotations

import argparse
import dataclasses
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pipeline.apps.cli import whole_number
from pipeline.apps.options import add_model_arguments, configured
from pipeline.bench.target import only_target
from pipeline.errors import UsageError
from pipeline.events import SourceSentence, Translation
from pipeline.glossary.files import load_glossary
from pipeline.glossary.terms import Glossary
from pipeline.languages import same_language

if TYPE_CHECKING:
    from pipeline.nmt.model import MarianModel
    from pipeline.nmt.pivot import PivotTranslator


@dataclass(frozen=True)
class Row:
    """All sentences, with the glossary or without."""

    texts: tuple[str, ...]
    kept: int
    """Terms whose preferred translation is in the text."""
    tokens: int
    seconds: float
    """Processor time of the fastest round."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("text", type=Path, metavar="FILE", help="sentences with their translations, separated by a tab")
    add_model_arguments(parser)
    parser.add_argument("--rounds", type=whole_number(1, 100), default=5, metavar="N", help="default: 5")


def run(options: argparse.Namespace) -> int:
    from pipeline.loading import translation_options
    from pipeline.nmt.compiler.chrf import chrf
    from pipeline.nmt.compiler.sample import read_sample
    from pipeline.nmt.load import load_translation_model

    config = configured(options)
    target = only_target(config)
    source = config.languages.source_of(target)
    if config.glossary.file is None:
        raise UsageError("no glossary is given; give --glossary FILE")
    whole = load_glossary(Path(config.glossary.file))
    sample = read_sample(options.text)
    if not sample.references:
        raise UsageError(f"{options.text} has no translations; give a sentence, a tab and its translation in each line")
    swapped = whole.languages is not None and same_language(source, whole.languages[1])
    texts, references = (sample.references, sample.sources) if swapped else (sample.sources, sample.references)
    nmt = dataclasses.replace(translation_options(config)[target], cached_sentences=0)
    model = load_translation_model(source, target, nmt)
    glossary = whole.between(source, target)
    without, with_terms = measured(model, texts, source, target, (Glossary(), glossary), options.rounds)
    seen = sum(len(glossary.found_in(text)) for text in texts)
    unspellable = {term.source for term in model.unspellable(glossary, target)}
    lost = sum(match.term.source in unspellable for text in texts for match in glossary.found_in(text))
    print(f"{source}-{target}: {len(texts)} sentences, {seen} terms, {lost} of them cannot be written by the model")
    for name, row in (("without", without), ("with", with_terms)):
        score, ms = chrf(row.texts, references), 1000 * row.seconds / len(texts)
        print(
            f"{name}: {row.kept} kept, chrF {score:.1f}, {ms:.2f} ms a sentence, {row.tokens / len(texts):.1f} tokens"
        )
    ratio = with_terms.seconds / without.seconds
    print(f"time a sentence {ratio:.2f}, a token {ratio * without.tokens / with_terms.tokens:.2f}")
    return 0


def measured(
    model: MarianModel | PivotTranslator,
    texts: Sequence[str],
    source: str,
    target: str,
    glossaries: tuple[Glossary, Glossary],
    rounds: int,
) -> tuple[Row, Row]:
    """Translate with each of two glossaries, sentence by sentence in turn. Terms are counted by the second one."""
    best = [float("inf"), float("inf")]
    found: list[list[Translation]] = [[], []]
    tokens = [0, 0]
    for _ in range(rounds):
        spent, found, tokens = [0.0, 0.0], [[], []], [0, 0]
        for number, text in enumerate(texts):
            for at, glossary in enumerate(glossaries):
                began = time.process_time()
                events = list(model.stream(SourceSentence(number, source, text), target, glossary=glossary))
                spent[at] += time.process_time() - began
                end = events[-1]
                assert isinstance(end, Translation)
                found[at].append(end)
                tokens[at] += len(events) - 1
        best = [min(pair) for pair in zip(best, spent, strict=True)]
    first, second = (
        Row(
            tuple(one.text for one in found[at]),
            sum(kept(one.text, text, glossaries[1]) for one, text in zip(found[at], texts, strict=True)),
            tokens[at],
            best[at],
        )
        for at in range(2)
    )
    return first, second


def kept(translation: str, source: str, glossary: Glossary) -> int:
    """How many terms of a source have their preferred translation in a text, each one of its own."""
    left, count = translation.casefold(), 0
    for match in glossary.found_in(source):
        target = match.term.targets[0].casefold()
        count += target in left
        left = left.replace(target, " ", 1)
    return count
