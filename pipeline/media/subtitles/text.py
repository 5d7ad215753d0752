"""Script rules for subtitles: display width, reading time, and where text may break. Pure.

Chinese and Japanese break between characters, except next to closing and opening marks (kinsoku shori, JIS X 4051).
Thai breaks between words, Lao, Khmer and Burmese between syllables, all other scripts at spaces. Nothing breaks inside
a number, or inside a word of a script that writes spaces.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection

from .bidi import harmless
from .breaks import belongs_together, has_kana, syllable_starts
from .rules import SubtitleRules

# Characters that must not begin a line …
_CLOSING = set(
    "，。、；：？！）》」』】〕〉｝］”’…·・—～．,.;:?!)]}%»›‰％℃°ー々〻ゝゞヽヾ،؛؟۔।॥ぁぃぅぇぉっゃゅょゎゕゖァィゥェォッャュョヮヵヶ"
    "ๆฯໆຯ។៕៖ៗ၊။"
)
# … or end one.
_OPENING = set("（《「『【〔〈｛［“‘([{«‹¿¡$€£¥￥＄#＃")
_NO_BREAK_SPACES = "\u00a0\u202f\u2007"
_GLUE = {*_NO_BREAK_SPACES, "\u2060", "\ufeff"}
_BLANK = re.compile(rf"[^\S{_NO_BREAK_SPACES}]+")
# 三百二十五, 三点五, 百分之十, 5,000万, １２：３０: Python's \d are digits of every script and width.
_DIGIT = r"[\d〇零一二三四五六七八九十百千万亿两]"
_NUMBER = re.compile(rf"{_DIGIT}+(?:(?:分之|点|(?<=\d)[.．:：](?=\d)|(?<=\d)[,，](?=\d{{3}}(?!\d))){_DIGIT}+)*")
_NUMBER_REACH = 32  # characters searched for a number on either side of a break
_SENTENCE_END = set(".!?。！？…؟۔।॥។៕။")
_CLAUSE_END = set(",;:，；：、—)）》」』】”’»،؛៖၊")
# Particles that attach to the preceding word.
_PARTICLES = set("的了吗呢吧们")

# Cost of a break, from after a sentence (best) to inside a Chinese word (worst). In Thai, Lao, Khmer and Burmese,
# spaces separate clauses and phrases.
COST_SENTENCE, COST_CLAUSE, COST_PHRASE, COST_WORD, COST_SHORT_WORD, COST_INSIDE = 0.0, 0.15, 0.3, 1.0, 1.5, 2.5
# Seams and phrase starts disagree about a word boundary.
COST_DOUBTFUL = 1.75


def normalized(text: str) -> str:
    """Clean up ``text``: single spaces, no control characters or line breaks, no blanks at its ends.

    No-break spaces stay. The result is empty if nothing would be visible.

    Direction embeddings, overrides and isolates are removed, because they would affect text beyond their own (the sinks
    set directions; direction marks affect only their neighbours and stay). Byte order marks are removed, too.
    """
    text = _BLANK.sub(" ", harmless(_BLANK.sub(" ", text))).strip()
    return text if any(unicodedata.category(c) not in ("Cf", "Zs") for c in text) else ""


def is_cjk(text: str) -> bool:
    """Whether ``text`` is measured in full-width characters."""
    letters = [c for c in text if c.isalnum()]
    # Chinese may contain a long English name; English seldom quotes that much Chinese.
    return 8 * sum(_wide(c) for c in letters) >= len(letters) > 0


def is_japanese(text: str) -> bool:
    """Whether ``text`` is measured as Japanese: full-width, with kana."""
    return is_cjk(text) and has_kana(text)


def width(text: str) -> int:
    """Display columns: two for full-width characters, none for combining ones, one for others.

    Characters of ambiguous width in Unicode (quotes, dashes, ellipses) are full-width in CJK text.
    """
    ambiguous = 2 if is_cjk(text) else 1
    return sum(_columns(c, ambiguous) for c in text)


def widths(text: str, cjk: bool) -> list[int]:
    """Columns of each character; see ``width``."""
    return [_columns(c, 2 if cjk else 1) for c in text]


def line_limit(text: str, rules: SubtitleRules) -> int:
    """Maximum columns of a line of ``text``."""
    if is_japanese(text):
        return 2 * rules.line_japanese_characters
    return 2 * rules.line_cjk_characters if is_cjk(text) else rules.line_columns


def reading_ms(text: str, rules: SubtitleRules) -> int:
    """Reading time of ``text``: each character at its script's speed; combining ones take none."""
    japanese = is_japanese(text)
    full = rules.japanese_characters_per_second if japanese else rules.cjk_characters_per_second
    seconds = sum(
        1 / full if columns == 2 else columns / rules.characters_per_second for columns in widths(text, is_cjk(text))
    )
    return round(1000 * seconds)


