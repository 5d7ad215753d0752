"""Sentences with times, dates, prices, numbers, codes and addresses, and what a right translation has of each."""

import random
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

Made = tuple[str, str]
"""A literal as it is written in the source, and the pattern of what is right in the translation."""
CARRIERS: dict[tuple[str, str], list[str]] = {}
"""(language, kind) → sentences with a place for the literal."""
for _line in Path(__file__).with_name("literal_carriers.tsv").read_text("utf-8").splitlines():
    _language, _kind, _text = _line.split("\t")
    CARRIERS.setdefault((_language, _kind), []).append(_text)
MONTHS = {
    "en": "January February March April May June July August September October November December".split(),
    "pt": "janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro dezembro".split(),
}
WORDS = {
    "en": ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"],
    "pt": ["uma|um", "duas|dois", "três", "quatro", "cinco", "seis", "sete", "oito", "nove", "dez", "onze", "doze"],
}


@dataclass(frozen=True)
class Sentence:
    """A sentence with one or more literals."""

    text: str
    literals: tuple[re.Pattern[str], ...]
    """What is right for each."""
    rest: re.Pattern[str]
    """What shows that the rest was translated."""

    def is_right(self, translation):
        """Whether each literal is in a translation once, no other number is, and nothing is lost or follows the end."""
        left = translation
        for right in self.literals:
            left, count = right.subn(" ", left, count=1)
            if not count:
                return False
        return not re.search(r"\d|[.!?]\s*\S", left) and self.rest.search(translation) is not None


@dataclass(frozen=True)
class Line:
    kind: str
    text: str
    right: re.Pattern[str]

    def is_right(self, translation):
        """Whether the literal is in a translation, once."""
        before, after = (sum(map(str.isdigit, text)) for text in (self.text, translation))
        return self.right.search(translation) is not None and after <= (4 if self.kind.startswith("time") else before)


def lines(source, target, count, seed=1):
    """``count`` sentences of the language ``source``, the kinds in turn, and what is right in ``target``."""
    rng = random.Random(f"{source}-{target}-{seed}")
    made = []
    for number in range(count):
        kind = ORDER[number % len(ORDER)]
        literal, right = MAKERS[kind](rng, source, target)
        text = rng.choice(CARRIERS[source, kind.split()[0]]).format(literal).replace("..", ".")
        made.append(Line(kind, text, re.compile(right, re.IGNORECASE)))
    return made


def sentences(source, target, count, seed=1):
    """``count`` sentences with literals, made of literal_sentences.tsv."""
    rng = random.Random(f"{source}-{target}-{seed}")
    table = [
        line.split("\t") for line in Path(__file__).with_name("literal_sentences.tsv").read_text("utf-8").splitlines()
    ]
    table = [(text, rest) for language, text, rest in table if language == source]
    made = []
    for number in range(count):
        text, rest = table[number % len(table)]
        rights: list[re.Pattern[str]] = []

        def literal(found, rights=rights):
            written, right = KINDS[found.group(1)](rng, source, target)
            rights.append(re.compile(right, re.IGNORECASE))
            return written

        text = re.sub(r"\{(\w+)\}", literal, text)
        # Longer ones first, since a shorter one may be a part of them.
        made.append(Sentence(text.replace("..", "."), tuple(rights), re.compile(rest, re.IGNORECASE)))
    return made


def _time(rng, source, target):
    hour, minute = rng.randrange(1, 13), rng.choice([0, 5, 10, 15, 20, 30, 40, 45, 50])
    after = rng.random() < 0.5
    if source == "en":
        sign = rng.choice(["p.m.", "pm", "PM"] if after else ["a.m.", "am", "AM"])
        written = f"{hour} {sign}" if not minute else f"{hour}:{minute:02} {sign}"
    else:
        hour = min(hour, 11)
        part = ("da noite" if hour >= 7 else "da tarde") if after else "da manhã"
        minutes = rng.choice([f"h{minute:02}", f":{minute:02}"]) if minute else "h"
        written = f"{hour}{minutes} {part}"
    return written, _right_time(hour % 12 + 12 * after, minute, target, told=True)


def _time_of_24(rng, source, target):
    hour, minute = rng.randrange(0, 24), rng.choice([5, 10, 15, 20, 30, 40, 45, 50])
    written = f"{hour}h{minute:02}" if source == "pt" and rng.random() < 0.6 else f"{hour}:{minute:02}"
    told = hour > 12 or source == "pt"
    return written, _right_time(hour, minute, target, told=told, half=told)


