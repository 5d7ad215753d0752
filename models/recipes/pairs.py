"""The training, development and test pairs of the translators, from all sources, without overlap."""

from __future__ import annotations

import hashlib
import random
import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from heldout import CHINESE_SENTENCES, SENTENCES
from phrasebook import corpus, draws, numbers, prices
from tatoeba import SPLIT_SEED, TEST, Pair, read_pairs, split, spoken, without_near_duplicates
from written import conversations, everyday

TESTS = {"Tatoeba": TEST, "everyday": 500, "meetings": 300}
"""Sentences in each test set."""
MEETINGS = "meetings"  # the topic of the conversations in the test set
DEVELOPMENT = 150
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


@dataclass(frozen=True)
class Data:
    """(source, target) pairs by origin. No training pair is a near-duplicate of a development or test pair."""

    training: dict[str, list[Pair]]
    """"Tatoeba", "everyday", "conversations" and "phrasebook", each without repeats."""
    development: dict[str, list[Pair]]
    """``DEVELOPMENT`` pairs of each origin but the phrasebook, which show whether a training still improves."""
    tests: dict[str, list[Pair]]
    """The sets named in ``TESTS``."""
    test_phrases: list[Pair]
    """Unseen combinations of the phrasebook's phrases. Other phrases differ from them in one word."""

    def test_sources(self, names: Iterable[str]) -> set[str]:
        return {source for name in names for source, _ in self.tests[name]}


def translation_data(path: Path, direction: str) -> Data:
    """The data of a translator, with the edition of Tatoeba in ``path``. The same for each call and both directions."""
    data = prepared(read_pairs(path))
    if direction == "en-zh":
        return data
    swapped = (
        {name: _swapped(pairs) for name, pairs in sets.items()}
        for sets in (data.training, data.development, data.tests)
    )
    return Data(*swapped, _swapped(data.test_phrases))


def prepared(tatoeba: list[Pair]) -> Data:
    """Split Tatoeba's and the written pairs, English first, into training, development and test pairs."""
    training, test = split(tatoeba)
    spoken_pairs = dict.fromkeys(pair for _, pair in conversations())
    meetings = [pair for topic, pair in conversations() if topic == MEETINGS]
    tests = {
        "Tatoeba": test,
        "everyday": _drawn(everyday(), TESTS["everyday"]),
        "meetings": _drawn(meetings, TESTS["meetings"]),
    }
    phrases = list(held_out_phrases())
    held = [*(pair for pairs in tests.values() for pair in pairs), tuple(SENTENCES), CHINESE_SENTENCES]
    sources = {"Tatoeba": training, "everyday": everyday(), "conversations": spoken_pairs}
    known_phrases = {spoken(side) for pair in phrases for side in pair}
    kept = {
        name: [
            pair
            for pair in without_near_duplicates(dict.fromkeys(pairs), held)
            if known_phrases.isdisjoint(map(spoken, pair))
        ]
        for name, pairs in sources.items()
    }
    development = {name: _drawn(pairs, DEVELOPMENT) for name, pairs in kept.items()}
    kept["phrasebook"] = without_near_duplicates(dict.fromkeys(translators_phrases()), held)
    chosen = [pair for pairs in development.values() for pair in pairs]
    return Data(
        {name: without_near_duplicates(pairs, chosen) for name, pairs in kept.items()}, development, tests, phrases
    )


def _drawn(pairs: Iterable[Pair], count: int) -> list[Pair]:
    """``count`` pairs with different English sides, whatever the order of ``pairs``."""
    by_english = {spoken(english): (english, chinese) for english, chinese in sorted(pairs)}
    return [by_english[key] for key in random.Random(SPLIT_SEED).sample(sorted(by_english), count)]


def _swapped(pairs: list[Pair]) -> list[Pair]:
    return [(chinese, english) for english, chinese in pairs]


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
