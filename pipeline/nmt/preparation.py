"""The text of a sentence as the translator reads it best: what the reader is shown stays as it was heard. Pure.

Most Marian models' SentencePiece normalises by itself (nmt_nfkc: Unicode's NFKC, and most marks without a width become
spaces), others do not (identity). Done here is what is right for both: full-width letters and digits, half-width kana,
ligatures and such, but not the full-width marks of Chinese and Japanese, which models without normaliser were trained on;
and what nmt_nfkc does wrong: 2½ is not 21⁄2, 10⁶ not 106, and a soft hyphen or a direction mark does not divide a word.
"""

from __future__ import annotations

import re
import unicodedata

from pipeline.languages import language_tag
from pipeline.languages.chinese import simplified

# Characters that have compatible ones in common use: Latin ligatures, Roman numerals, Arabic presentation forms, letters of
# mathematics, half-width and full-width letters and digits.
_COMPATIBLE = re.compile(
    "[\u2160-\u217f\ufb00-\ufb06\ufb13-\ufb17\ufb50-\ufdfb\ufe70-\ufefc"
    "\uff10-\uff19\uff21-\uff3a\uff41-\uff5a\uff61-\uffdc\U0001d400-\U0001d7ff]+"
)
# Between and before digits full-width marks are part of the number: １２，５００; －５.
_IN_NUMBER = re.compile(r"(?<=\d)[，．：／](?=\d)|[－−＋](?=\d)")
_MARKS = str.maketrans("，．：／－−＋", ",.:/--+")
_PERCENT = re.compile(r"(?<=\d)％")
_FRACTION = re.compile("(\\d?)([\u00bc-\u00be\u2150-\u215e])")
_POWER = re.compile("(?<=\\d)[\u2070\u00b9\u00b2\u00b3\u2074-\u2079]+")
# Of no meaning to a translator: control characters, the soft hyphen, direction marks, the word joiner, variation selectors. The
# joiners of Persian and of Indian scripts and the spaces without width of Thai and Khmer stay.
_DROPPED = re.compile(
    "[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\u00ad\u061c\u200e\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff"
    "\U000e0100-\U000e01ef]+"
)
_SPACE = re.compile(r"\s")
# Words of letters alone; "COVID-19", "B2B" and "U.S.A." keep their capitals.
_WORD = re.compile(r"(?<!\w)(?<!\w\.)[^\W\d_]+(?:['’][^\W\d_]+)*(?!\w|-?\d|\.\w)")
# Fewer capitals than so many may be a name or two: NATO, BBC NEWS, OK!
_LEAST_CAPITALS = 8


def prepared(text: str, language: str, script: str | None = None) -> str:
    """``text``, a sentence of ``language``, as it is given to the translator.

    Mandarin Chinese becomes simplified, which models read best; ``script`` is another that the model's files name (Hant).
    A sentence in capitals becomes lower case; see ``lowered``.
    """
    tag = language_tag(language)
    if not text.isascii():
        text = normalized(text)
        if tag.language == "zh" and script != "Hant":
            text = simplified(text)
    return lowered(_SPACE.sub(" ", _DROPPED.sub("", text)), tag.language)


def normalized(text: str) -> str:
    """Canonically composed, with common characters in place of compatible ones."""
    text = unicodedata.normalize("NFC", _DROPPED.sub("", text))
    text = _FRACTION.sub(lambda found: _fraction(*found.groups()), text)
    text = _POWER.sub(lambda found: "^" + unicodedata.normalize("NFKC", found.group()), text)
    text = _COMPATIBLE.sub(lambda found: unicodedata.normalize("NFKC", found.group()), text)
    return _PERCENT.sub("%", _IN_NUMBER.sub(lambda found: found.group().translate(_MARKS), text))


def lowered(text: str, language: str) -> str:
    """A sentence of several words that is wholly in capitals, in lower case with a capital at its start; others as they are.

    Models have seen few sentences in capitals: of 118 the demo's first search looped at 45, and got none right. Names and
    German nouns lose their capitals.
    """
    letters = [character for character in text if character.isalpha()]
    if len(letters) < _LEAST_CAPITALS or not all(map(str.isupper, letters)) or len(_WORD.findall(text)) < 2:
        return text
    text = _WORD.sub(lambda found: _lower(found.group(), language), text)
    first = next(at for at, character in enumerate(text) if character.isalnum())
    return text[:first] + _title(text[first], language) + text[first + 1 :]


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