def _right_time(hour, minute, target, *, told, half=False):
    """``told``: whether the half of the day is known. ``half``: whether it may be left to a 24-hour clock."""
    short = hour % 12 or 12
    clock = rf"0?{hour}(?:[:h]{minute:02})" + (rf"|0?{hour} ?(?:h|horas)\b" if not minute else "")
    later = hour >= 12
    if target == "pt":
        part = "da noite|da tarde|do meio-dia" if later else "da manhã|da madrugada"
        word = WORDS["pt"][short - 1]
        minutes = rf"(?:[:h]{minute:02})" if minute else "(?:[:h]00|h| horas)?"
        of_12 = rf"(?:0?{short}{minutes}|(?:{word})) (?:{part})"
        plain = (
            rf"(?:{clock})(?! (?:p\.?m|a\.?m|da|do))"
            if told or half
            else rf"0?{hour}[:h]{minute:02}(?! (?:[ap]\.?m|d[ao] ))"
        )
        noon = "|meio-dia" if (hour, minute) == (12, 0) else "|meia-noite" if (hour, minute) == (0, 0) else ""
        return rf"(?<![\d:])(?:{of_12}|{plain}{noon})(?![\d:])"
    part = (
        r"p\.?m\b\.?|in the (?:afternoon|evening)|at (?:night|noon)"
        if later
        else r"a\.?m\b\.?|in the morning|at (?:night|dawn)"
    )
    minutes = f":{minute:02}" if minute else "(?::00)?(?: o'clock)?"
    of_12 = rf"(?:0?{short}{minutes}|{WORDS['en'][short - 1]}(?: o'clock)?) ?(?:{part})"
    plain = rf"0?{hour}:{minute:02}(?! ?(?:[ap]\.?m|in the|at n))"
    noon = "|noon" if (hour, minute) == (12, 0) else "|midnight" if (hour, minute) == (0, 0) else ""
    return rf"(?<![\d:])(?:{of_12}|{plain}{noon})(?![\d:])"


def _date(rng, source, target):
    day, month, year = rng.randrange(1, 29), rng.randrange(12), rng.randrange(1900, 2031)
    names = MONTHS[source][month], MONTHS[target][month]
    suffix = "" if rng.random() < 0.5 else str(year)
    if source == "en":
        written = f"{names[0]} {day}" + (f", {suffix}" if suffix else "")
    else:
        written = f"{day} de {names[0]}" + (f" de {suffix}" if suffix else "")
    if target == "pt":
        first = "|1º|1o|primeiro" if day == 1 else ""
        return written, rf"\b(?:{day}{first}) de {names[1]}" + (rf" de {suffix}\b" if suffix else "")
    ending = "(?:st|nd|rd|th)?"
    right = rf"\b(?:{names[1]} {day}{ending}|(?:the )?{day}{ending}(?: of)? {names[1]})\b"
    return written, right + (rf",?(?: of| in)? {suffix}\b" if suffix else "")


def _iso_date(rng, source, target):
    year, month, day = rng.randrange(1990, 2031), rng.randrange(1, 13), rng.randrange(13, 29)
    if source == "pt" and rng.random() < 0.5:
        return f"{day:02}/{month:02}/{year}", rf"\b(?:{day:02}/{month:02}|{month:02}/{day:02})/{year}\b"
    written = f"{year}-{month:02}-{day:02}"
    return written, rf"(?<![\d-]){written}(?![\d-])"


def _grouped(value, language):
    return f"{value:,}".replace(",", "." if language == "pt" else ",")


def _decimal(whole, cents, language):
    return _grouped(whole, language) + ("," if language == "pt" else ".") + cents


def _number_right(whole, cents, target):
    """The number in the target language's separators, with or without those of thousands."""
    mark, group = (",", "[. ]") if target == "pt" else (r"\.", ",")
    digits = "|".join({re.escape(str(whole)), f"{whole:,}".replace(",", group)})
    return rf"(?<![\d.,])(?:{digits})" + (f"{mark}{cents}" if cents else "") + r"(?![\d]|[.,]\d)"


def _price(rng, source, target):
    whole = rng.choice([rng.randrange(1, 100), rng.randrange(100, 1000), rng.randrange(1000, 300_000)])
    cents = rng.choice(["", f"{rng.randrange(1, 100):02}"])
    sign = rng.choice("$€£") if source == "en" else rng.choice(["R$", "€", "US$"])
    digits = _decimal(whole, cents, source) if cents else _grouped(whole, source)
    written = f"{sign}{digits}"
    if source == "pt":
        written = (
            f"{digits} €" if sign == "€" and rng.random() < 0.5 else f"{sign} {digits}" if sign != "€" else written
        )
    right = _number_right(whole, cents, target)
    if target == "pt":
        sign, word = {"$": (r"\$", "dólar"), "€": ("€", "euro"), "£": ("£", "libra")}[sign]
        return written, rf"(?:{sign} ?)(?:{right})|(?:{right}) ?(?:{sign}|{word})"
    sign, word = {"US$": (r"\$", "dollar"), "€": ("€", "euro"), "R$": (r"R\$", "rea(?:l|is)|brazilian")}[sign]
    return written, rf"(?:(?<!\w){sign} ?|US\$ ?)(?:{right})|(?:{right}) ?(?:{sign}|{word}|US dollar)"


