"""Whether a text that was recognised in one language is of another. Pure."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence

from ...languages import language_tag

# Another language this probable, and the one in which it was recognised at most this probable, are evidence. (Whisper base:
# of 108 segments of English, whole or cut to 1.2 to 3 s, no other language had more than 0.64. Of 31 whole ones of
# Portuguese, Chinese and English heard in another language, all but one of 1.1 s had 0.88 or more.)
_OTHER, _OWN = 0.8, 0.1
# It says little of a text of which the recogniser is as sure as this, or of less audio: people name things in other languages.
SURE = -0.2
LEAST_S = 1.2
# Languages nearer than this by CLDR's distances are confused: Norwegian and Danish, Serbian and Croatian, Malay and Indonesian.
_NEAR = 60
# A run of letters of another script is a sentence, and no name or loan word, if it has this many words, and some begin with
# a small letter; or, in letters that the language does not have at all, this many letters.
_WORDS, _SMALL, _LETTERS = 4, 3, 4

# The first word in the Unicode names of a script's letters.
_LETTERS_OF = {
    "Arab": {"ARABIC"},
    "Cyrl": {"CYRILLIC"},
    "Deva": {"DEVANAGARI"},
    "Grek": {"GREEK"},
    "Hans": {"CJK"},
    "Hant": {"CJK"},
    "Hebr": {"HEBREW"},
    "Jpan": {"CJK", "HIRAGANA", "KATAKANA", "KATAKANA-HIRAGANA"},
    "Kore": {"HANGUL", "CJK"},
    "Latn": {"LATIN"},
    "Thai": {"THAI"},
}


def in_another_language(probabilities: Mapping[str, float], language: str) -> bool:
    """Whether speech that was recognised in ``language`` is almost certainly in another one.

    Args:
        probabilities: of each language that the recogniser can detect.
    """
    from langcodes import tag_distance  # takes 25 ms

    other = max(probabilities, key=probabilities.__getitem__, default=language)
    likely = probabilities.get(other, 0.0) >= _OTHER and probabilities.get(language, 0.0) <= _OWN
    return likely and min(tag_distance(language, other), tag_distance(other, language)) >= _NEAR


def foreign_words(words: Sequence[str], language: str) -> tuple[int, int] | None:
    """From and to which of ``words`` there is speech in another script than that of the language; None if there is none."""
    own = _LETTERS_OF.get(language_tag(language).usual_script)
    if own is None:
        return None
    scripts = [{unicodedata.name(c, "").partition(" ")[0] for c in word if c.isalpha()} for word in words]
    begin = 0
    for at in range(len(words) + 1):
        if at == len(words) or scripts[at] & own:
            run = "".join(words[begin:at])
            if _is_speech(run, latin=own != {"LATIN"}):
                return begin, at
            begin = at + 1
        elif begin == at and not scripts[at]:  # marks of the word before
            begin = at + 1
    return None


def _is_speech(run: str, *, latin: bool) -> bool:
    """Whether a run of letters of another script is more than names. ``latin``: it may have Latin ones, as names have."""
    if latin and all(unicodedata.name(c, "").startswith("LATIN") for c in run if c.isalpha()):
        words = [word for word in run.split() if word[:1].isalpha()]
        return len(words) >= _WORDS and sum(word[0].islower() for word in words) >= _SMALL
    return sum(map(str.isalpha, run)) >= _LETTERS
