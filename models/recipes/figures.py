"""Measure translators and write their cards, or a comparison.

    python models/recipes/figures.py --pairs cmn.txt [--only en-zh] [--models models/demo]
    python models/recipes/figures.py --pairs cmn.txt --beside FOLDER --report comparison.md

Recomputes every figure in ``models/demo/nmt-*/README.md`` from the shipped files with the pipeline itself, on sentences
that were excluded from training. With --report, no card is written: the file gets the figures of the translators in
--models, beside those in --beside if it is named.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from needs import require_packages

require_packages("opencc", "sacrebleu")

from card import SHIPPED, table, write_card
from evaluation import BEAMS, Measured, measure, styled_sets, translations
from measure import bleu_chrf
from pairs import Data, check_tests, translation_data, unseen_numbers
from phrasebook import prices
from tatoeba import nearest

from pipeline.backends.marian.model import MarianModel
from pipeline.backends.nmt_options import NmtConfig

DIRECTIONS = ("en-zh", "zh-en")
NAMES = {"en": "English", "zh": "Chinese"}
FORMER_SETS = ("Tatoeba",)  # the test sets that translators without "test_sets" in their training.json left out
_BASELINE = "most similar training sentence"


def checked_facts(directory: Path, data: Data) -> dict[str, str]:
    """The training.json of a translator. Exits if the translator may have been trained on ``data``'s test sentences."""
    path = directory / "training.json"
    if not path.is_file():
        sys.exit(f"no such file: {path}. Expected a translator that models/recipes/nmt.py made")
    facts: dict[str, str] = json.loads(path.read_text())
    check_tests(facts, data.test_sources(facts.get("test_sets", FORMER_SETS)))
    return facts


def baseline(data: Data, target: str) -> dict[str, tuple[float, float]]:
    """BLEU and chrF by test set of copying the translation of the most similar training sentence."""
    training, found = [pair for origin in data.training.values() for pair in origin], {}
    for name, pairs in data.tests.items():
        figures = bleu_chrf(nearest(training, [text for text, _ in pairs]), [text for _, text in pairs], target)
        found[name] = figures["bleu"], figures["chrf"]
    return found


def score_rows(
    data: Data, found: dict[str, Measured], copied: dict[str, tuple[float, float]]
) -> list[tuple[object, ...]]:
    """A row for each test set: its name, its size, then "BLEU / chrF" for each translator and number of beams."""
    rows: list[tuple[object, ...]] = []
    for name, pairs in styled_sets(data).items():
        cells = [measured.scores[name, beams] for measured in found.values() for beams in BEAMS]
        rows.append((name, len(pairs), *(f"{cell['bleu']} / {cell['chrf']}" for cell in cells)))
        if name in copied:
            rows.append((f"{name}: {_BASELINE}", len(pairs), "{} / {}".format(*copied[name]), *[""] * (len(cells) - 1)))
    return rows


def other_rows(found: dict[str, Measured]) -> list[tuple[object, ...]]:
    """A row for each of the other figures: its name, then a cell for each translator."""
    measured = list(found.values())
    halves, odd = [one.beginnings for one in measured], [one.oddities for one in measured]
    return [
        ("half sentences with an invented ending", *(f"{one.invented} of {one.sentences}" for one in halves)),
        ("… because of a final mark", *(one.marked for one in halves)),
        ("… because of their length", *(one.long for one in halves)),
        ("lines of odd input that end in a loop", *(f"{len(one.looped)} of {one.lines}" for one in odd)),
        ("… that are truncated", *(one.truncated for one in odd)),
        ("… that were searched a second time", *(one.searched_again for one in odd)),
        (
            "processor time per sentence of 12 words or 20 characters",
            *(f"{one.sentence_ms:.1f} ms" for one in measured),
        ),
        ("processor time to load", *(f"{one.load_s:.2f} s" for one in measured)),
        ("size", *(f"{one.megabytes:.1f} MB" for one in measured)),
    ]


def score_header(found: dict[str, Measured]) -> tuple[str, ...]:
    widths = {1: "greedy", 4: "beam 4"}
    return "test set", "sentences", *(f"{name} {widths[beams]}".strip() for name in found for beams in BEAMS)


def signatures(found: dict[str, Measured]) -> str:
    figures = next(iter(next(iter(found.values())).scores.values()))
    return f"BLEU / chrF; sacrebleu signatures: `{figures['bleu_signature']}`; `{figures['chrf_signature']}`"


