"""The languages that Whisper knows, in which of them a segment is spoken, and whether a text is of another one. Pure."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Mapping, Sequence

import tokenizers

from ...languages import confusable, language_tag

# Chosen on human speech; docs/benchmarks.md has the figures.
# What Whisper hears badly, it takes for the language it favours on silence. This exponent of the probability on silence is
# divided out.
_PRIOR_EXPONENT = 0.5
# A change of language needs these odds (natural logarithm).
_MARGIN, _SHORT_MARGIN = 1.0, 1.5
# "Yes." or "嗯": a segment shorter than this needs the greater odds.
_SHORT_S = 1.0
# Whisper's probabilities can be zero in float32.
_LEAST = 1e-6
# Another language this probable, and the one in which it was recognised at most this probable, are evidence.
_OTHER, _OWN = 0.8, 0.1
# It says little of a text of which the recogniser is as sure as this, or of less audio: people name things in other languages.
SURE = -0.2
LEAST_S = 1.2
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


def calibrated(probabilities: Mapping[str, float], on_silence: Mapping[str, float]) -> dict[str, float]:
    """Probabilities of the named languages without the model's preference, and with a sum of 1.

    Args:
        probabilities: of the named languages; their sum may be less than 1, the rest being on other languages.
        on_silence: what the model says of silence, for the same languages.
    """
    weights = {
        language: max(p, _LEAST) / max(on_silence[language], _LEAST) ** _PRIOR_EXPONENT
        for language, p in probabilities.items()
    }
    total = math.fsum(weights.values())
    return {language: weight / total for language, weight in weights.items()}


def decide(probabilities: Mapping[str, float], before: str | None, speech_s: float) -> str:
    """The language of a segment: the one before, unless another is clearly more probable.

    Args:
        probabilities: of the named languages, as from ``calibrated``.
        before: language of the stream's previous segment; None, or a language that is not named: the most probable
            language is taken.
        speech_s: duration of the segment's speech.
    """
    likely = max(probabilities, key=lambda language: probabilities[language])
    if before is None or before not in probabilities:
        return likely
    margin = _SHORT_MARGIN if speech_s < _SHORT_S else _MARGIN
    return likely if probabilities[likely] > probabilities[before] * math.exp(margin) else before


def knows_language(tokenizer: tokenizers.Tokenizer, language: str, multilingual: bool) -> bool:
    """Whether a model with this tokenizer was trained on ``language``."""
    code = whisper_code(language)
    return tokenizer.token_to_id(f"<|{code}|>") is not None if multilingual else code == "en"


def whisper_code(language: str) -> str:
    """Whisper's code for a language: jw for jv, no for nb, tl for fil."""
    code = language_tag(language).language
    return "jw" if code == "jv" else code


def in_another_language(probabilities: Mapping[str, float], language: str) -> bool:
    """Whether speech that was recognised in ``language`` is almost certainly in another one.

    ``probabilities``: of each language that the recogniser can detect.
    """
    other = max(probabilities, key=probabilities.__getitem__, default=language)
    likely = probabilities.get(other, 0.0) >= _OTHER and probabilities.get(language, 0.0) <= _OWN
    return likely and not confusable(language, other)


def foreign_words(words: Sequence[str], language: str) -> tuple[int, int] | None:
    """From and to which of ``words`` there is speech in another script than that of the language; None if there is none."""
    own_scripts = _LETTERS_OF.get(language_tag(language).usual_script)
    if own_scripts is None:
        return None
    scripts = [{unicodedata.name(c, "").partition(" ")[0] for c in word if c.isalpha()} for word in words]
    begin = 0
    for index in range(len(words) + 1):
        if index == len(words) or scripts[index] & own_scripts:
            run = "".join(words[begin:index])
            if _is_speech(run, latin=own_scripts != {"LATIN"}):
                return begin, index
            begin = index + 1
        elif begin == index and not scripts[index]:  # marks of the word before
            begin = index + 1
    return None


def _is_speech(run: str, *, latin: bool) -> bool:
    """Whether a run of letters of another script is more than names. ``latin``: it may have Latin ones, as names have."""
    if latin and all(unicodedata.name(c, "").startswith("LATIN") for c in run if c.isalpha()):
        words = [word for word in run.split() if word[:1].isalpha()]
        return len(words) >= _WORDS and sum(word[0].islower() for word in words) >= _SMALL
    return sum(map(str.isalpha, run)) >= _LETTERS
