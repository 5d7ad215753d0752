"""Normalisation of source text before translation; the displayed source text is not changed. Pure.

The SentencePiece models of most Marian models normalise text themselves (nmt_nfkc: Unicode NFKC, and most zero-width
characters become spaces); others do not (identity). This module does what is right for both kinds. It replaces
full-width letters and digits, half-width kana, ligatures and similar characters. It keeps the full-width punctuation of
Chinese and Japanese, because models without normaliser were trained on it. It also avoids errors of nmt_nfkc: 2½ must
not become 21⁄2, nor 10⁶ become 106, and a soft hyphen or direction mark must not split a word.
"""

from __future__ import annotations

import re
import unicodedata

from ..languages import language_tag
from ..languages.chinese import simplified
from ..languages.marks import letters
from ..languages.numbers import PORTUGUESE_HOURS, english, in_digits
from ..languages.rules import rules

# Characters replaced by their NFKC equivalents: Latin ligatures, Roman numerals, Arabic presentation forms,
# mathematical letters, half-width and full-width letters and digits.
_COMPATIBLE = re.compile(
    "[\u2160-\u217f\ufb00-\ufb06\ufb13-\ufb17\ufb50-\ufdfb\ufe70-\ufefc"
    "\uff10-\uff19\uff21-\uff3a\uff41-\uff5a\uff61-\uffdc\U0001d400-\U0001d7ff]+"
)
# Full-width punctuation between or before digits is part of the number: １２，５００; －５.
_IN_NUMBER = re.compile(r"(?<=\d)[，．：／](?=\d)|[－−＋](?=\d)")
_MARKS = str.maketrans("，．：／－−＋", ",.:/--+")
_PERCENT = re.compile(r"(?<=\d)％")
_FRACTION = re.compile("(\\d?)([\u00bc-\u00be\u2150-\u215e])")
_POWER = re.compile("(?<=\\d)[\u2070\u00b9\u00b2\u00b3\u2074-\u2079]+")
# Characters without meaning for translation: control characters, soft hyphen, direction marks, word joiner, variation
# selectors. The joiners of Persian and Indian scripts and the zero-width spaces of Thai and Khmer are kept.
_DROPPED = re.compile(
    "[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\u00ad\u061c\u200e\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff"
    "\U000e0100-\U000e01ef]+"
)
_SPACE = re.compile(r"\s")
# Words that consist only of letters; "COVID-19", "B2B" and "U.S.A." do not match and keep their capitals.
_WORD = re.compile(r"(?<!\w)(?<!\w\.)[^\W\d_]+(?:['’][^\W\d_]+)*(?!\w|-?\d|\.\w|@|://)")
# A word that is no part of a code, a unit or an address. Without one, a text is no sentence.
_PROSE = re.compile(r"(?<![\w@/.:$-])[^\W\d_]{2,}(?![\w@]|[./-]\w|://)")
# Times in words. Students read "half past nine" as the half of nine, and "nove e meia" as nine and a half.
_HOURS = {
    "en": {english(hour): hour for hour in range(1, 13)},
    "pt": {word: hour for hour, word in enumerate(PORTUGUESE_HOURS, 1)},
}
_MINUTES = {
    "en": {english(minute): minute for minute in range(10, 60, 5)},
    "pt": {"dez": 10, "quinze": 15, "vinte": 20, "meia": 30, "trinta": 30, "quarenta": 40, "cinquenta": 50},
}
_SPOKEN_TIME = {
    language: re.compile(pattern.format("|".join(_HOURS[language]), "|".join(_MINUTES[language])), re.IGNORECASE)
    for language, pattern in (
        ("en", r"(?<=\bat )({0}) ({1})\b|\b(half past|(?:a )?quarter (?:past|to)) ({0}|\d\d?)\b"),
        ("pt", r"(?<=\bàs )({0}) e ({1})\b"),
    )
}
# As in "at 7.35".
_DOTTED_TIME = re.compile(r"(?:(?<=\bat \d)|(?<=\bat \d\d))\.(?=[0-5]\d\b(?![.,:%]\d))")
_SMALL_I = re.compile(r"(?<![\w.'-])i(?=['’](?:m|ve|ll|d)\b|[^\w.'’-]|$)")
# Which students read as "less than" in Portuguese, and keep as a sign.
_MINUS = {
    "en": re.compile(r"(?<!\d )\bminus (?=\d)", re.IGNORECASE),
    "pt": re.compile(r"\bmenos (?=\d+(?:,\d+)? ?(?:graus?\b|°|º))", re.IGNORECASE),
}
_VERB = "is|are|was|were|do|does|did|can|could|will|would|should|have|has|had"
_PERSON = "i|you|he|she|it|we|they"
_NEGATED = "isn|aren|wasn|weren|don|doesn|didn|can|couldn|won|wouldn|shouldn|haven|hasn|hadn"
_ELES = "(?:você|vocês|ele|ela|eles|elas|a gente|o senhor|a senhora|ess[ea]|est[ea])"
_QUESTION = {
    "en": re.compile(
        rf"\W*(?:(?:and|but|so|then|well|okay),?\s+)?(?:(?:who|what|where|when|why|how)(?:\s+(?:{_VERB}|(?:{_NEGATED})['’]t)|['’]s)|who else|whose|whom"
        rf"|(?:how|what) about|(?:how|what|which)\s+(?!(?:{_PERSON})\b)\w+\s+(?:{_VERB})|which\s+(?:{_VERB}))\b"
        rf"|\W*(?:(?:and|but),?\s+)?(?!do (?:it|this|that)\b)(?:(?:{_VERB}|may|shall|must)\s+(?:{_PERSON}|this|that|there|any\w+|some\w+)"
        rf"|(?:{_NEGATED})['’]t\s+(?:{_PERSON}|this|that|there)|(?:is|are|was|does|did|can)\s+(?!not\b)\w+)\b",
        re.IGNORECASE,
    ),
    "pt": re.compile(
        rf"\W*(?:(?:e|mas|então),?\s+)?(?:onde|qual|quais|quant[oa]s?(?! [aà]s?\b)|por que|(?:a )?que horas|cadê|será que|quem (?:é|são) {_ELES}"
        rf"|o que (?:é (?:isso|isto|aquilo)|{_ELES}\b(?!.*\b(?:é|são|foi|era)\b))|(?:de|para|até) onde (?:{_ELES}|é|são|vem|vai|vamos|vão)"
        rf"|(?:com|de|para) quem (?:{_ELES}|é|são)|como (?:{_ELES} (?:está|vai|se)|vai|vão|foi [oa]|é que|se (?:diz|chama|escreve|faz))"
        r"|quando (?:é|foi|será) [oa]|posso (?:entrar|sair|pagar|ajudar|usar|ver))\b",
        re.IGNORECASE,
    ),
}
# "Ask not what" is read as a statement.
_OLD_ORDER = re.compile(r"(^|[,;:] )(ask|fear|worry|judge|forget|doubt|think|speak|look) not\b", re.IGNORECASE)
# With fewer capitals than this, the text may be just a name or two: NATO, BBC NEWS, OK!
_MIN_CAPITALS = 8


