"""What the translators train on and are tested on: Tatoeba's pairs and the phrasebook's, with nothing in common."""

from __future__ import annotations

import hashlib
import sys
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

from heldout import SENTENCES
from phrasebook import corpus, draws, numbers, prices
from tatoeba import Pair, near_forms, read_pairs, split

PHRASES = 20_000
TEST_PHRASES = 300


@cache
def held_out_phrases() -> tuple[Pair, ...]:
    """Sentences that training does not miss: of templates so rich that twenty thousand draws hardly repeat one."""
    repeats = Counter(english for english, _ in draws(20_000, seed=9))
    common = {english for english, count in repeats.items() if count > 1}
    return tuple(corpus(TEST_PHRASES, seed=3, exclude=SENTENCES | common))


def training_phrases(count: int) -> list[Pair]:
    """Drawn by template, so that templates with few combinations come as often as those with many."""
    return draws(count, seed=2, exclude=SENTENCES | {english for english, _ in held_out_phrases()})


def translators_phrases() -> list[Pair]:
    """The training phrases, and every number of the phrasebook in several sentences."""
    kept = SENTENCES.union(english for english, _ in (*held_out_phrases(), *prices()))
    return [pair for pair in training_phrases(PHRASES) + numbers(seed=5) if pair[0] not in kept]


def unseen_numbers() -> list[Pair]:
    """Other sentences with every number, none of them in ``translators_phrases``."""
    learned = {english for english, _ in translators_phrases()}
    return [pair for pair in dict.fromkeys(numbers(seed=6)) if pair[0] not in learned]


def translation_pairs(path: Path, direction: str) -> tuple[list[Pair], list[Pair], list[Pair], list[Pair]]:
    """(source, target) pairs for training, of Tatoeba and of the phrasebook, then for testing, likewise."""
    training, test = split(read_pairs(path))
    sets = (training, apart(translators_phrases(), test), test, list(held_out_phrases()))
    if direction == "zh-en":
        sets = tuple([(chinese, english) for english, chinese in pairs] for pairs in sets)
    return sets


def apart(phrases: list[Pair], test: list[Pair]) -> list[Pair]:
    """Those that are not nearly a sentence of Tatoeba's ``test``: its own training has none such."""
    near = {form for english, _ in test for form in near_forms(english)}
    return [pair for pair in phrases if near.isdisjoint(near_forms(pair[0]))]


def digest(tests: set[str]) -> str:
    """A hash that tells one set of test sentences from another."""
    return hashlib.sha256("\n".join(sorted(tests)).encode()).hexdigest()


def check_tests(facts: dict[str, Any], tests: set[str]) -> None:
    """Exit if a finished model may have learned some of ``tests``; ``facts`` are those of its training.json."""
    if facts.get("tests") != digest(tests):
        sys.exit(
            "this model was trained with another edition of --pairs, whose test sentences are others: it has learned many "
            "of these. Take the edition that it was trained with, or train from random weights"
        )
