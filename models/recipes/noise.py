"""Alterations of a training pair that live speech and its recognition bring: stammers, fillers, signs, unknown words."""

from __future__ import annotations

import random
import re

from tatoeba import Pair, is_chinese

_NUMBER = re.compile(r"\d+")
_FILLERS = {"en": ("um", "uh", "I mean", "you know", "well", "er"), "zh": ("嗯", "那个", "就是说", "呃", "啊")}
_ONSETS = ("b", "d", "f", "g", "k", "l", "m", "n", "p", "r", "s", "t", "v", "z", "sch", "tr", "br", "ch", "qu", "")
_VOWELS = ("a", "e", "i", "o", "u", "ou", "ie")
_ENDS = ("", "", "n", "s", "r", "t", "l", "nd", "ch")


def altered(pair: Pair, rng: random.Random) -> Pair:
    """The pair with a stammer or a filler in its source (the target leaves it out), or with signs on both sides."""
    kind = rng.random()
    if kind < 0.6:
        return stammered(pair[0], rng), pair[1]
    signs = " ".join(_sign(rng) for _ in range(rng.randint(1, 4)))
    if kind < 0.8:
        return signs, signs
    return _joined(signs, pair[0]), _joined(signs, pair[1])


def _joined(signs: str, text: str) -> str:
    return signs + text if is_chinese(text) else f"{signs} {text}"


def renumbered(pair: Pair, rng: random.Random) -> Pair | None:
    """The pair with other numbers of as many digits, the same on both sides. None without digits, or if the sides differ."""
    found = _NUMBER.findall(pair[0])
    if not found or sorted(found) != sorted(_NUMBER.findall(pair[1])):
        return None
    new = {number: rng.choice("123456789") + "".join(rng.choices("0123456789", k=len(number) - 1)) for number in found}
    source, target = (_NUMBER.sub(lambda match: new[match[0]], side) for side in pair)
    return source, target


def stammered(text: str, rng: random.Random) -> str:
    """One or two words, or Chinese characters, said again, or fillers before them."""
    chinese = is_chinese(text)
    units = list(text) if chinese else text.split()
    for _ in range(rng.randint(1, 2)):
        at = rng.randrange(len(units))
        again = units[at].strip(",.!?，。！？")
        filler = rng.choice(_FILLERS["zh" if chinese else "en"]) + rng.choice(("，" if chinese else ",", ""))
        units[at:at] = [again] * rng.randint(1, 2) if again and rng.random() < 0.5 else [filler]
    return ("" if chinese else " ").join(units)


def _sign(rng: random.Random) -> str:
    """A number, a price, an address or a word of no language, all of which are copied."""
    figures = str(rng.randrange(10 ** rng.randint(1, 8)))
    word = "".join(rng.choice(_ONSETS) + rng.choice(_VOWELS) + rng.choice(_ENDS) for _ in range(rng.randint(1, 3)))
    return rng.choice((figures, f"{figures} %", f"www.{word}.com", f"{figures[:2]}:{figures[-2:]}", word, word.title()))
