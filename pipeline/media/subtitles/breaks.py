"""Word, phrase and syllable starts in scripts without spaces. Pure.

Thai words and Chinese and Japanese phrases come from BudouX's models (https://github.com/google/budoux). Lao, Khmer and
Burmese have no small model, but their spelling shows where syllables begin. The rules below find only starts that the
spelling makes certain; ambiguous places are not broken.
"""

from __future__ import annotations

import re
from functools import cache, lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from budoux import Parser

_THAI = re.compile("[\u0e01-\u0e5b]")
_HAN_OR_KANA = re.compile("[\u3005\u3007\u3041-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")
_KANA = re.compile("[\u3041-\u3096\u30a1-\u30fa\u30fc]")
# Vowels written and encoded before the consonant that precedes them in speech.
_THAI_LEADING, _LAO_LEADING = "\u0e40-\u0e44", "\u0ec0-\u0ec4"
# Signs that attach to the preceding character: vowels after, above and below, tones, repetition and abbreviation marks.
_THAI_TRAILING = "\u0e2f-\u0e3a\u0e45-\u0e4e"
LEADING_VOWELS = re.compile(f"[{_THAI_LEADING}{_LAO_LEADING}]")
TRAILING_SIGNS = re.compile(f"[{_THAI_TRAILING}\u0eaf-\u0ebd\u0ec6-\u0ece\u17b4-\u17d1\u17d3\u17d7\u17dd\u102b-\u103e]")
# Viramas that stack the next consonant below, or join it into a conjunct.
STACKERS = frozenset("\u094d\u09cd\u0acd\u0b4d\u0c4d\u0d4d\u1039\u17d2")

# Lao. Every syllable has a written vowel, so a consonant with a sign on it, or before a vowel letter, begins one.
# Consonants that never end a syllable also begin one. ຫ may be the silent first letter of the next consonant, and ວ ລ ຣ
# the second letter of the one before.
_LAO_CONSONANT = "\u0e81-\u0eae\u0edc-\u0edf"
_LAO_SIGN = "\u0eb0-\u0ebd\u0ec8-\u0ecd"
_LAO_FINAL = "ກງຍດນບມວອລຣ"
_LAO_SYLLABLE = re.compile(
    f"[{_LAO_LEADING}]"
    f"|(?<![{_LAO_LEADING}ຫ])(?![{_LAO_FINAL}])[{_LAO_CONSONANT}]"
    f"|(?<![{_LAO_LEADING}ຫ])(?:[ກງຍດນບມອ]|(?<![{_LAO_CONSONANT}])[ວລຣ])"
    f"(?=[{_LAO_SIGN}]|[ອວ][{_LAO_CONSONANT}](?![{_LAO_SIGN}ອວ]))"
)
# Burmese. A consonant begins a syllable unless it is stacked below another (virama), ends one (asat), or stands above
# one. A bare consonant is mostly the short first syllable of the following word: no break after it.
_BURMESE_SYLLABLE = re.compile(
    "(?<!\u1039)(?<![^\u1039][\u1000-\u1021])[\u1000-\u102a](?!\u1037?[\u1039\u103a])|(?<![\u1040-\u1049])[\u1040-\u1049]|\u104e"
)
# Khmer. An onset is a consonant, the consonants stacked below it, and a vowel. A consonant without a vowel may end the
# preceding syllable or be a syllable with an unwritten vowel.
_KHMER_CONSONANT = "\u1780-\u17b3"
_KHMER_ONSET = f"[{_KHMER_CONSONANT}](?:\u17d2[{_KHMER_CONSONANT}])*[\u17c9\u17ca]?[\u17b6-\u17c8\u17cf\u17d0]"
_KHMER_SYLLABLE = re.compile(f"(?<!\u17d2){_KHMER_ONSET}")
# Text before an onset that certainly begins a syllable: a vowel, then at most one consonant that ends its syllable (not
# after vowels that cannot have one), or one marked as final or silent.
_KHMER_BEFORE_ONSET = re.compile(
    f"(?:[\u17b6-\u17d0]|[\u17b6-\u17c2\u17c4][{_KHMER_CONSONANT}]|\u17c6\u1784|[\u17cb-\u17cd]|[\u17d4-\u17da])\\Z"
)
_KHMER_OPEN = re.compile(f"(?:[\u17c3\u17c5\u17c7\u17c8]|\u17c6(?!\u1784))(?=[{_KHMER_CONSONANT}])")
_END_MARKS = re.compile(
    "(?<=[\u17d4-\u17d7\u17da\u104a\u104b\u0e46\u0ec6\u0e5a\u0e5b])(?=[\u0e01-\u0eff\u1000-\u104f\u1780-\u17b3])"
)
_HAS_SYLLABLES = re.compile("[\u0e01-\u0eff\u1000-\u104f\u1780-\u17dd]")