def prepared(text: str, language: str, script: str | None = None) -> str:
    """Normalise ``text``, a sentence of ``language``, for the translator.

    Mandarin Chinese is converted to simplified characters, which models translate best, unless ``script``, the source
    script named in the model's files, is Hant. A sentence in capitals is lower-cased; see ``lowered``.
    """
    tag = language_tag(language)
    if not text.isascii():
        text = normalized(text)
        if tag.language == "zh" and script != "Hant":
            text = simplified(text)
    return lowered(_SPACE.sub(" ", _DROPPED.sub("", text)), tag.language)


def normalized(text: str) -> str:
    """Apply NFC and replace compatibility characters by common ones."""
    text = unicodedata.normalize("NFC", _DROPPED.sub("", text))
    text = _FRACTION.sub(lambda found: _fraction(*found.groups()), text)
    text = _POWER.sub(lambda found: "^" + unicodedata.normalize("NFKC", found.group()), text)
    text = _COMPATIBLE.sub(lambda found: unicodedata.normalize("NFKC", found.group()), text)
    return _PERCENT.sub("%", _IN_NUMBER.sub(lambda found: found.group().translate(_MARKS), text))


def lowered(text: str, language: str) -> str:
    """Convert a sentence of several words that is all in capitals to sentence case; return other text unchanged.

    Models have seen few sentences in capitals: of 118 such sentences, the demo model's first search looped on 45 and
    translated none correctly. Names and German nouns lose their capitals.
    """
    letters = [character for character in text if character.isalpha()]
    if len(letters) < _MIN_CAPITALS or not all(map(str.isupper, letters)) or len(_WORD.findall(text)) < 2:
        return text
    text = _WORD.sub(lambda found: _lower(found.group(), language), text)
    first = next(at for at, character in enumerate(text) if character.isalnum())
    return text[:first] + _title(text[first], language) + text[first + 1 :]


