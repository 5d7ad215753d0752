"""Numbers, times, codes and addresses in a source text, which its translation must have too. Pure.

Small models change digits: they made "2.25美元" of "$4.25" and "551234" of "555-1234". A translation without a literal is repaired
like one without a glossary term; see ``pipeline.backends.marian.terms.term_repair``. Single digits are left out, since they are often words, and
so are numbers that are glued to letters.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from itertools import islice

from ....glossary import Match, Term
from ....languages import language_tag, spaced
from ....languages.rules import rules
from ....languages.rules.record import Rules
from .clock_times import like_times, time_forms, times

# Literals that are looked at in a part of a sentence. Each that is missing takes up to three searches.
_MOST = 8
# Characters of a number that is written in other ways; longer ones are serial numbers.
_LONGEST = 18
_LONGEST_WORD = 200
# Names of powers of ten after a number, as in "2.5 million" and "250万".
_SCALES = {
    "hundred": 2, "thousand": 3, "million": 6, "billion": 9, "trillion": 12,
    "百": 2, "千": 3, "万": 4, "百万": 6, "千万": 7, "亿": 8, "万亿": 12,
}  # fmt: skip
_SCALE = r"hundred\b|thousand\b|million\b|billion\b|trillion\b|百万|千万|万亿|[百千万亿]"
# Of hosts and files that are named without more.
_ENDINGS = (
    "com|org|net|edu|gov|io|br|pt|uk|de|fr|es|eu|ai|tv|dev|app|info"
    "|pdf|docx?|xlsx?|pptx?|txt|csv|zip|jpe?g|png|gif|svg|mp[34]|wav|py|json|xml|html?"
)
HOST = rf"[\w-]+ (?:\.[\w-]+)* \. (?: [a-z]{{2,}} / [\w.~/?#=&%+:@-]* (?<![.?:]) | (?:{_ENDINGS}) \b (?![\w@/]) )"
"""A host or a file, with any ending if a path follows it; verbose."""
# What follows a number that may be written otherwise: a part of a longer one, a unit, a time (10点30分), a decade, a month.
_OTHER = r"[\w:/月点时刻]|[.,-]\d|分(?!钟)|年代"
_LITERAL = re.compile(
    rf"""
    (?<![\w.@/])
    (?P<address> (?:https?://|www\.) [\w.~/?#=&%+:@-]* [\w/] | [\w.+-]+ @ [\w-]+ (?:\.[\w-]+)+
        | {HOST} )
    |
    (?<![\w$€£¥-]) (?P<code> (?-i:[A-Z][A-Z-]*\d[A-Z\d-]* | \d+[A-Z]) ) (?![\w-])
    |
    (?<![\w./-]) (?P<date> \d{{4}}-\d\d-\d\d | \d\d?/\d\d?/(?:\d\d){{1,2}} ) (?![\w/-])
    |
    (?<![\w.,:/-])
    (?P<telephone>
        \+\d+ (?:[ -]\d{{2,}})+
        | (?:\(\d{{2,4}}\)[ ]?)? \d{{2,}} (?:-\d{{3,}})+ (?<!\b(?:19|20)\d\d-(?:19|20)\d\d)  # but not 2021-2022
        | \(?\d{{2,4}}\)? (?:[ ]\d{{2,4}}){{2,}}
        | \d{{9,}} | 0\d{{2,}}
    )
    (?! \s* (?:{_SCALE}) | [\w:/%] | [.,-]\d )
    |
    (?: (?P<currency> (?<![\w]) (?:R|US)?\$\s? | [€£¥]\s? ) | (?<![\w:/.,百千万亿-]) (?P<minus> [-−] )? )
    (?P<number> \d+ (?:[.,]\d+)* )
    (?: \s* (?P<scale> {_SCALE} ) (?!\d)
        | (?P<ordinal> st\b | nd\b | rd\b | th\b | 日(?!元|[圆圓]) | 号(?![线楼站房门车院台桌机]) )  # but not line 10 or building 12
        | [ ]? (?P<unit> [€£] | (?:euro|pound|libra|iene)s?\b | yen\b )
        | (?! \s* (?:{_SCALE}) | {_OTHER} )
    )
    """,
    re.IGNORECASE | re.ASCII | re.VERBOSE,
)
_NAMED_CURRENCIES = {"euro": "€", "pound": "£", "libra": "£", "iene": "¥", "yen": "¥"}
_AMOUNT = r"(\d+(?:[.,]\d+)*(?:\s(?:[mb]illion|mil(?:h\w+)?|bilh\w+)\b)?)"
_PRICE = re.compile(rf"(?<!\w)(?:([€£¥])\s?{_AMOUNT}|{_AMOUNT}\s?([€£¥])|([€£¥]))(?!\w)")
# What a model may write instead of an address or a code, of a date, and of a telephone number.
_LIKE_WORDS = re.compile(r"[^\s\"“”()]*[^\s\"“”()!?,;:.]")
_LIKE_DATES = re.compile(r"(?:[^\W\d_]+ )?\d[\d/.-]*(?:st|nd|rd|th)?(?: de [^\W\d_]+ de \d{4}|, \d{4})?", re.IGNORECASE)
_LIKE_TELEPHONES = re.compile(r"[+(]?\d(?:[\d ()/-]*\d)?")
# What stands before a number that is no amount: "version 2.10", "Python 3.11".
_NAMED = re.compile(r"(?:\b[Vv]ers\w+|\w \W?[a-z]?[A-Z]\w+) $")
_AMBIGUOUS = re.compile(r"\d{1,3}[.,]\d{3}")
_GROUPED = re.compile(r"\d{1,3}(,\d{3})+(\.\d+)?")
_TURNED = str.maketrans(".,", ",.")


@dataclass(frozen=True)
class Literal(Match):
    """A literal in a text."""

    refused: tuple[str, ...] = ()  # wrong translations though an accepted one is in them, such as 9:30 p.m.
    like: re.Pattern[str] | None = None  # what a model may write instead of it
    optional: bool = False  # whether it is only written where the translation has what is like it


def stays(word: str) -> bool:
    """Whether a word between blanks is an address or a code, or has no letters, so that it is the same in every language."""
    if len(word) > _LONGEST_WORD:  # the pattern takes time with the square of the length
        return False
    rest = _LITERAL.sub(lambda match: "" if match["address"] or match["code"] else match.group(), word)
    return not any(map(str.isalpha, rest))


def literals(text: str, target: str, source: str = "en", *, clock: bool = True) -> tuple[Literal, ...]:
    """The first literals in ``text``, as terms with their accepted forms in the language ``target``.

    The preferred form is the spelling in ``text``, with the separators of ``target``: 1,250.50 is 1.250,50 in Portuguese. In English
    and Chinese, it is the usual one for numbers with a scale word (2.5 million, 250万), of 10,000 or more, and with a currency
    sign, and for days of the month (19th). Other ways to write it in digits are accepted. In other languages, numbers with a scale word or of two digits, which are often words there, are not found; in
    those that have digits of their own, no numbers. Times, with ``clock``, are those of ``clock_times``.
    """
    source, target = language_tag(source).language, language_tag(target).language
    return tuple(islice(sorted(_matches(text, source, target, clock=clock), key=lambda match: match.start), _MOST))


def with_named_currencies(text: str, language: str, known: Callable[[str], bool]) -> str:
    """Write the currency signs that a vocabulary lacks as words: €45 becomes 45 euros."""
    names = {
        sign: next(after for before, after in pairs if not before)
        for sign, pairs in rules(language).currencies.items()
        if sign in text and not known(sign)
    }

    def written(match: re.Match[str]) -> str:
        before, number, other, after, alone = match.groups()
        name, amount = names.get(before or after or alone), number or other
        if name is None or amount is None:
            return match.group() if name is None else name.strip()
        return f"{amount} de{name}" if amount.endswith("ões") else amount + name

    return _PRICE.sub(written, text) if names else text


def _matches(text: str, source: str, target: str, *, clock: bool) -> Iterator[Literal]:
    spans: list[tuple[int, int]] = []
    for time in times(text, source) if clock and not rules(target).own_digits else ():
        spans.append((time.start, time.end))
        accepted, refused = time_forms(time, target)
        name = text[time.start : time.end]
        term = Term(name, accepted[0], target_variants=tuple(accepted[1:]))
        yield Literal(*spans[-1], term, tuple(refused), like_times(source, target))
    for match in _LITERAL.finditer(text):
        if any(start < match.end() and match.start() < end for start, end in spans):
            continue
        forms = list(dict.fromkeys(_forms(match, source, target)))
        if forms:
            # An address that goes on with a hyphen is another one.
            others = (f"{match.group()}-",) if match["address"] else ()
            term = Term(match.group(), forms[0], target_variants=tuple(forms[1:]))
            yield Literal(*match.span(), term, others, _like(match, target))


def _like(match: re.Match[str], target: str) -> re.Pattern[str] | None:
    if match["telephone"] or match["date"]:
        return _LIKE_TELEPHONES if match["telephone"] else _LIKE_DATES
    if match["number"] is None:
        return _LIKE_WORDS if spaced(target) else None
    whole = match["scale"] is None or rules(target).writes_digits
    return _like_numbers(
        target, priced=whole and bool(match["currency"] or match["unit"]), scaled=whole and bool(match["scale"])
    )


@functools.cache
def _like_numbers(target: str, *, priced: bool, scaled: bool) -> re.Pattern[str]:
    """Numbers with their separators wrong; with currencies or names of powers of ten, if the source has such."""
    affixes = [pair for pairs in rules(target).currencies.values() for pair in pairs] if priced else []
    before, after, scales = (
        "|".join(sorted(map(re.escape, {affix for affix in some if affix}), key=len, reverse=True)) or "(?!)"
        for some in (
            (before for before, _ in affixes),
            (after for _, after in affixes),
            (name for name, _ in rules(target).scales) if scaled else (),
        )
    )
    return re.compile(
        rf"(?P<before>{before})?(?:(?<!\w)[-−])?\d+(?:[.,]+\d+)*(?:st|nd|rd|th)?(?:{scales})?(?P<after>(?:{after})(?!\w))?",
        re.IGNORECASE,
    )


def _forms(match: re.Match[str], source: str, target: str) -> Iterator[str]:
    """The accepted forms of a literal, the preferred one first; none if it need not be in the translation."""
    sign = (match["currency"] or match["unit"] or "").strip().removeprefix("US")
    language = rules(target)
    sign = _NAMED_CURRENCIES.get(sign.lower().removesuffix("s"), sign)
    if match["number"] is None:
        yield match.group()
        if match["telephone"]:
            yield match.group().replace("-", " ")
            yield re.sub(r"[ -]", "", match.group())
        if match["date"] and "/" in match["date"]:
            day, month, year = match["date"].split("/")
            yield f"{month}/{day}/{year}"
    elif match["minus"]:
        for form in _spellings(match, source, target):
            yield from (sign + form for sign in ("-", "−", *language.minus_words))
    elif not sign or not language.currencies or (match["scale"] and not language.writes_digits):
        yield from _spellings(match, source, target)
    else:
        for form in _spellings(match, source, target):
            of = " de" if form.endswith(("ões", "000.000")) else ""  # 5 milhões de euros
            yield from (before + form + of * bool(after) + after for before, after in language.currencies[sign])


def _spellings(match: re.Match[str], source: str, target: str) -> Iterator[str]:
    """Ways to write the number in a match, without its currency."""
    written, language = match["number"], rules(target)
    value = _value(written, rules(source).separators)
    if match["scale"]:
        if value is not None and language.writes_digits:
            yield from _number_forms(value.scaleb(_SCALES[match["scale"].lower()]), language)
        elif value is not None and _AMBIGUOUS.fullmatch(written):  # 585.895 billion are no 585.895 bilhões
            yield from islice(_number_forms(value, language), 2)
        return
    priced = match["currency"] or match["unit"] or match["minus"]
    if language.own_digits or (not priced and len(written) < (2 if language.writes_digits else 3)):
        return
    if match["ordinal"] and language.ordinal is not None and written.isdigit():
        yield written + language.ordinal(int(written))
    if value is not None and language.writes_digits and (value >= 10_000 or "," in written):
        yield from _number_forms(value, language)
    separators = rules(source).separators
    if _NAMED.search(match.string, 0, match.start()):
        yield written
    if value is None or not separators or not language.separators:
        yield from (written, written.translate(_TURNED))
    elif separators == language.separators:
        yield written
    else:
        yield written.translate(_TURNED)  # what is written would be read as another number
    if value is not None:
        yield from _number_forms(value, language)
    if not priced and written.isdigit() and language.ordinal is not None:  # século 19, anos 1990, anos 90
        yield from (written + language.ordinal(int(written)), *(f"{century}{written}s" for century in ("", "19")))


def _value(written: str, separators: str) -> Decimal | None:
    """The number that digits stand for. None if that depends on the language (3.500, 3,50), or if it is too long for one."""
    if len(written) > _LONGEST:
        return None
    if separators == ".,":
        written = written.translate(_TURNED)
    elif not separators and _AMBIGUOUS.fullmatch(written):
        return None
    if _GROUPED.fullmatch(written):
        written = written.replace(",", "")
    return None if "," in written or written.count(".") > 1 else Decimal(written)


def _number_forms(value: Decimal, language: Rules) -> Iterator[str]:
    """Ways to write a number, the preferred one first."""
    plain, grouped = (f"{value:{kind}f}" if value % 1 else f"{value:{kind}.0f}" for kind in ("", ","))
    short = []
    for name, power in language.scales:
        scaled = value.scaleb(-power).normalize()
        if scaled >= 1 and len(scaled.as_tuple().digits) <= 4 and scaled < 10_000:
            short.append(f"{scaled:f}{name}")
    if language.separators == ".,":
        plain, grouped, short = (
            plain.translate(_TURNED),
            grouped.translate(_TURNED),
            [form.translate(_TURNED) for form in short],
        )
        yield from (grouped, plain)
    else:
        yield from short[:1]
        yield from (grouped, plain) if language.grouped else (plain, grouped)
    separator = language.separators[:1] or ","
    yield from (grouped.replace(separator, other) for other in "\u00a0 \u202f'’")
    if not language.separators:
        yield from (grouped.translate(_TURNED), plain.translate(_TURNED))
        yield from (grouped.translate(_TURNED).replace(".", other) for other in "\u00a0 \u202f")
    yield from short
    if value % 1:
        for form in (plain, grouped):  # 63.4 dollars are $63.40
            yield from (f"{form}0", form.rstrip("0"))