@lru_cache(maxsize=64)
def syllable_starts(text: str) -> frozenset[int]:
    """Positions in ``text`` where a line may begin within Thai (words), Lao, Khmer or Burmese (syllables)."""
    if not _HAS_SYLLABLES.search(text):
        return frozenset()
    starts = {
        *(match.start() for rule in (_LAO_SYLLABLE, _BURMESE_SYLLABLE, _END_MARKS) for match in rule.finditer(text)),
        *(
            match.start()
            for match in _KHMER_SYLLABLE.finditer(text)
            if _KHMER_BEFORE_ONSET.search(text, max(0, match.start() - 2), match.start())
        ),
        *(match.end() for match in _KHMER_OPEN.finditer(text)),
    }
    if _THAI.search(text):
        starts |= {i for i in _budoux_starts("th", text) if _THAI.match(text, i) and _THAI.match(text, i - 1)}
    return frozenset(i for i in starts if 0 < i < len(text) and _same_script(text, i) and not belongs_together(text, i))


@lru_cache(maxsize=64)
def phrase_starts(text: str) -> frozenset[int]:
    """Positions in ``text`` where a Thai, Chinese or Japanese word or phrase begins; none for other languages."""
    starts: set[int] = set()
    if _THAI.search(text):
        starts |= syllable_starts(text)
    if _HAN_OR_KANA.search(text):
        starts |= _budoux_starts(_han_language(text), text)
    return frozenset(starts)


def belongs_together(text: str, at: int) -> bool:
    """Whether ``text[at]`` belongs to the written syllable of the character before it.

    True for signs, for what follows a leading vowel, and for stacked letters. Other letters of a syllable are not
    detected.
    """
    before, after = text[at - 1], text[at]
    return (
        TRAILING_SIGNS.match(after) is not None
        or LEADING_VOWELS.match(before) is not None
        or (before in STACKERS and after.isalpha())
        or (after.isdigit() and before.isdigit())
        or _ends_burmese_syllable(text, at)
    )


def _ends_burmese_syllable(text: str, at: int) -> bool:
    return "\u1000" <= text[at] <= "\u102a" and re.match("\u1037?[\u1039\u103a]", text[at + 1 : at + 3]) is not None


def _same_script(text: str, at: int) -> bool:
    """Whether the characters around ``at`` have the same script; a foreign word such as "GPU" has spaces around it."""
    return ord(text[at]) >> 7 == ord(text[at - 1]) >> 7 or ord(text[at - 1]) >> 8 == ord(text[at]) >> 8 == 0x10


def has_kana(text: str) -> bool:
    """Whether at least an eighth of the Han characters and kana in ``text`` are kana, as in Japanese."""
    letters = len(_HAN_OR_KANA.findall(text))
    return 8 * len(_KANA.findall(text)) >= letters > 0


def _han_language(text: str) -> str:
    """The BudouX model for a text with Han characters or kana.

    Japanese has a large share of kana. Simplified and traditional Chinese are distinguished by the national standards
    that encode their characters (GB 2312, Big5).
    """
    if has_kana(text):
        return "ja"
    traditional = sum(_encodes(c, "big5") - _encodes(c, "gb2312") for c in text)
    return "zh-hant" if traditional > 0 else "zh-hans"


def _encodes(character: str, encoding: str) -> bool:
    try:
        character.encode(encoding)
    except UnicodeEncodeError:
        return False
    return True


def _budoux_starts(model: str, text: str) -> set[int]:
    starts, start = set(), 0
    for phrase in _parser(model).parse(text):
        starts.add(start)
        start += len(phrase)
    return starts


@cache
def _parser(model: str) -> Parser:
    """Load a BudouX model on first use: about 15 ms, in the worker thread that writes the subtitles."""
    import budoux

    return {
        "th": budoux.load_default_thai_parser,
        "ja": budoux.load_default_japanese_parser,
        "zh-hans": budoux.load_default_simplified_chinese_parser,
        "zh-hant": budoux.load_default_traditional_chinese_parser,
    }[model]()
