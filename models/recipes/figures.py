"""Measure the shipped translators and write their cards.

    python models/recipes/figures.py --pairs cmn.txt [--only en-zh]

Recomputes every figure in ``models/demo/nmt-*/README.md`` from the shipped files with the pipeline itself, on sentences
that were excluded from training.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

from needs import require_packages

require_packages("opencc", "sacrebleu")

from card import SHIPPED, table, write_card
from measure import bleu_chrf
from pairs import check_tests, translation_data, unseen_numbers
from phrasebook import prices
from tatoeba import nearest, spoken

from pipeline.nmt.model import MarianModel

DIRECTIONS = ("en-zh", "zh-en")
NAMES = {"en": "English", "zh": "Chinese"}


def write_translator_card(directory: Path, pairs: Path) -> None:
    """Measure the translation model in ``directory`` and write its card."""
    facts = json.loads((directory / "training.json").read_text())
    source, target = facts["direction"].split("-")
    data = translation_data(pairs, facts["direction"])
    check_tests(facts, data.test_sources(facts.get("test_sets", ["Tatoeba"])))
    test, test_phrases = data.tests["Tatoeba"], data.test_phrases
    training = [pair for origin in data.training.values() for pair in origin]
    began = time.process_time()
    model = MarianModel.load(directory, cached_sentences=0)
    load_s, rows = time.process_time() - began, []

    def score(name: str, found: list[str], rows_of: list[tuple[str, str]]) -> dict[str, Any]:
        figures = bleu_chrf(found, [wanted for _, wanted in rows_of], target)
        rows.append((name, figures["sentences"], figures["bleu"], figures["chrf"]))
        return figures

    def translated(rows_of: list[tuple[str, str]]) -> list[str]:
        return [model.translate(text, source=source, target=target) for text, _ in rows_of]

    began = time.process_time()
    found = translated(test)
    per_sentence_ms = 1000 * (time.process_time() - began) / len(test)
    signatures = score("Tatoeba", found, test)
    score("Tatoeba, spoken style", translated([(spoken(text), wanted) for text, wanted in test]), test)
    score("Tatoeba: most similar training sentence", nearest(training, [text for text, _ in test]), test)
    score("phrasebook", translated(test_phrases), test_phrases)
    exact = []
    for test_numbers in (prices(), unseen_numbers()):
        number_pairs = test_numbers if source == "en" else [(chinese, english) for english, chinese in test_numbers]
        right = sum(text == wanted for text, (_, wanted) in zip(translated(number_pairs), number_pairs, strict=True))
        exact.append(f"{100 * right / len(number_pairs):.1f} %")
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
            "Measured": f"Greedy, through the pipeline, the shipped files. {facts['held_out']} The third line is what "
            "copying the translation of the most similar training sentence scores: the model must beat it. The "
            "phrasebook's test sentences are unseen combinations of seen phrases.\n\n"
            + table(("test set", "sentences", "BLEU", "chrF"), rows)
            + f"\n\nOf a jacket's prices from 2 to 999 dollars {exact[0]} are translated exactly, of other sentences with these "
            f"numbers {exact[1]}; the last training had none of either."
            f"\n\nsacrebleu signatures: `{signatures['bleu_signature']}`; `{signatures['chrf_signature']}`\n\n"
            f"On one core it loads in {load_s:.2f} s and takes {per_sentence_ms:.0f} ms a sentence (processor time).",
            "Limits": "Outside the phrasebook it is often wrong: rare words are invented, long sentences lose their thread. "
            "Numbers are translated as words, not digits. Chinese is in simplified script.",
            "Licence": "Apache-2.0 for the weights; the attribution above goes with them.",
        },
    )
    print(table(("test set", "sentences", "BLEU", "chrF"), rows))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=Path, required=True)
    parser.add_argument("--only", choices=DIRECTIONS)
    options = parser.parse_args()
    for direction in (options.only,) if options.only else DIRECTIONS:
        write_translator_card(SHIPPED / f"nmt-{direction}", options.pairs)


if __name__ == "__main__":
    main()
