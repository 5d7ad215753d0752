"""Measure draft translations of sentences that grow word by word: time with verification and without, and erasure.

Each line of a text file is a sentence. It grows by ``--step`` words (or characters, where words have no spaces), and is
translated greedily after each update: from scratch, and with the last draft verified. Both must give the same tokens. Then
the drafts are shown with each number of hidden words, and what is withdrawn is counted.
"""

from __future__ import annotations

import argparse
import dataclasses
import statistics
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pipeline.apps.cli import whole_number
from pipeline.apps.options import add_model_arguments, configured
from pipeline.bench.comparison.sentences import read_sentences
from pipeline.bench.target import only_target
from pipeline.errors import PipelineError, UsageError
from pipeline.events import Delta, SourceSentence
from pipeline.languages import spaced
from pipeline.nmt.drafts import Draft, draft_limit, masked
from pipeline.nmt.generation import Token
from pipeline.nmt.search import greedy, verified
from pipeline.nmt.stage import updates
from pipeline.run.drafts import DraftOptions
from pipeline.sentences.growing import GrowingText

if TYPE_CHECKING:
    from pipeline.nmt.model import MarianModel


@dataclass(frozen=True)
class Update:
    """One translation of a sentence in progress."""

    tokens: int
    """Of the translation, with the end token."""
    same: bool
    """Whether verification gave the same tokens as greedy search from scratch."""
    scratch_s: float
    """Processor time of greedy search."""
    verified_s: float
    capped: bool
    """Whether the length limit ended it."""


@dataclass(frozen=True)
class Erasure:
    """What was withdrawn of the drafts and, at the end, of the last one."""

    hidden: int
    """Words or characters hidden at the end of each draft."""
    withdrawn: int
    """Characters."""
    final: int
    """Characters of the final translations."""
    shown: float
    """Mean share of a draft's characters that was shown."""

    @property
    def rate(self) -> float:
        return self.withdrawn / max(1, self.final)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("text", type=Path, metavar="FILE", help="sentences in the source language, one per line")
    add_model_arguments(parser)
    parser.add_argument(
        "--step", type=whole_number(1, 100), default=1, metavar="N",
        help="words (or characters, where words have no spaces) from one update to the next (default: 1)",
    )  # fmt: skip
    parser.add_argument(
        "--hidden", type=whole_number(0, 100), nargs="+", default=(0, 1, 2, 3, 4, 6), metavar="N",
        help="numbers of hidden words or characters to compare (default: 0 1 2 3 4 6)",
    )  # fmt: skip


def run(options: argparse.Namespace) -> int:
    from pipeline.loading import translation_options
    from pipeline.nmt.load import load_translation_model
    from pipeline.nmt.model import MarianModel

    config = configured(options)
    target = only_target(config)
    sentences = read_sentences(options.text)
    source = config.languages.source_of(target)
    model = load_translation_model(source, target, translation_options(config)[target])
    if not isinstance(model, MarianModel):
        raise UsageError("drafts are measured with one model; choose a language pair that needs no second one")
    grown = [beginnings(sentence, source, options.step) for sentence in sentences]
    found = [update for texts in grown for update in compared(texts, model, source, target)]
    if not found:
        raise UsageError(f"the sentences of {options.text} never grow; give longer ones, or a smaller --step")
    kinds = [erasure(grown, model, source, target, hidden) for hidden in options.hidden]
    print(as_text(found, kinds, model.decoder.rounding, "words" if spaced(target) else "characters"))
    if differ := sum(not update.same for update in found):
        raise PipelineError(f"in {differ} of {len(found)} updates, verification gave other tokens than greedy search")
    return 0


def beginnings(sentence: str, language: str, step: int) -> list[str]:
    """The sentence as it grows by ``step`` words or characters, the whole at the end."""
    words, space = (sentence.split(), " ") if spaced(language) else (list(sentence), "")
    ends = [*range(step, len(words), step), len(words)]
    return [space.join(words[:end]) for end in ends]


def compared(texts: Sequence[str], model: MarianModel, source: str, target: str) -> Iterator[Update]:
    """Translate each text in both ways, in turns. The first one is left out: it has no draft to verify."""
    draft = Draft()
    for number, text in enumerate(texts):
        parts = model.sources(text, source, model.target_code(target))
        if len(parts) != 1:
            continue
        ids = parts[0]
        options = dataclasses.replace(
            model.generation, beams=1, max_tokens=draft_limit(len(ids), model.generation.max_tokens)
        )
        ways = [
            lambda ids=ids, options=options: greedy(model.decoder, ids, options),
            lambda ids=ids, options=options: verified(model.decoder, ids, options, draft.guess(0)),
        ]
        times = [0.0, 0.0]
        tokens: list[list[Token]] = [[], []]
        for way in (0, 1) if number % 2 else (1, 0):
            began = time.thread_time()
            tokens[way] = list(ways[way]())
            times[way] = time.thread_time() - began
        scratch, other = ([token.id for token in found] for found in tokens)
        if number:
            capped = tokens[0][-1].truncated
            yield Update(len(scratch), scratch == other, times[0], times[1], capped)
        draft.keep(0, tuple(scratch[:-1]))


def erasure(grown: Sequence[Sequence[str]], model: MarianModel, source: str, target: str, hidden: int) -> Erasure:
    """Show the drafts of each sentence and, at the end, its final translation."""
    options = DraftOptions(mask_words=hidden, mask_characters=hidden)
    withdrawn = final = 0
    shares = []
    for texts in grown:
        draft, shown = Draft(), GrowingText()
        for text in texts:
            last = text is texts[-1]
            sentence = SourceSentence(0, source, text)
            found = model.stream(sentence, target, draft=None if last else draft)
            whole = list(found)
            seen = iter(whole) if last else masked(iter(whole), shown.text, options)
            for event in updates(shown.text, seen, final=last):
                if isinstance(event, Delta):
                    withdrawn += event.withdrawn
                    shown.apply(event)
            if not last and (length := len(whole[-1].text)):
                shares.append(len(shown) / length)
        final += len(shown)
    return Erasure(hidden, withdrawn, final, statistics.mean(shares) if shares else 1.0)


def as_text(found: Sequence[Update], kinds: Sequence[Erasure], rounding: float | None, units: str) -> str:
    """The figures, as lines."""
    scratch, other = (1000 * statistics.mean(getattr(u, name) for u in found) for name in ("scratch_s", "verified_s"))
    verifies = "verifies drafts" if rounding is not None else "cannot verify drafts; greedy search from scratch"
    return "\n".join(
        [
            f"{len(found)} updates; the model {verifies}",
            f"same tokens: {sum(update.same for update in found)}",
            f"ms an update: {scratch:.2f} from scratch, {other:.2f} verified; ratio {other / scratch:.2f}",
            f"tokens an update: {statistics.mean(update.tokens for update in found):.1f}; "
            f"{sum(update.capped for update in found)} ended by the limit",
            f"{units} hidden: characters withdrawn per final character, share of a draft that is shown",
            *(f"  {kind.hidden}: {kind.rate:.2f}, {100 * kind.shown:.0f} %" for kind in kinds),
        ]
    )
