"""Numbers, codes and addresses in a source text, which its translation must have too. Pure.

Small models change digits: they made "2.25美元" of "$4.25" and "551234" of "555-1234". A translation without a literal is repaired
like one without a glossary term; see ``pipeline.nmt.term_repair``. Single digits are left out, since they are often words, and
so are times, dates with signs, and numbers that are glued to letters.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal
from itertools import islice

from pipeline.glossary.terms import Match, Term
from pipeline.languages import language_tag
from pipeline.languages.numbers import chinese, chinese_digits, english

# Literals that are looked at in a part of a sentence. Each that is missing takes up to three searches.
_MOST = 8
# Characters of a number that is written in other ways; longer ones are serial numbers.
_LONGEST = 18
# Names of powers of ten after a number, as in "2.5 million" and "250万".
_SCALES = {
    "hundred": 2, "thousand": 3, "million": 6, "billion": 9, "trillion": 12,
    "百": 2, "千": 3, "万": 4, "百万": 6, "千万": 7, "亿": 8, "万亿": 12,
}  # fmt: skip
_SCALE = r"hundred\b|thousand\b|million\b|billion\b|trillion\b|百万|千万|万亿|[百千万亿]"
# Of hosts and files that are named without more.
_ENDINGS = "com|org|net|edu|gov|io|br|pdf|docx?|xlsx?|pptx?|txt|csv|zip|jpe?g|png|gif|svg|mp[34]|wav|py|json|xml|html?"
# What follows a number that may be written otherwise: a part of a longer one, a unit, a time (10点30分), a decade, a month.
_OTHER = r"[\w:/月点时刻]|[.,-]\d|分(?!钟)|年代"
_LITERAL = re.compile(
    rf"""
    (?<![\w.@/])
    (?P<address> (?:https?://|www\.) [\w.~/?#=&%+-]* [\w/] | [\w.+-]+ @ [\w-]+ (?:\.[\w-]+)+
        | [\w-]+ (?:\.[\w-]+)* \. (?:{_ENDINGS}) \b (?![\w@/]) )
    |
    (?<![\w-]) (?P<code> (?-i:[A-Z][A-Z-]*\d[A-Z\d-]*) ) (?![\w-])
    |
    (?<![\w.,:/-])
    (?P<telephone>
        \+\d+ (?:[ -]\d{{2,}})+
        | \d{{2,4}} (?:[ ]\d{{2,4}}){{2,}}
        | (?!(?:19|20)\d\d-(?:19|20)\d\d\b) \d{{2,}} (?:-\d{{3,}})+  # but not 2021-2022
    )
    (?! [\w:/] | [.,-]\d )
    |
    (?: (?P<currency>[$€£¥]) | (?<![\w:/.,百千万亿-]) )
    (?P<number> \d+ (?:[.,]\d+)* )
    (?: \s* (?P<scale> {_SCALE} ) (?!\d)
        | (?P<ordinal> st\b | nd\b | rd\b | th\b | 日 | 号(?![线楼站房门车院台桌机]) )  # but not line 10 or building 12
        | (?! \s* (?:{_SCALE}) | {_OTHER} )
    )
    """,
    re.IGNORECASE | re.ASCII | re.VERBOSE,
)
_SCALE_WORDS = {
    "en": ((" billion", 9), (" million", 6)),
    "zh": (("亿", 8), ("万", 4)),
    "ja": (("億", 8), ("万", 4)),
    "ko": (("억", 8), ("만", 4)),
}
# Languages in which numbers may be written with other digits than 0 to 9 (Unicode CLDR 46, their native numbering systems).
_OWN_DIGITS = {
    "ar", "as", "bn", "ckb", "dz", "fa", "gu", "hi", "km", "kn", "ks", "lo", "ml", "mni", "mr", "my", "ne", "or", "pa", "ps",
    "sat", "sd", "ta", "te", "th", "ur", "uz",
}  # fmt: skip
# Languages that write 1.250,50 (Unicode CLDR 46, their number symbols; pt as in Brazil and most text).
_COMMA_DECIMALS = {
    "az", "bs", "ca", "da", "de", "el", "es", "eu", "gl", "hr", "id", "is", "it", "mk", "nl", "pt", "ro", "sl", "sr", "tr", "vi",
}  # fmt: skip
# What stands before and after a number for a currency sign, by language.
_CURRENCIES = {
    "en": {
        "$": (("$", ""), ("", " dollars"), ("", " dollar"), ("", " US dollars")),
        "€": (("€", ""), ("", " euros"), ("", " euro")),
        "£": (("£", ""), ("", " pounds"), ("", " pound")),
        "¥": (("¥", ""), ("", " yuan"), ("", " yen")),
    },
    "pt": {
        "$": (("", " dólares"), ("$", ""), ("US$ ", ""), ("US$", ""), ("$ ", ""), ("", " dólar")),
        "€": (("", " euros"), ("€", ""), ("€ ", ""), ("", " €"), ("", " euro")),
        "£": (("", " libras"), ("£", ""), ("£ ", ""), ("", " libra")),
        "¥": (("", " ienes"), ("", " iuanes"), ("¥", "")),
    },
    "zh": {
        "$": (("", "美元"), ("$", ""), ("", "元"), ("", "块"), ("", "美金")),
        "€": (("", "欧元"), ("€", ""), ("", "欧")),
        "£": (("", "英镑"), ("£", ""), ("", "镑")),
        "¥": (("", "元"), ("¥", ""), ("", "日元"), ("", "块")),
    },
}
_THREE_DIGITS = re.compile(r"\d{1,3}[.,]\d{3}")
_GROUPED = re.compile(r"\d{1,3}(,\d{3})+(\.\d+)?")


def literals(text: str, target: str, source: str = "en") -> tuple[Match, ...]:
    """The first literals in ``text``, as terms with their accepted forms in the language ``target``.

    The preferred form is the spelling in ``text``, with 1,250.50 as 1.250,50 if only ``target`` writes it so. In English and Chinese, it is the usual one for numbers with a scale word
    (2.5 million, 250万), of 10,000 or more, and with a currency sign, and for days of the month (19th). Other separators are
    accepted, and in these two languages words for whole numbers. In other languages, numbers with a scale word or of two digits,
    which are often words there, are not found; in those that have digits of their own, no numbers.
    """
    changed = _COMMA_DECIMALS.isdisjoint({language_tag(source).language})
    return tuple(islice(_matches(text, language_tag(target).language, changed), _MOST))


def _matches(text: str, language: str, changed: bool) -> Iterator[Match]:
    changed = changed and language in _COMMA_DECIMALS
    for match in _LITERAL.finditer(text):
        forms = list(dict.fromkeys(_forms(match, language, changed)))
        if forms:
            yield Match(*match.span(), Term(match.group(), forms[0], target_variants=tuple(forms[1:])))


def _forms(match: re.Match[str], language: str, changed: bool) -> Iterator[str]:
    """The accepted forms of a literal, the preferred one first; none if it need not be in the translation.

    ``changed``: the target language writes commas and points the other way round.
    """
    sign = match["currency"]
    if match["number"] is None:
        yield match.group()
        if match["telephone"]:
            yield match.group().replace("-", " ")
            yield re.sub(r"[ -]", "", match.group())
    elif sign is None or language not in _CURRENCIES:
        yield from _spellings(match, language, changed)
    else:
        for form in _spellings(match, language, changed):
            yield from (before + form + after for before, after in _CURRENCIES[language][sign])


def _spellings(match: re.Match[str], language: str, changed: bool) -> Iterator[str]:
    """Ways to write the number in a match, without its currency."""
    written = match["number"]
    value, counted = _value(written), language in ("en", "zh")
    if match["scale"]:
        if value is not None and counted:
            yield from _number_forms(value.scaleb(_SCALES[match["scale"].lower()]), language)
        return
    if language in _OWN_DIGITS or (not match["currency"] and len(written) < (2 if counted else 3)):
        return
    if match["ordinal"] and language == "en" and written.isdigit():
        yield written + _ordinal(int(written))
    if value is not None and counted and (value >= 10_000 or "," in written):
        yield from _number_forms(value, language)
    turned = written.translate(str.maketrans(".,", ",."))
    if changed and _THREE_DIGITS.fullmatch(written):
        yield turned  # what is written would be read as another number
    else:
        yield from (turned, written) if changed and written.count(".") < 2 else (written, turned)
    if value is not None:
        yield from _number_forms(value, language)


def _value(written: str) -> Decimal | None:
    """The number that digits stand for. None if that depends on the language (3.500, 3,50), or if it is too long for one."""
    if len(written) > _LONGEST:
        return None
    if _GROUPED.fullmatch(written):
        written = written.replace(",", "")
    elif "," in written or written.count(".") > 1 or re.fullmatch(r"\d{1,3}\.\d{3}", written):
        return None
    return Decimal(written)


def _number_forms(value: Decimal, language: str) -> Iterator[str]:
    """Ways to write a number, the preferred one first."""
    plain = f"{value:f}".rstrip("0").rstrip(".") if value % 1 else f"{value:.0f}"
    grouped = f"{value:,f}".rstrip("0").rstrip(".") if value % 1 else f"{value:,.0f}"
    scales = _SCALE_WORDS.get(language, ())
    short = []
    for name, power in scales:
        scaled = value.scaleb(-power).normalize()
        if scaled >= 1 and len(scaled.as_tuple().digits) <= 4 and scaled < 10_000:
            short.append(f"{scaled:f}{name}")
            if scaled % 1 == 0:
                short += [words + name for words in _in_words(int(scaled), language)]
    yield from short[:1]
    if language == "zh":
        yield from (plain, grouped)
    else:
        yield from (grouped, plain)
    yield from (grouped.replace(",", separator) for separator in ".\u00a0 \u202f'’")
    yield from short[1:]
    if value % 1:
        yield f"{plain}0"  # 63.4 dollars are $63.40
    elif value < 10_000:
        yield from _in_words(int(value), language)


def _in_words(value: int, language: str) -> Iterator[str]:
    """A number below 10,000 in words; a Chinese one digit by digit, too."""
    if language == "zh":
        words = chinese(value)
        yield from (words, chinese_digits(value), words.replace("二百", "两百").replace("二千", "两千"))
        if 10 <= value < 20:
            yield words[1:]  # 十二, which is 一十二 only within a number
    elif language == "en":
        for words in (english(value), english(value, " and ")):
            yield words
            if words.startswith("one "):
                yield "a" + words[3:]


def _ordinal(value: int) -> str:
    return "th" if value % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(value % 10, "th")