def _number(rng, source, target):
    whole, cents = rng.randrange(2, 400), rng.choice([f"{rng.randrange(1, 10)}", f"{rng.randrange(11, 100)}"])
    return _decimal(whole, cents, source), _number_right(whole, cents, target)


def _percent(rng, source, target):
    whole, cents = rng.randrange(2, 90), rng.choice(["", f"{rng.randrange(1, 10)}"])
    written = (_decimal(whole, cents, source) if cents else str(whole)) + "%"
    return written, _number_right(whole, cents, target) + r" ?(?:%|por ?cento|per ?cent)"


def _thousands(rng, source, target):
    value = rng.choice([rng.randrange(1001, 10_000), rng.randrange(10_000, 1_000_000), rng.randrange(10**6, 10**8)])
    return _grouped(value, source), _number_right(value, "", target)


def _telephone(rng, source, target):
    digits = [rng.choice("23456789"), *(rng.choice("0123456789") for _ in range(10))]
    form = rng.choice(["###-###-####", "###-####", "#########", "+## ### ### ###", "(##) #####-####", "0### ### ####"])
    written = "".join(digits.pop() if one == "#" else one for one in form)
    loose = r"[ -]?".join(re.escape(part) for part in re.split("[ -]", written))
    return written, rf"(?<![\d.,]){loose}(?!\d|[.,-]\d)"


def _code(rng, source, target):
    form = rng.choice(["AA####", "AA-####", "A##", "##A", "AAA-##A#", "A#A#A#"])
    letters, numbers = "ABCDEFGHJKLMNPQRSTUVWXYZ", "123456789"
    written = "".join(rng.choice({"A": letters, "#": numbers}.get(one, one)) for one in form)
    return written, rf"(?<![\w-])(?-i:{written})(?![\w-])"


def _exactly(written):
    return written, rf"(?<![\w@/.-]){re.escape(written)}(?![\w@/-]|\.\w)"


NAMES = ("anna.smith", "joao_silva", "info", "maria-santos99", "support", "p.costa", "contato", "b2b.sales")
HOSTS = ("example.com", "mail.example.org", "exemplo.com.br", "my-shop.net", "docs.example.io", "www.example.edu")


def _mail(rng, source, target):
    return _exactly(f"{rng.choice(NAMES)}@{rng.choice(HOSTS[:5])}")


def _host(rng, source, target):
    return _exactly(rng.choice(HOSTS))


def _address(rng, source, target):
    path = rng.choice(
        ["/docs/start", "/~anna/notes", "/page?id=57&lang=en", "/v2/users", "/help#contact", ":8080/status"]
    )
    return _exactly(rng.choice(["https://", "http://"]) + rng.choice(HOSTS) + path)


def _file(rng, source, target):
    stem = rng.choice(["report_v2", "budget-2024", "IMG_2041", "notes", "final.version", "summary 3".replace(" ", "_")])
    return _exactly(f"{stem}.{rng.choice(['pdf', 'xlsx', 'docx', 'jpg', 'txt', 'py', 'zip'])}")


def _year(rng, source, target):
    year = str(rng.randrange(1010, 2030))
    return year, rf"(?<![\d.,:]){year}(?![\d:]|[.,]\d)"


MAKERS: dict[str, Callable[[random.Random, str, str], Made]] = {
    "time": _time, "time of 24 hours": _time_of_24, "date": _date, "date in digits": _iso_date, "price": _price,
    "number": _number, "percent": _percent, "thousands": _thousands, "telephone": _telephone, "code": _code,
    "e-mail": _mail, "host": _host, "address": _address, "file": _file, "year": _year,
}  # fmt: skip
ORDER = (
    "time", "price", "e-mail", "telephone", "time of 24 hours", "thousands", "code", "number", "date", "address", "price",
    "time", "file", "percent", "host", "time of 24 hours", "telephone", "year", "date in digits", "e-mail",
)  # fmt: skip


def _any_number(rng, source, target):
    value = rng.choice([rng.randrange(1001, 10_000), rng.randrange(10_000, 10**6), rng.randrange(10**6, 10**9)])
    return _grouped(value, source), _number_right(value, "", target)


def _small(rng, source, target):
    value = rng.randrange(21, 100)
    return str(value), rf"(?<![\d.,]){value}(?![\d.,]*\d)"


def _minus(rng, source, target):
    whole, cents = rng.randrange(2, 40), str(rng.randrange(1, 10))
    written = rng.choice(["-", "minus " if source == "en" else "menos "]) + _decimal(whole, cents, source)
    word = "menos" if target == "pt" else "minus|negative"
    return written, rf"(?:[-−]|\b(?:{word}) )" + _number_right(whole, cents, target).replace(r"(?<![\d.,])", "")


KINDS: dict[str, Callable[[random.Random, str, str], Made]] = {
    "number": _any_number, "small": _small, "price": _price, "minus": _minus, "phone": _telephone, "mail": _mail,
    "host": _host, "code": _code, "time": _time, "percent": _percent, "file": _file, "year": _year,
}  # fmt: skip