def atoms(text: str) -> list[str]:
    """Split normalized ``text`` where a line may break; the pieces join to ``text``.

    A space at a break ends the piece before it.
    """
    pieces: list[str] = []
    start = 0
    syllables = syllable_starts(text)
    for position in range(1, len(text)):
        if may_break(text, position, syllables):
            pieces.append(text[start:position])
            start = position
    return [*pieces, text[start:]] if text else []


def may_break(text: str, at: int, syllables: Collection[int] = ()) -> bool:
    """Whether a line may end before ``text[at]``.

    Args:
        syllables: see ``syllable_starts``.
    """
    before, after = text[at - 1], text[at]
    if after == " " or _joins(after) or before == "\u200d" or {before, after} & _GLUE:
        return False
    if before == "\u200b":  # zero-width space, written between words in Thai and Khmer
        return True
    if before == " ":
        # French has a space before some marks; "12 500" and "10 %" are one number.
        left, right = text[at - 2], after
        return not (_closes(text, at) or left in _OPENING or (left.isdigit() and right.isdigit()))
    if _closes(text, at) or before in _OPENING:
        return False
    if at in syllables:
        return True
    if not (_ideographic(before) or _ideographic(after)):
        return False
    return not _inside_number(text, at)


def break_cost(text: str, at: int, seams: Collection[int] = (), phrases: Collection[int] = ()) -> float:
    """The cost of ending a line before ``text[at]``.

    Args:
        seams: token boundaries of the translation model; in a script without spaces most are word boundaries.
        phrases: see ``phrase_starts``.
    """
    before = text[at - 1] if text[at - 1] != " " else text[at - 2]
    if before in _SENTENCE_END:
        return COST_SENTENCE
    if before in _CLAUSE_END:
        return COST_CLAUSE
    if text[at - 1] == " ":
        if _spaceless(before):
            return COST_PHRASE
        # Do not separate "the", "of", "de", "la" from the next word.
        last = text[: at - 1].rpartition(" ")[2]
        return COST_SHORT_WORD if len(last) <= 3 and last.isalpha() and not _ideographic(last[0]) else COST_WORD
    if text[at] in _PARTICLES or (text[at - 1].isdigit() and _ideographic(text[at])):
        return COST_INSIDE
    boundaries = [at in starts for starts in (seams, phrases) if starts]
    return COST_WORD if all(boundaries) else COST_DOUBTFUL if any(boundaries) else COST_INSIDE


def clusters(text: str) -> list[str]:
    """Split ``text`` into characters with their combining marks, to break a word wider than a line."""
    characters: list[str] = []
    for position, c in enumerate(text):
        if characters and (_joins(c) or characters[-1][-1] == "\u200d" or belongs_together(text, position)):
            characters[-1] += c
        else:
            characters.append(c)
    return characters


def _columns(character: str, ambiguous: int) -> int:
    if _joins(character) or unicodedata.category(character) == "Cf":
        return 0
    kind = unicodedata.east_asian_width(character)
    return 2 if kind in "WF" else ambiguous if kind == "A" and not character.isalnum() else 1


def _wide(character: str) -> bool:
    return unicodedata.east_asian_width(character) in "WF"


def _ideographic(character: str) -> bool:
    """Whether a character is full-width and not of a spaced script (Korean, full-width Latin letters and digits)."""
    if not _wide(character) or unicodedata.category(character) in ("Lu", "Ll", "Nd"):
        return False
    return not unicodedata.name(character, "").startswith("HANGUL")


def _spaceless(character: str) -> bool:
    """Whether a character is Thai, Lao, Burmese or Khmer."""
    return "\u0e01" <= character <= "\u0eff" or "\u1000" <= character <= "\u109f" or "\u1780" <= character <= "\u17ff"


def _joins(character: str) -> bool:
    if "\U0001f3fb" <= character <= "\U0001f3ff":  # an emoji's skin tone
        return True
    return unicodedata.category(character) in ("Mn", "Mc", "Me") or character in "\u200d\ufe0e\ufe0f"


def _closes(text: str, at: int) -> bool:
    """Whether ``text[at]`` is a closing mark; one that begins a word (".5", ".NET") is not."""
    if text[at] not in _CLOSING:
        return False
    begins_word = text[at - 1] == " " and at + 1 < len(text) and text[at + 1].isalnum()
    return not (begins_word and text[at].isascii())


def _inside_number(text: str, at: int) -> bool:
    start = max(0, at - _NUMBER_REACH)
    numbers = _NUMBER.finditer(text, start, at + _NUMBER_REACH)
    return any(number.start() < at < number.end() for number in numbers)
