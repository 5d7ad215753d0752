"""Conversion between simplified and traditional Chinese characters with OpenCC, whose package contains its data.

Characters are converted in the context of their phrase (头发 → 頭髮, 发现 → 發現). Words are not replaced: 软件 does not become
軟體. A conversion keeps the number of characters, so positions of words and tokens stay valid.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence
from itertools import accumulate, pairwise

Convert = Callable[[str], str]
"""Maps a text to a text of the same length."""

# OpenCC's configurations. Without a region, traditional means Taiwan's characters: most readers expect 為 and 裡, but
# OpenCC's own standard has 爲 and 裏.
_SIMPLIFY = "t2s"
_TRADITIONAL = {"TW": "s2tw", "HK": "s2hk", "MO": "s2hk"}
# Maximum number of consecutive Chinese characters in a phrase of OpenCC's data: 12 in version 1.4.2, plus a margin.
_MAX_PHRASE = 15
# A run of Chinese characters of all planes. For phrases with other characters ("SQL注入"), converting the run alone gives
# the same result in all but one of 49,794 cases.
_HAN = "[\u3005\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]+"
_HAN_RUN, _TRAILING_HAN_RUN = re.compile(_HAN), re.compile(_HAN + r"\Z")


def simplified(text: str) -> str:
    """Convert ``text`` to simplified characters."""
    return _converted(text, _SIMPLIFY)


def traditional(text: str) -> str:
    """Convert ``text`` to the traditional characters of Taiwan.

    Traditional text is returned unchanged, because some of its characters are simplified ones in other words (干 in 干擾,
    后 in 皇后). Text that mixes both scripts is simplified first.
    """
    scripts = {_script(character) for character in text}
    if "Hant" in scripts:
        if "Hans" not in scripts:
            return text
        text = simplified(text)
    return _converted(text, _TRADITIONAL["TW"])


def conversion(script: str, region: str | None = None) -> Convert:
    """The function that converts simplified text to ``script`` (ISO 15924: Hans or Hant). Hans also takes traditional.

    The conversion of a prefix does not depend on the text that follows; see ``settled``.
    """
    name = _SIMPLIFY if script == "Hans" else _TRADITIONAL.get(region or "TW", "s2tw")
    return functools.partial(_converted, name=name)


def settled(text: str) -> int:
    """The number of leading characters of ``text`` whose conversion does not depend on the text that follows.

    OpenCC matches the longest phrase at each position, from the left. An incomplete phrase begins less than the maximum
    phrase length before the end, and after the last punctuation mark, space or letter.
    """
    run = _TRAILING_HAN_RUN.search(text[-_MAX_PHRASE:])
    return max(0, len(text) - min(len(run.group()) if run else 0, _MAX_PHRASE - 1))


def converted_parts(parts: Sequence[str], convert: Convert) -> list[str]:
    """Convert the joined ``parts``, and split the result at the same positions."""
    whole, ends = convert("".join(parts)), accumulate(map(len, parts), initial=0)
    return [whole[begin:end] for begin, end in pairwise(ends)]


def _converted(text: str, name: str) -> str:
    return _HAN_RUN.sub(lambda match: _convert_run(match.group(), _converter(name)), text)


def _convert_run(run: str, convert: Convert) -> str:
    """Convert a run of Chinese characters. If that changes its length, which no phrase of OpenCC 1.4.2 does, convert
    character by character."""
    converted = convert(run)
    if len(converted) == len(run):
        return converted
    return "".join(single if len(single := convert(character)) == 1 else character for character in run)


@functools.lru_cache(maxsize=8192)
def _script(character: str) -> str | None:
    """The only script that uses a character; None if both use it or if it is not Chinese."""
    if not _HAN_RUN.fullmatch(character):
        return None
    if _converted(character, _SIMPLIFY) != character:
        return "Hant"
    # Simplified characters that traditional text uses too, such as 后 and 里, are in Big5, Taiwan's character set.
    try:
        character.encode("big5")
    except UnicodeEncodeError:
        return "Hans" if _converted(character, "s2tw") != character else None
    return None


@functools.cache
def _converter(name: str) -> Convert:
    """OpenCC's conversion of that name, without characters that most fonts lack."""
    from opencc import OpenCC  # imported only if the text is Chinese

    convert: Convert = OpenCC(name, include_tofu_risk_dictionaries=False).convert
    return convert
