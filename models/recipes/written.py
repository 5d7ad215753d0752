"""The sentence pairs in this folder that a large language model wrote for this project: everyday speech, conversations."""

from __future__ import annotations

import lzma
from functools import cache
from pathlib import Path

from tatoeba import Pair

HERE = Path(__file__).resolve().parent
ATTRIBUTION = (
    "pairs that a large language model wrote for this project (`models/recipes/everyday.txt` with its translations, and "
    "`models/recipes/spoken.tsv.xz`)"
)


@cache
def everyday() -> tuple[Pair, ...]:
    """Everyday English sentences and their translations."""
    english = (HERE / "everyday.txt").read_text("utf-8").splitlines()
    with lzma.open(HERE / "everyday.zh.txt.xz", "rt", encoding="utf-8") as file:
        return tuple(zip(english, file.read().splitlines(), strict=True))


@cache
def conversations() -> tuple[tuple[str, Pair], ...]:
    """(topic, pair) of each line of meetings, calls, talks, lessons and other conversations."""
    with lzma.open(HERE / "spoken.tsv.xz", "rt", encoding="utf-8") as file:
        rows = [line.split("\t") for line in file.read().splitlines()]
    return tuple((topic, (english, chinese)) for topic, english, chinese in rows)
