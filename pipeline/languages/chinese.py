"""Chinese text in simplified or in traditional characters, converted by OpenCC, which comes with its data.

Characters are converted, in the phrases that they stand in (头发 → 頭髮, 发现 → 發現); words stay: 软件 does not become 軟體.
A conversion has as many characters as its text, so words, tokens and times keep their places.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator, Sequence

Convert = Callable[[str], str]
"""Text → text of the same length."""

# OpenCC's configurations. Traditional characters without a region are those of Taiwan: 為 and 裡, which most readers expect, where
# OpenCC's own standard has 爲 and 裏.
_SIMPLIFY = "t2s"
_TRADITIONAL = {"TW": "s2tw", "HK": "s2hk", "MO": "s2hk"}
# No phrase of OpenCC's data has more Chinese characters in a row: 12 in version 1.4.2, and some more for later ones.
_LONGEST_PHRASE = 15
# A run of Chinese characters, of all planes. Phrases with others ("SQL注入") are converted alike without them, all but one of 49,794.
_HAN = "[\u3005\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]+"
_RUN, _LAST_RUN = re.compile(_HAN), re.compile(_HAN + r"\Z")


def simplified(text: str) -> str:
    """``text`` in simplified characters."""
    return _converted(text, _SIMPLIFY)


def traditional(text: str, region: str | None = None) -> str:
    """``text`` in traditional characters, as ``region`` writes them: TW (the default), HK or MO.

    Text that is traditional already stays as it is: some of its characters are simplified ones in other words (干 in 干擾,
    后 in 皇后). Where both scripts are mixed, all is simplified first.
    """
    scripts = {_script(character) for character in text}
    if "Hant" in scripts:
        if "Hans" not in scripts:
            return text
        text = simplified(text)
    return _converted(text, _TRADITIONAL.get(region or "TW", "s2tw"))


def conversion(script: str, region: str | None = None) -> Convert:
    """What converts simplified text to ``script`` (ISO 15924: Hans or Hant), a prefix alike however the text goes on; see
    ``settled``. To Hans it converts traditional text, too.
    """
    name = _SIMPLIFY if script == "Hans" else _TRADITIONAL.get(region or "TW", "s2tw")
    return functools.partial(_converted, name=name)


def settled(text: str) -> int:
    """How many characters of ``text``, which may go on, are converted alike whatever follows.

    OpenCC takes the longest phrase at each place, from the left. A phrase that is not complete begins less than the longest
    phrase's length before the end, and not before a mark, a space or a letter.
    """
    run = _LAST_RUN.search(text[-_LONGEST_PHRASE:])
    return max(0, len(text) - min(len(run.group()) if run else 0, _LONGEST_PHRASE - 1))


def divided(parts: Sequence[str], convert: Convert) -> list[str]:
    """``parts`` of one text, converted as the whole is."""
    whole = convert("".join(parts))
    return list(_cut(whole, map(len, parts)))


def _cut(text: str, lengths: Iterator[int]) -> Iterator[str]:
    at = 0
    for length in lengths:
        yield text[at : at + length]
        at += length


def _converted(text: str, name: str) -> str:
    return _RUN.sub(lambda match: _same_length(match.group(), _converter(name)), text)


def _same_length(run: str, convert: Convert) -> str:
    """A run of Chinese characters, converted; character by character if the phrases' lengths are not kept, which no phrase
    of OpenCC 1.4.2 needs."""
    found = convert(run)
    if len(found) == len(run):
        return found
    return "".join(one if len(one := convert(character)) == 1 else character for character in run)


@functools.lru_cache(maxsize=8192)
def _script(character: str) -> str | None:
    """The script of which alone a character is; None for what both have, and for what is not Chinese."""
    if not _RUN.fullmatch(character):
        return None
    if _converted(character, _SIMPLIFY) != character:
        return "Hant"
    # What traditional text has besides, such as 后 and 里, is in the character set of Taiwan.
    try:
        character.encode("big5")
    except UnicodeEncodeError:
        return "Hans" if _converted(character, "s2tw") != character else None
    return None


@functools.cache
def _converter(name: str) -> Convert:
    """OpenCC's conversion of that name; without the characters that most fonts lack."""
    from opencc import OpenCC  # only where there is Chinese

    convert: Convert = OpenCC(name, include_tofu_risk_dictionaries=False).convert
    return convert