def capitalised(text: str, language: str) -> str:
    """Convert the first letter of a sentence to a capital if its first word is in small letters.

    Models were trained on sentences that begin with a capital. A recogniser that heard only the beginning of a sentence
    may write none.
    """
    first = _WORD.match(text, len(text) - len(text.lstrip()))
    if first is None or not first.group().islower():
        return text
    return text[: first.start()] + _title(text[first.start()], language) + text[first.start() + 1 :]


def written(text: str, language: str, *, complete: bool) -> str:
    """Write a sentence that was spoken as it would be in print: no fillers, no stutter, and a mark at its end.

    Students were trained on printed text. Without a mark at the end they leave out words ("two hundred and fifty three euros
    and forty cents" lost the euros), and "where do you live" is no question. ``complete``: a sentence in progress gets no mark.
    """
    language, known = language_tag(language).language, rules(language)
    if known.fillers is not None and known.stutter is not None:
        shorter = known.stutter.sub(r"\1", known.fillers.sub("", text))
        text = shorter if letters(shorter) else text
    if language == "en":
        text = _DOTTED_TIME.sub(":", _SMALL_I.sub("I", text))
        text = _OLD_ORDER.sub(lambda found: f"{found[1]}{'do' if found[1] else 'Do'} not {found[2].lower()}", text)
    if language in _SPOKEN_TIME:
        text = _SPOKEN_TIME[language].sub(lambda found: _clock_time(found, language), text)
    text = in_digits(text, language, complete=complete)
    if language in _MINUS:
        text = _MINUS[language].sub("-", text)
    bare = text.rstrip()
    if (
        not complete
        or not _PROSE.search(bare)
        or language not in _QUESTION
        or not bare
        or not (bare[-1].isalnum() or bare[-1] in "%€£$")
    ):
        return text
    return f"{bare}?" if _QUESTION[language].match(bare) else f"{bare}."


def _clock_time(found: re.Match[str], language: str) -> str:
    """9:30 for "half past nine", 8:45 for "a quarter to nine"."""
    hour, minute, *named = (group and group.lower() for group in found.groups())
    if minute:
        return f"{_HOURS[language][hour]}:{_MINUTES[language][minute]:02}"
    part, hour = named
    before = part.endswith("to")
    return f"{(_HOURS[language].get(hour) or int(hour)) - before or 12}:{30 if part.startswith('half') else 45 if before else 15}"


def _fraction(before: str, sign: str) -> str:
    parts = unicodedata.normalize("NFKC", sign).replace("\N{FRACTION SLASH}", "/")
    return f"{before} {parts}" if before else parts


def _lower(word: str, language: str) -> str:
    if language == "en" and re.match(r"I\b", word):
        return word[0] + word[1:].lower()
    if language in ("tr", "az"):
        word = word.replace("I", "ı").replace("İ", "i")
    return word.lower()


def _title(letter: str, language: str) -> str:
    return "İ" if letter == "i" and language in ("tr", "az") else letter.title()
