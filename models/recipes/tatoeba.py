"""Tatoeba's English–Mandarin pairs, their split for all recipes, and the nearest-sentence baseline."""

from __future__ import annotations

import math
import random
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path

from heldout import SENTENCES

Pair = tuple[str, str]  # English, simplified Chinese
TEST = 500
SPLIT_SEED = 1  # the same split for all models
ATTRIBUTION = (
    "sentence pairs of the Tatoeba Project (tatoeba.org; the selection of manythings.org/anki; CC BY 2.0 FR; © their "
    "contributors, whom that selection names beside each pair)"
)
_MARKS = dict.fromkeys(map(ord, '.!?,";:-–—…()。！？，、；：“”‘「」《》（）· ')) | {ord("’"): "'"}
_FIRST_CJK = "\u3040"
_NEAR_WORDS, _NEAR_CHARACTERS = 5, 7  # minimum lengths of sentences that count as near-duplicates of one another


def is_chinese(text: str) -> bool:
    """Whether a text, which may have foreign names, has Chinese characters."""
    return not text.isascii() and max(text) >= _FIRST_CJK


def spoken(text: str) -> str:
    """An English or Chinese sentence as written by a recogniser without casing and punctuation."""
    text = text.lower().rstrip(".!?。！？").replace(",", "")
    return text.replace("，", "").replace("、", "")


def read_pairs(path: Path) -> list[Pair]:
    """Read the pairs of English and simplified Chinese, without duplicates."""
    advice = (
        "Get the English-Mandarin pairs (cmn-eng.zip) at manythings.org/anki and name the cmn.txt in them with --pairs"
    )
    if not path.is_file():
        sys.exit(f"no such file: {path}. {advice}")
    try:
        lines = path.read_text("utf-8-sig").splitlines()
    except UnicodeDecodeError:
        sys.exit(f"{path} is not UTF-8 text. {advice}")
    from opencc import OpenCC

    simplify = OpenCC("t2s").convert
    pairs: dict[Pair, None] = {}
    for number, line in enumerate(lines, 1):
        english, _, rest = line.partition("\t")
        chinese = rest.split("\t")[0]
        if not english.strip() or not chinese.strip():
            sys.exit(f"{path}, line {number}: expected English, a tab and Chinese; found {line[:60]!r}")
        pairs[english.strip(), simplify(chinese.strip())] = None
    if len(pairs) < 2 * TEST:
        sys.exit(f"{path} has {len(pairs)} pairs; expected at least {2 * TEST}. Get the whole file")
    return list(pairs)


def split(pairs: list[Pair]) -> tuple[list[Pair], list[Pair]]:
    """Split into (training, test). No side of a training pair is a near-duplicate of a side of a test pair."""
    keys = sorted({spoken(english) for english, _ in pairs})
    held = set(random.Random(SPLIT_SEED).sample(keys, TEST))
    test: dict[str, Pair] = {}
    for pair in pairs:
        if spoken(pair[0]) in held:
            test.setdefault(spoken(pair[0]), pair)
    return without_near_duplicates(pairs, [(*held, *SENTENCES), *test.values()]), list(test.values())


def without_near_duplicates(pairs: Iterable[Pair], held: Iterable[tuple[str, ...]]) -> list[Pair]:
    """The pairs of which neither side is a near-duplicate of a sentence in ``held``; see ``near_forms``."""
    near = {form for texts in held for text in texts for form in near_forms(text)}
    return [pair for pair in pairs if all(near.isdisjoint(near_forms(side)) for side in pair)]


def near_forms(text: str) -> set[str]:
    """Forms that two sentences share if they differ only in case and marks, or also in one word or Chinese character.

    Sentences of fewer than five words, or seven characters, must be equal apart from case and marks.
    """
    if not is_chinese(text):
        words = text.lower().translate({**_MARKS, ord(" "): " "}).split()
        joint, least = " ", _NEAR_WORDS
    else:
        words = list(text.lower().translate(_MARKS))
        joint, least = "", _NEAR_CHARACTERS
    forms = {joint.join(words)}
    if len(words) >= least:
        forms |= {joint.join((*words[:i], "*", *words[i + 1 :])) for i in range(len(words))}
    return forms


def nearest(training: list[Pair], sources: list[str]) -> list[str]:
    """Baseline: for each of ``sources``, the target of the training pair with the most similar source.

    Similarity is the cosine of words (English) or characters (Chinese), weighted by their inverse document frequency.
    """

    def units(text: str) -> set[str]:
        plain = spoken(text)
        return set(plain.split()) if plain.isascii() else set(plain)

    unit_sets = [units(source) for source, _ in training]
    counts = Counter(unit for unit_set in unit_sets for unit in unit_set)
    weight = {unit: math.log(len(unit_sets) / count) for unit, count in counts.items()}
    postings: defaultdict[str, list[tuple[int, float]]] = defaultdict(list)
    for index, unit_set in enumerate(unit_sets):
        norm = math.sqrt(sum(weight[unit] ** 2 for unit in unit_set)) or 1.0
        for unit in unit_set:
            postings[unit].append((index, weight[unit] / norm))
    found = []
    for source in sources:
        scores: defaultdict[int, float] = defaultdict(float)
        for unit in sorted(units(source) & postings.keys()):
            for index, value in postings[unit]:
                scores[index] += value * weight[unit]
        found.append(training[max(scores, key=scores.__getitem__)][1] if scores else "")
    return found
