"""Measure what each rule of translation gains and costs: all of them, none, and each left out in turn."""

from __future__ import annotations

import argparse
import json
import random
import re
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path

from ..backends import ALL_RULES, MarianModel, NmtConfig, SentenceCache, TextRule, find_translation_model
from ..console import whole_number
from ..errors import UsageError
from ..languages.rules import rules as rules_of
from ..media import BlockFile
from .nmt import read_sentences

NOTABLE_CHRF = 3.0
"""A text whose chrF differs by more is counted as better or worse."""
_QUESTION = re.compile(r"\?[\s\"'”’»)\]<>/\w]{0,12}$")


@dataclass(frozen=True)
class Changed:
    """A text with two translations."""

    source: str
    reference: str
    old: str
    new: str
    gain: float
    """How much better the new one is, in chrF."""


@dataclass(frozen=True)
class Row:
    """The translations with some of the rules."""

    name: str
    texts: tuple[str, ...]
    ms: float | None
    """Milliseconds of the processor for a text; None where translations were known."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", type=Path, metavar="FILE", help="lines with a text, a tab and its translation")
    parser.add_argument(
        "--model", default="firefox/en-pt-tiny", metavar="MODEL", help="a student (default: %(default)s)"
    )
    parser.add_argument("--back", action="store_true", help="the texts stand after the tab, their translations before")
    parser.add_argument("--weights", default="int8", choices=("int8", "fp32"), help="precision (default: %(default)s)")
    parser.add_argument(
        "--sample", type=whole_number(1, 1_000_000), metavar="N", help="a random sample of the lines, always the same"
    )
    parser.add_argument(
        "--show", type=whole_number(0, 1_000_000), default=0, metavar="N",
        help="print N texts that each rule changes: the worst half first, then the best",
    )  # fmt: skip
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the translations as JSON")
    parser.add_argument("--against", type=Path, metavar="OLD", help="print each text that changed since this JSON")


def run(options: argparse.Namespace) -> int:
    lines = list(zip(*read_sentences(options.file), strict=False))
    if not lines:
        raise UsageError(f"{options.file} has no translations; give each after a tab")
    if options.sample is not None:
        lines = random.Random(5).sample(lines, min(len(lines), options.sample))
    references, sources = zip(*lines, strict=True)
    if not options.back:
        references, sources = sources, references
    old = read_translations(options.against) if options.against is not None else {}
    config = NmtConfig(options.model, weights=options.weights, cached_sentences=1_000_000)
    model = MarianModel.load(find_translation_model(config), config)
    rows = rows_of(model, sources)
    print(as_text(rows, sources, references, model.languages[1] or ""))
    for row in rows[1:]:
        changed = changes(sources, references, *(each.texts for each in pair(rows, row)))
        worst = options.show // 2
        for change in [*changed[:worst], *changed[max(worst, len(changed) + worst - options.show) :]]:
            print(f"\n{row.name}, {both_texts(change)}")
    new = dict(zip(sources, rows[1].texts, strict=True))
    both = [(source, right) for source, right in zip(sources, references, strict=True) if source in old]
    for change in (
        changes(*zip(*both, strict=True), *([each[one] for one, _ in both] for each in (old, new))) if both else ()
    ):
        print(f"\nsince {options.against}, {both_texts(change)}")
    if options.json is not None:
        with closing(BlockFile(options.json)) as file:
            file.append(
                json.dumps({"rows": list(map(asdict, rows)), "texts": new}, indent=1, ensure_ascii=False) + "\n"
            )
    return 0


def read_translations(path: Path) -> dict[str, str]:
    """Source → its translation with all rules, from what ``--json`` wrote."""
    try:
        return dict(json.loads(path.read_text("utf-8"))["texts"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UsageError(f"cannot read {path} ({error!r}); give a file that --json wrote") from None


def rows_of(model: MarianModel, sources: Sequence[str]) -> list[Row]:
    """Rows without rules, with all, and without each. A text that a rule does not change comes from the model's cache."""
    every = {"no rules": frozenset[TextRule](), "all rules": ALL_RULES}
    rows = []
    for name, rules in {**every, **{f"without {rule}": ALL_RULES - {rule} for rule in TextRule}}.items():
        model.rules = rules
        if timed := name in every:
            model.cache = SentenceCache(model.cache.bound)
        began = time.thread_time()
        texts = tuple(map(model.translate, sources))
        rows.append(Row(name, texts, 1000 * (time.thread_time() - began) / len(sources) if timed else None))
    model.rules = ALL_RULES
    return rows


def pair(rows: Sequence[Row], row: Row) -> tuple[Row, Row]:
    """The two rows that are compared: no rules with all, or the absence of a rule with all."""
    return (rows[0], row) if row is rows[1] else (row, rows[1])


def changes(sources: Sequence[str], references: Sequence[str], old: Sequence[str], new: Sequence[str]) -> list[Changed]:
    """The texts whose translations differ, the worst change first."""
    import sacrebleu

    score = sacrebleu.sentence_chrf
    changed = [
        Changed(source, right, before, after, score(after, [right]).score - score(before, [right]).score)
        for source, right, before, after in zip(sources, references, old, new, strict=True)
        if before != after
    ]
    return sorted(changed, key=lambda change: change.gain)


def both_texts(change: Changed) -> str:
    """A change with its translations one above the other."""
    named = ("source", change.source), ("old", change.old), ("new", change.new), ("reference", change.reference)
    return "\n".join([f"chrF {change.gain:+.0f}", *(f"  {label:10}  {text}" for label, text in named)])


def is_lost_question(source: str, text: str, target: str) -> bool:
    """Whether a question has no question mark any more or, in English, the word order of a statement."""
    if not _QUESTION.search(source):
        return False
    asks = rules_of(target).asks
    return not _QUESTION.search(text) or (asks is not None and not asks.search(text))


def as_text(rows: Sequence[Row], sources: Sequence[str], references: Sequence[str], target: str) -> str:
    """The balance sheet: a line for each row."""
    import sacrebleu

    lines = [
        f"{len(sources)} texts; changed, better and worse: by all rules beside none, by each rule beside its absence\n",
        "| | chrF | BLEU | changed | better | worse | questions lost | ms |",
        "|---|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for row in rows:
        changed = [] if row is rows[0] else changes(sources, references, *(each.texts for each in pair(rows, row)))
        chrf = sacrebleu.corpus_chrf(list(row.texts), [list(references)]).score
        bleu = sacrebleu.corpus_bleu(list(row.texts), [list(references)]).score
        better, worse = (sum(sign * change.gain > NOTABLE_CHRF for change in changed) for sign in (1, -1))
        lost = sum(is_lost_question(source, text, target) for source, text in zip(sources, row.texts, strict=True))
        ms = "" if row.ms is None else f"{row.ms:.1f}"
        lines.append(f"| {row.name} | {chrf:.2f} | {bleu:.2f} | {len(changed)} | {better} | {worse} | {lost} | {ms} |")
    return "\n".join(lines)
