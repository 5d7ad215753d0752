"""Whether a sentence ends at a position: rules for abbreviations, ordinals, names with full stops and quotations.

Pure functions of the text on either side of one position; the words that they know are in boundaries.tsv.
"""

from __future__ import annotations

import csv
import functools
import re
from dataclasses import dataclass
from pathlib import Path

from pipeline.languages import two_letters
from pipeline.sentences.attribution import is_attribution

CONTEXT = 160
"""Characters on either side of a position that the rules see: more than any rule needs; the limit keeps splitting linear."""
MARKS = ".!?…。！？．؟۔।"
CLOSERS = "\"'”’»›」』】》〉)]}）］"

_TABLE = Path(__file__).with_name("boundaries.tsv")
_ALL = "*"
# Languages that use the rows of another.
_SAME_AS = {"bs": "sh", "fil": "tl", "hr": "sh", "ms": "id", "nb": "no", "nn": "no", "sr": "sh"}
# Languages that write an ordinal number as digits and a full stop.
_ORDINALS = frozenset({"cs", "da", "de", "et", "eu", "fi", "hu", "is", "lv", "no", "pl", "sh", "sk", "sl", "tr"})
_MAX_WORDS = 3  # of an abbreviation: u. s. w.

_OPENERS = "\"'“‘„«»‹「『【《〈([{（［¿¡"
# The last mark of a sentence, and what closes quotations and brackets after it. Its length is bounded, as is all here.
_END = re.compile(rf"([{MARKS}]{{1,9}})(\s?[{re.escape(CLOSERS)}“«]{{0,4}})$")
_WORD = re.compile(rf"[\s{re.escape(_OPENERS)}]*([^\W\d_]+)")
_NUMBER = re.compile(r"[(№#]?\d|(?:[IVXLC]{2,}|[VX])\b")
_ROMAN = re.compile(r"[IVXLC]+")
_INITIALS = re.compile(r"(?:[^\W\d_]\.-?)*[^\W\d_]")
# One or two short words with full stops, as the second and third of an abbreviation.
_STOPPED_WORDS = re.compile(r"(?:[^\W\d_][\w\u0900-\u0dff]{0,4}\.\s?){1,2}")
_DASH = re.compile(r"(?:[-–—]+\s+|[–—]+)(?=[^\W\d_])")
_CAMEL_CASE = re.compile(r"\w*[a-z][A-Z]")
_ASIDE = re.compile(rf"(?:^|[{MARKS}]\s+)[(\[][^()\[\]]*[{MARKS}][)\]]$")
# What begins no sentence at all, and what begins none without a blank before it.
_NEVER_FIRST = ",;，；、：؛،"
_NEVER_FIRST_AT_ONCE = ":%‰°ºª/\\@_+="
# Thai has no full stop at the end of a sentence, only in abbreviations.
_THAI_ABBREVIATION = re.compile(r"[ก-๛]\.\s*$")


@dataclass(frozen=True)
class Habits:
    """How a language uses the full stop; the head of boundaries.tsv describes the kinds of words."""

    language: str
    before: frozenset[str] = frozenset()
    number: frozenset[str] = frozenset()
    either: frozenset[str] = frozenset()
    list: frozenset[str] = frozenset()
    starter: frozenset[str] = frozenset()
    label: frozenset[str] = frozenset()
    determiner: frozenset[str] = frozenset()
    counted: frozenset[str] = frozenset()
    suffix: frozenset[str] = frozenset()
    word: frozenset[str] = frozenset()


@functools.cache
def habits(language: str) -> Habits:
    """The habits of a language, given by any code of it; those of all languages where the table has no row of it."""
    code = two_letters(language) or language
    code = _SAME_AS.get(code, code)
    words: dict[str, set[str]] = {}
    for row_language, kind, row_words in _rows():
        if row_language in (_ALL, code):
            words.setdefault(kind, set()).update(row_words)
    return Habits(code, **{kind: frozenset(each) for kind, each in words.items()})


