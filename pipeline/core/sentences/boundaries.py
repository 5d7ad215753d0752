"""Decide if a sentence ends at a position: rules for abbreviations, ordinals, names with full stops and quotations.

The functions are pure and take the text on either side of the position. The words are in the rules of each language.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass, fields

from ...languages import CLOSERS, MARKS
from ...languages.rules import rules
from ...languages.rules.record import FullStops, Rules

CONTEXT = 160
"""Characters on either side of a position given to the rules: more than any rule needs. Keeps splitting time linear."""

# Of all languages.
_EVERYWHERE = FullStops(
    before="dr prof mr mrs ms st vs cf e.g i.e ph.d",
    suffix="ai app bat bin bmp cfg cn com conf cpp cs css csv dat db de dev dll doc docx edu eu exe flac fr gif gov gz htm html ini io it java jp jpeg jpg js json log md mkv mov mp net org pdf php png ppt pptx py rb rs rtf ru sh sql srt svg sys tar tex tiff toml ts tsv txt uk vtt wav xls xlsx xml yaml yml zip",
    number="no nr vol fig p pp",
    word="no me may ill con la art",
)
_MAX_WORDS = 3  # words of an abbreviation: u. s. w.

_OPENERS = "\"'“‘„«»‹「『【《〈([{（［¿¡"
# The final marks of a sentence and the closing quotation marks and brackets after them. All repetitions are bounded.
_END = re.compile(rf"([{MARKS}]{{1,9}})(\s?[{re.escape(CLOSERS)}“«]{{0,4}})$")
_WORD = re.compile(rf"[\s{re.escape(_OPENERS)}]*([^\W\d_]+)")
_NUMBER = re.compile(r"[(№#]?\d|(?:[IVXLC]{2,}|[VX])\b")
_ROMAN = re.compile(r"[IVXLC]+")
_INITIALS = re.compile(r"(?:[^\W\d_]\.-?)*[^\W\d_]")
# One or two short words with full stops: the second and third word of an abbreviation.
_STOPPED_WORDS = re.compile(r"(?:[^\W\d_][\w\u0900-\u0dff]{0,4}\.\s?){1,2}")
_DASH = re.compile(r"(?:[-–—]+\s+|[–—]+)(?=[^\W\d_])")
_CAMEL_CASE = re.compile(r"\w*[a-z][A-Z]")
_ASIDE = re.compile(rf"(?:^|[{MARKS}]\s+)[(\[][^()\[\]]*[{MARKS}][)\]]$")
# Characters that never begin a sentence, and characters that do not begin one without a blank before them.
_NON_STARTERS = ",;，；、：؛،"
_NON_STARTERS_WITHOUT_BLANK = ":%‰°ºª/\\@_+="


@dataclass(frozen=True)
class WordLists:
    """The rules of a language, and its words by kind with those of all languages; see ``FullStops``."""

    rules: Rules
    before: frozenset[str]
    number: frozenset[str]
    either: frozenset[str]
    list: frozenset[str]
    starter: frozenset[str]
    label: frozenset[str]
    determiner: frozenset[str]
    counted: frozenset[str]
    suffix: frozenset[str]
    word: frozenset[str]


@functools.lru_cache(64)  # clients name languages, too
def word_lists(language: str) -> WordLists:
    """Return the word lists of a language, given any of its codes."""
    local = rules(language)
    kinds = [kind.name for kind in fields(FullStops)]
    return WordLists(
        local,
        **{
            kind: frozenset(f"{getattr(local.full_stops, kind)} {getattr(_EVERYWHERE, kind)}".split()) for kind in kinds
        },
    )


def is_end(before: str, after: str, lists: WordLists) -> bool | None:
    """Return True if a sentence ends between the two texts, False if it continues, None if no rule applies.

    ``before`` is the sentence so far with trailing blanks, or its last ``CONTEXT`` characters; ``after`` is the text
    that follows.
    """
    head, gap = before.rstrip(), before[len(before.rstrip()) :]
    if not head or not after.strip() or gap.count("\n") > 1:
        return None
    following = after.lstrip()
    if following[0] in _NON_STARTERS or (not gap and following[0] in _NON_STARTERS_WITHOUT_BLANK):
        return False
    end = _END.search(head)
    if end is None:
        return None
    marks, closers = end.groups()
    lower = _first_letter(following).islower()
    if lower and (closers or marks.endswith(("…", ".."))):
        return False
    if (dash := _DASH.match(following)) and _first_letter(following[dash.end() :]).islower():
        return False
    if closers:
        return _after_closer(head, following, closers, lists)
    if marks[-1] in "。！？" and (following[0].isdecimal() or lower):  # sentencex never splits here
        return True
    if marks != ".":
        return None
    if not gap and following[0] == "-":  # av. J.-C.
        return False
    if not gap and (verdict := _inside_name(head[:-1], following, lists)) is not None:
        return verdict
    if lists.rules.abbreviation is not None and lists.rules.abbreviation.search(head):
        return False
    for rule in (_ordinal, _abbreviation, _initial):
        if (verdict := rule(head[:-1], following, lists)) is not None:
            return verdict
    return None


def ends_open(text: str, language: str) -> bool:
    """Whether a text, one sentence or the beginning of one, goes on: it has no final mark, or only that of an abbreviation
    before which no sentence ends ("Dr.")."""
    if _END.search(text.rstrip()) is None:
        return True
    return is_end(text.rstrip()[-CONTEXT:] + " ", "Xxx", word_lists(language)) is False


def is_inside_quotation(before: str) -> bool:
    """Whether a quotation or bracket in ``before`` is still open."""
    directed = any(
        before.count(opening) > before.count(closing)
        for opening, closing in ("“”", "«»", "„“", "「」", "『』", "()", "[]", "（）")
    )
    return directed or before.count('"') % 2 == 1


def _after_closer(head: str, after: str, closers: str, lists: WordLists) -> bool | None:
    """Rule for a position after a closing mark.

    After a quotation, the sentence continues if the speaker is named. After a bracket, it ends if the bracket holds a
    sentence of its own.
    """
    if closers.strip()[-1] in ")]":
        return True if _ASIDE.search(head) and _first_letter(after).isupper() else None
    inside = head[: len(head) - len(closers)]
    opener = max(map(inside.rfind, '"“„«»「『'))
    introduced = inside[: max(opener, 0)].rstrip().endswith((",", ":", "，", "："))
    return False if is_attribution(after, lists.rules, introduced) else None


def _inside_name(before: str, after: str, lists: WordLists) -> bool | None:
    """Rule for a full stop without a blank after it: in file, host and program names, in numbers, between initials."""
    token = "".join(before.split()[-1:]).lstrip(_OPENERS)
    right = after.split()[0]
    if "://" in token or "@" in token or token.lower().startswith("www"):
        return False
    if token[-1:].isdigit() and right[0].isdigit():
        return False
    if _INITIALS.fullmatch(token) and token[-1].isupper() and right[0].isupper():
        return False
    suffix = re.match(r"[A-Za-z0-9]+", right)
    if suffix and suffix[0].lower() in lists.suffix and (suffix[0].isupper() or suffix[0].islower()):
        return False
    if _CAMEL_CASE.match(right):
        return False
    if any(_contains(lists.before, key) for key in _keys(token)) or _continues(token, right, lists):
        return False
    return None


def _ordinal(before: str, after: str, lists: WordLists) -> bool | None:
    """Rule for ordinals (2. Bundesliga, 3. října, Ludwig XIV. regierte), and for list numbers in any language."""
    words = before.split()
    number = words[-1].lstrip(_OPENERS) if words else ""
    if number.isdecimal() and len(words) == 1 and len(number) < 4:
        return False
    if not lists.rules.dotted_ordinals or not (number.isdecimal() or _ROMAN.fullmatch(number)):
        return None
    if _first_letter(after).islower():
        return False
    word = _word(after)
    if word in lists.counted:
        return False
    if not number.isdecimal() or len(number) > 3:
        return None
    if after[0].isdecimal() and len(number) < 3:  # 3. 10. 2024
        return False
    if len(words) > 1 and words[-2].lower() in lists.determiner and word and word not in lists.starter:
        return False
    return None


def _abbreviation(before: str, after: str, lists: WordLists) -> bool | None:
    """Rule for the longest abbreviation before the full stop that is in the table."""
    if _continues(before, after, lists):
        return False
    for key in _keys(before):
        if _contains(lists.before, key):
            return False
        if _contains(lists.list, key):
            if _word(after) in lists.counted:
                return False
            return _is_capitalised(after) if after[0] not in "([" else None
        if _contains(lists.either, key):
            if after[0].isdecimal():
                return False
            if not lists.starter:
                return False if _is_capitalised(after) is False else None
            return _is_starter(after, lists) and _is_capitalised(after) is not False
        if _contains(lists.number, key):
            if _NUMBER.match(after):
                return False
            return True if _contains(lists.word, key) and _is_capitalised(after) else None
        if _contains(lists.word, key) and _is_capitalised(after):
            return True
    return None


def _continues(before: str, after: str, lists: WordLists) -> bool:
    """Whether the position is inside an abbreviation of several words: z. |B., a.|C."""
    last = before.split()[-1].lstrip(_OPENERS) if before.strip() else ""
    following = _STOPPED_WORDS.match(after)
    if not last or following is None:
        return False
    words = [word for word in re.split(r"\.\s?", following[0]) if word]
    keys = (".".join([last, *words[:count]]) for count in range(1, len(words) + 1))
    return any(_contains(lists.before | lists.either | lists.list | lists.number, key) for key in keys)


def _initial(before: str, after: str, lists: WordLists) -> bool | None:
    """Rule for the initials of a name (J. R. R. Tolkien), but not "plan B. Then" or "you and I. Then"."""
    words = before.split()
    letters = words[-1].lstrip(_OPENERS) if words else ""
    if not _INITIALS.fullmatch(letters) or not letters[-1].isupper() or letters == lists.rules.capitals:
        return None
    if len(words) > 1 and words[-2].lower() in lists.label:
        return True if _is_capitalised(after) else None
    return None if _is_capitalised(after) is None or _is_starter(after, lists) else False


def _keys(before: str) -> list[str]:
    """Return table keys for the last words of a text, most words first, then without an elided article (l'art)."""
    words = [word.lstrip(_OPENERS).rstrip(".") for word in before.split()[-_MAX_WORDS:]]
    keys = [".".join(words[first:]) for first in range(len(words))]
    if words and (article := re.search(r"['’]([^'’]+)$", words[-1])):
        keys.append(article[1])
    if words and (latin := re.search(r"(?<=[\u2e80-\uffef])[A-Za-z.]+$", words[-1])):  # A社のNo. 5
        keys.append(latin[0])
    return [key for key in keys if key]


def _contains(words: frozenset[str], key: str) -> bool:
    return key in words or key.lower() in words


def _is_starter(after: str, lists: WordLists) -> bool:
    """Whether the next word is a sentence starter and not an initial."""
    word = _word(after)
    return word in lists.starter and not (len(word) == 1 and after[len(word) : len(word) + 1] == ".")


def _is_capitalised(after: str) -> bool | None:
    """Return True if the next word begins with a capital, False if with a lower-case letter, None otherwise."""
    letter = _first_letter(after)
    return True if letter.isupper() else False if letter.islower() else None


def _word(after: str) -> str:
    """Return the first word, without opening marks before it; "" if a digit or another character comes first."""
    match = _WORD.match(after)
    return match[1] if match else ""


def _first_letter(after: str) -> str:
    return _word(after)[:1]


def is_attribution(after: str, of_language: Rules, introduced: bool) -> bool:
    """Whether ``after`` (no leading blanks) says who spoke after a quotation, and belongs to its sentence: “走吧。”他说。

    ``introduced``: the text before already said so. In scripts with letter case, a small letter shows the same without rules.
    """
    if of_language.particles is not None:
        return of_language.particles.match(after) is not None
    return of_language.speaking is not None and not introduced and of_language.speaking.match(after) is not None
