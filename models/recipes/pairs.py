"""The training and test pairs of the translators, from Tatoeba and the phrasebook, without overlap."""

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
    """Test sentences, from templates with so many combinations that 20,000 draws rarely repeat one.

    Excluding them leaves every template in the training data.
    """
    repeats = Counter(english for english, _ in draws(20_000, seed=9))
    common = {english for english, count in repeats.items() if count > 1}
    return tuple(corpus(TEST_PHRASES, seed=3, exclude=SENTENCES | common))


def training_phrases(count: int) -> list[Pair]:
    """Draw by template, so that templates with few combinations are as frequent as those with many."""
    return draws(count, seed=2, exclude=SENTENCES | {english for english, _ in held_out_phrases()})


def translators_phrases() -> list[Pair]:
    """The training phrases, plus every number of the phrasebook in several sentences."""
    kept = SENTENCES.union(english for english, _ in (*held_out_phrases(), *prices()))
    return [pair for pair in training_phrases(PHRASES) + numbers(seed=5) if pair[0] not in kept]


def unseen_numbers() -> list[Pair]:
    """Other sentences with every number. None of them is in ``translators_phrases``."""
    learned = {english for english, _ in translators_phrases()}
    return [pair for pair in dict.fromkeys(numbers(seed=6)) if pair[0] not in learned]


def translation_pairs(path: Path, direction: str) -> tuple[list[Pair], list[Pair], list[Pair], list[Pair]]:
    """(source, target) pairs for training from Tatoeba and the phrasebook, then for testing from the same two."""
    training, test = split(read_pairs(path))
    sets = (training, without_near_duplicates(translators_phrases(), test), test, list(held_out_phrases()))
    if direction == "zh-en":
        sets = tuple([(chinese, english) for english, chinese in pairs] for pairs in sets)
    return sets


def without_near_duplicates(phrases: list[Pair], test: list[Pair]) -> list[Pair]:
    """The phrases that are no near-duplicates of Tatoeba's ``test`` sentences; ``split`` does the same for Tatoeba."""
    near = {form for english, _ in test for form in near_forms(english)}
    return [pair for pair in phrases if near.isdisjoint(near_forms(pair[0]))]


def digest(tests: set[str]) -> str:
    """A hash that identifies a set of test sentences."""
    return hashlib.sha256("\n".join(sorted(tests)).encode()).hexdigest()


def check_tests(facts: dict[str, Any], tests: set[str]) -> None:
    """Exit if a model may have been trained on some of ``tests``. ``facts`` is the content of its training.json."""
    if facts.get("tests") != digest(tests):
        sys.exit(
            "this model was trained with another edition of --pairs, with other test sentences, so it was trained on "
            "many of these. Use the edition that it was trained with, or train from random weights"
        )