@functools.cache
def _rows() -> tuple[tuple[str, str, tuple[str, ...]], ...]:
    lines = [line for line in _TABLE.read_text("utf-8").splitlines() if not line.startswith("#")]
    rows = csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)
    return tuple((row["language"], row["kind"], tuple(row["words"].split())) for row in rows)


def is_end(before: str, after: str, known: Habits) -> bool | None:
    """True where a sentence ends between the two texts, False where it goes on, None where no rule applies.

    ``before`` is the sentence so far with the blanks after it, or its last ``CONTEXT`` characters; ``after`` follows it.
    """
    head, gap = before.rstrip(), before[len(before.rstrip()) :]
    if not head or not after.strip() or gap.count("\n") > 1:
        return None
    rest = after.lstrip()
    if rest[0] in _NEVER_FIRST or (not gap and rest[0] in _NEVER_FIRST_AT_ONCE):
        return False
    end = _END.search(head)
    if end is None:
        return None
    marks, closers = end.groups()
    lower = _first_letter(rest).islower()
    if lower and (closers or marks.endswith(("…", ".."))):
        return False
    if (dash := _DASH.match(rest)) and _first_letter(rest[dash.end() :]).islower():
        return False
    if closers:
        return _after_closer(head, rest, closers, known)
    if marks[-1] in "。！？" and (rest[0].isdecimal() or lower):  # where sentencex never splits
        return True
    if marks != ".":
        return None
    if not gap and rest[0] == "-":  # av. J.-C.
        return False
    if not gap and (verdict := _inside_name(head[:-1], rest, known)) is not None:
        return verdict
    if known.language == "th" and _THAI_ABBREVIATION.search(head):
        return False
    for rule in (_ordinal, _abbreviation, _initial):
        if (verdict := rule(head[:-1], rest, known)) is not None:
            return verdict
    return None


def ends_open(text: str, language: str) -> bool:
    """Whether a text, one sentence or the beginning of one, goes on: it has no final mark, or only that of an abbreviation
    before which no sentence ends ("Dr.")."""
    if _END.search(text.rstrip()) is None:
        return True
    return is_end(text.rstrip()[-CONTEXT:] + " ", "Xxx", habits(language)) is False


def is_inside_quotation(before: str) -> bool:
    """True if a quotation or bracket in ``before`` is still open."""
    directed = any(
        before.count(left) > before.count(right)
        for left, right in ("“”", "«»", "„“", "「」", "『』", "()", "[]", "（）")
    )
    return directed or before.count('"') % 2 == 1


def _after_closer(head: str, rest: str, closers: str, known: Habits) -> bool | None:
    """After a quotation: whether its speaker is named. After a bracket: whether it holds a sentence of its own."""
    if closers.strip()[-1] in ")]":
        return True if _ASIDE.search(head) and _first_letter(rest).isupper() else None
    inside = head[: len(head) - len(closers)]
    opener = max(map(inside.rfind, '"“„«»「『'))
    introduced = inside[: max(opener, 0)].rstrip().endswith((",", ":", "，", "："))
    return False if is_attribution(rest, known.language, introduced) else None


def _inside_name(left: str, rest: str, known: Habits) -> bool | None:
    """A full stop without a blank after it: in names of files, hosts and programs, in figures and between initials."""
    token = "".join(left.split()[-1:]).lstrip(_OPENERS)
    right = rest.split()[0]
    if "://" in token or "@" in token or token.lower().startswith("www"):
        return False
    if token[-1:].isdigit() and right[0].isdigit():
        return False
    if _INITIALS.fullmatch(token) and token[-1].isupper() and right[0].isupper():
        return False
    suffix = re.match(r"[A-Za-z0-9]+", right)
    if suffix and suffix[0].lower() in known.suffix and (suffix[0].isupper() or suffix[0].islower()):
        return False
    if _CAMEL_CASE.match(right):
        return False
    if any(_is_in(known.before, key) for key in _keys(token)) or _continues(token, right, known):
        return False
    return None