def exact_numbers(directory: Path, source: str) -> tuple[str, str]:
    """The shares of a jacket's prices, and of other sentences with numbers, that are translated exactly."""
    model, exact = MarianModel.load(directory, NmtConfig(cached_sentences=0)), []
    for tests in (prices(), unseen_numbers()):
        pairs = tests if source == "en" else [(chinese, english) for english, chinese in tests]
        found = translations(model, pairs)
        right = sum(made.text == wanted for made, (_, wanted) in zip(found, pairs, strict=True))
        exact.append(f"{100 * right / len(pairs):.1f} %")
    return exact[0], exact[1]


def write_translator_card(directory: Path, pairs: Path) -> None:
    """Measure the translation model in ``directory`` and write its card."""
    direction = json.loads((directory / "training.json").read_text())["direction"]
    source, target = direction.split("-")
    data = translation_data(pairs, direction)
    facts = checked_facts(directory, data)
    found = {"": measure(directory, data, (source, target))}
    scores = table(score_header(found), score_rows(data, found, baseline(data, target)))
    exact = exact_numbers(directory, source)
    config = json.loads((directory / "config.json").read_text())
    write_card(
        directory,
        f"Demo translator, {NAMES[source]} → {NAMES[target]}",
        {
            "What it is": f"A small Marian (transformers' `MarianMTModel`): {config['encoder_layers']} + "
            f"{config['decoder_layers']} layers, d_model {config['d_model']}, in the streaming layout that `python -m "
            "pipeline.models compile --weights int8` wrote from the trained checkpoint. It makes the demo work without "
            "a download; it is no general translator.",
            "Trained on": facts["trained_on"],
            "Measured": f"Through the pipeline, the shipped files. {facts['held_out']} The baseline copies the translation of "
            "the most similar training sentence: the model must beat it. The phrasebook's test sentences are unseen "
            f"combinations of seen phrases. {signatures(found)}\n\n{scores}\n\n"
            f"Of a jacket's prices from 2 to 999 dollars {exact[0]} are translated exactly, of other sentences with these "
            f"numbers {exact[1]}; the last training had none of either.\n\n"
            + table(("measure", "figure"), other_rows(found))
            + "\n\n`models/recipes/evaluation.py` and `odd.py` define the measures.",
            "Limits": "It is small, and was trained on short everyday sentences: rare words are invented, long sentences "
            "lose their thread. Numbers in words are translated as words. Chinese is in simplified script.",
            "Licence": "Apache-2.0 for the weights; the attribution above goes with them.",
        },
    )
    print(scores)


def report(folders: list[Path], directions: tuple[str, ...], pairs: Path) -> str:
    """A comparison of the translators in ``folders``, in Markdown."""
    parts, names = [], [folder.resolve().name for folder in folders]
    labels = names if len({*names}) == len(names) else list(map(str, folders))
    for direction in directions:
        source, target = direction.split("-")
        data, found = translation_data(pairs, direction), {}
        for label, folder in zip(labels, folders, strict=True):
            directory = folder / f"nmt-{direction}"
            checked_facts(directory, data)
            found[label] = measure(directory, data, (source, target))
        scores = score_rows(data, found, baseline(data, target))
        parts += [f"## {direction}", signatures(found), table(score_header(found), scores)]
        parts.append(table(("measure", *found), other_rows(found)))
        for name, tested in data.tests.items():
            rows = zip(tested, *(measured.samples[name] for measured in found.values()), strict=False)
            parts.append(f"The first sentences of {name}:")
            parts.append(table(("source", "reference", *found), [(*pair, *texts) for pair, *texts in rows]))
        for name, measured in found.items():
            parts.append(f"Half sentences, {name}:")
            parts.append("\n".join(f"- {half} → {made}" for half, made in measured.beginnings.examples))
            parts += ["\n".join(f"- loop: {line} → {made}" for line, made in measured.oddities.looped)]
    return "\n\n".join(filter(None, parts)) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=Path, required=True)
    parser.add_argument("--only", choices=DIRECTIONS)
    parser.add_argument("--models", type=Path, default=SHIPPED, help="a folder with nmt-en-zh and nmt-zh-en")
    parser.add_argument("--beside", type=Path, help="another such folder, for --report")
    parser.add_argument("--report", type=Path, help="write a comparison to this file, and no cards")
    options = parser.parse_args()
    if options.beside and not options.report:
        parser.error("--beside needs --report FILE")
    directions = (options.only,) if options.only else DIRECTIONS
    if options.report:
        folders = [options.models, *([options.beside] if options.beside else [])]
        options.report.write_text(report(folders, directions, options.pairs), "utf-8")
        return
    for direction in directions:
        write_translator_card(options.models / f"nmt-{direction}", options.pairs)


if __name__ == "__main__":
    main()
