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
from collections.abc import Callable, Mapping
from enum import StrEnum

from ...languages import in_digits, language_tag, letters
from ...languages.rules import rules as rules_of
from ...languages.rules.clock import SpokenTimes

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
# With fewer capitals than this, the text may be just a name or two: NATO, BBC NEWS, OK!
_MIN_CAPITALS = 8


def prepared(text: str, language: str, script: str | None = None, *, capitals: bool = True) -> str:
    """Normalise ``text``, a sentence of ``language``, for the translator.

    Mandarin Chinese is converted to simplified characters, which models translate best, unless ``script``, the source
    script named in the model's files, is Hant. A sentence in capitals is lower-cased; see ``lowered``.
    """
    tag = language_tag(language)
    if not text.isascii():
        text = common_characters(text)
        if tag.language == "zh" and script != "Hant":
            from ...languages import simplified

            text = simplified(text)
    text = _SPACE.sub(" ", _DROPPED.sub("", text))
    return lowered(text, tag.language) if capitals else text


def common_characters(text: str) -> str:
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


class TextRule(StrEnum):
    """What is done to the text of a student, or to its translation; ``bench texts`` measures each by leaving it out."""

    CAPITALS = "capitals"  # of print, where a text has none or is all in capitals
    FILLERS = "fillers"  # are left out, and words that are said twice by mistake
    SPOKEN_TIMES = "spoken times"  # half past nine is 9:30
    SPOKEN_NUMBERS = "spoken numbers"  # are digits where students lose some of their words
    CORRECTIONS = "corrections"  # see ``Rules.corrections``
    END = "end"  # a full stop or a question mark where there is none; see ``Rules.question``
    CURRENCIES = "currencies"  # signs that the vocabulary lacks are words: €45 is 45 euros
    STAND_INS = "stand-ins"  # codes for words that the vocabulary lacks
    PHRASES = "phrases"  # translations of short texts; see ``Rules.phrases``
    COPIES = "copies"  # texts without words, such as 12:30
    NEIGHBOUR = "neighbour"  # short sentences are translated after another; see ``ModelText.neighbour``
    RETRIES = "retries"  # of what has lost the form of a question, or a person; see ``Rules.retries``
    LITERALS = "literals"  # numbers, codes and addresses that a translation lacks are written into it
    CLOCK_TIMES = "clock times"  # so are times of day


ALL_RULES = frozenset(TextRule)


def written(text: str, language: str, *, complete: bool, rules: frozenset[TextRule] = ALL_RULES) -> str:
    """Write a sentence that was spoken as it would be in print: no fillers, no stutter, and a mark at its end.

    Students were trained on printed text. Without a mark at the end they leave out words ("two hundred and fifty three euros
    and forty cents" lost the euros), and "where do you live" is no question. ``complete``: a sentence in progress gets no mark.
    """
    language = language_tag(language).language
    for rule, write in _WRITERS.items():  # in this order
        text = write(text, language, complete) if rule in rules else text
    return text


def _without_fillers(text: str, language: str, complete: bool) -> str:
    shorter = rules_of(language).stutter.sub(r"\1", rules_of(language).fillers.sub("", text))
    return shorter if letters(shorter) else text


def _corrected(text: str, language: str, complete: bool) -> str:
    for pattern, correct in rules_of(language).corrections:
        text = pattern.sub(correct, text)
    return text


def _with_clock_times(text: str, language: str, complete: bool) -> str:
    spoken = rules_of(language).spoken_times
    return text if spoken is None else spoken.pattern.sub(lambda found: _clock_time(found, spoken), text)


def _with_end(text: str, language: str, complete: bool) -> str:
    question, bare = rules_of(language).question, text.rstrip()
    open_end = complete and bool(bare) and (bare[-1].isalnum() or bare[-1] in "%€£$")
    if question is None or not open_end or not _PROSE.search(bare):
        return text
    return f"{bare}?" if question.match(bare) else f"{bare}."


_WRITERS: Mapping[TextRule, Callable[[str, str, bool], str]] = {
    TextRule.FILLERS: _without_fillers,
    TextRule.SPOKEN_TIMES: _with_clock_times,
    TextRule.SPOKEN_NUMBERS: lambda text, language, complete: in_digits(text, language, complete=complete),
    TextRule.CORRECTIONS: _corrected,
    TextRule.END: _with_end,
}


def _clock_time(found: re.Match[str], spoken: SpokenTimes) -> str:
    """9:30 for "half past nine", 8:45 for "a quarter to nine"."""
    hour, minute, other, to, later = (group and group.lower().replace(" ", "-") for group in found.groups())
    hours = spoken.hours.get(hour or later) or int(later)
    minutes = 60 * hours + spoken.minutes[minute or other] * (-1 if to else 1)
    return spoken.form.format(minutes // 60 % 24 if hours > 12 else minutes // 60 or 12, minutes % 60)


def _fraction(before: str, sign: str) -> str:
    parts = unicodedata.normalize("NFKC", sign).replace("\N{FRACTION SLASH}", "/")
    return f"{before} {parts}" if before else parts


def _lower(word: str, language: str) -> str:
    known = rules_of(language)
    if known.capitals and re.match(rf"{known.capitals}\b", word):
        return known.capitals + word[len(known.capitals) :].lower()
    if known.dotted_i:
        word = word.replace("I", "ı").replace("İ", "i")
    return word.lower()


def _title(letter: str, language: str) -> str:
    return "İ" if letter == "i" and rules_of(language).dotted_i else letter.title()