def _ordinal(left: str, rest: str, known: Habits) -> bool | None:
    """Ordinals: 2. Bundesliga, 3. října, Ludwig XIV. regierte; and the numbers of a list in any language."""
    words = left.split()
    number = words[-1].lstrip(_OPENERS) if words else ""
    if number.isdecimal() and len(words) == 1 and len(number) < 4:
        return False
    if known.language not in _ORDINALS or not (number.isdecimal() or _ROMAN.fullmatch(number)):
        return None
    if _first_letter(rest).islower():
        return False
    word = _word(rest)
    if word in known.counted:
        return False
    if not number.isdecimal() or len(number) > 3:
        return None
    if rest[0].isdecimal() and len(number) < 3:  # 3. 10. 2024
        return False
    if len(words) > 1 and words[-2].lower() in known.determiner and word and word not in known.starter:
        return False
    return None


def _abbreviation(left: str, rest: str, known: Habits) -> bool | None:
    """The longest abbreviation before the full stop that the table knows."""
    if _continues(left, rest, known):
        return False
    for key in _keys(left):
        if _is_in(known.before, key):
            return False
        if _is_in(known.list, key):
            if _word(rest) in known.counted:
                return False
            return _case(rest) if rest[0] not in "([" else None
        if _is_in(known.either, key):
            if rest[0].isdecimal():
                return False
            if not known.starter:
                return False if _case(rest) is False else None
            return _starts(rest, known) and _case(rest) is not False
        if _is_in(known.number, key):
            if _NUMBER.match(rest):
                return False
            return True if _is_in(known.word, key) and _case(rest) else None
        if _is_in(known.word, key) and _case(rest):
            return True
    return None


def _continues(left: str, rest: str, known: Habits) -> bool:
    """True within an abbreviation of several words: z. |B., a.|C."""
    last = left.split()[-1].lstrip(_OPENERS) if left.strip() else ""
    following = _STOPPED_WORDS.match(rest)
    if not last or following is None:
        return False
    words = [word for word in re.split(r"\.\s?", following[0]) if word]
    keys = (".".join([last, *words[:count]]) for count in range(1, len(words) + 1))
    return any(_is_in(known.before | known.either | known.list | known.number, key) for key in keys)


def _initial(left: str, rest: str, known: Habits) -> bool | None:
    """The initials of a name: J. R. R. Tolkien; but not "plan B. Then" nor "you and I. Then"."""
    words = left.split()
    letters = words[-1].lstrip(_OPENERS) if words else ""
    if not _INITIALS.fullmatch(letters) or not letters[-1].isupper() or (known.language == "en" and letters == "I"):
        return None
    if len(words) > 1 and words[-2].lower() in known.label:
        return True if _case(rest) else None
    return None if _case(rest) is None or _starts(rest, known) else False


def _keys(left: str) -> list[str]:
    """The last words of a text as the table writes abbreviations, most words first, then without an article: l'art."""
    words = [word.lstrip(_OPENERS).rstrip(".") for word in left.split()[-_MAX_WORDS:]]
    keys = [".".join(words[at:]) for at in range(len(words))]
    if words and (article := re.search(r"['’]([^'’]+)$", words[-1])):
        keys.append(article[1])
    if words and (latin := re.search(r"(?<=[\u2e80-\uffef])[A-Za-z.]+$", words[-1])):  # A社のNo. 5
        keys.append(latin[0])
    return [key for key in keys if key]


def _is_in(words: frozenset[str], key: str) -> bool:
    return key in words or key.lower() in words


def _starts(rest: str, known: Habits) -> bool:
    """True if the next word is one that starts sentences, and not an initial."""
    word = _word(rest)
    return word in known.starter and not (len(word) == 1 and rest[len(word) : len(word) + 1] == ".")


def _case(rest: str) -> bool | None:
    """True before a capital letter, False before a small one, None before anything else."""
    letter = _first_letter(rest)
    return True if letter.isupper() else False if letter.islower() else None


def _word(rest: str) -> str:
    """The first word, without quotation marks before it; empty where a figure or something else comes first."""
    match = _WORD.match(rest)
    return match[1] if match else ""


def _first_letter(rest: str) -> str:
    return _word(rest)[:1]
