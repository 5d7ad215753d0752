"""Rules that reject unreliable transcripts from Whisper's own confidence values. Pure."""

from __future__ import annotations

import re
import zlib
from dataclasses import dataclass, replace

from ...store import Thresholds

# A rejected transcript counts as silence if the no-speech probability is above this.
_SILENCE_NO_SPEECH = 0.8
# Longest repeated phrase, in words, or in characters for text without spaces: a sentence is repeated, too.
_LONGEST_PHRASE = 40
# UTF-8 bytes. The compression ratio of a shorter text is meaningless: zlib's header dominates.
_MIN_BYTES_FOR_RATIO = 80
# People repeat a phrase up to four times ("Testing, testing, …"), and short words and digits more often.
_LOOP_REPEATS = 6
_SHORT_REPEATS = 16
# The mean log-probability of a few tokens says little: half of it is the confidence in the full stop and the end token.
# Texts of up to this many tokens are judged by the probability of the whole text in any spelling.
SHORT_TOKENS = 3
# The mean of many tokens says more, and so does one where there is certainly speech; hoarse and fast speech has low means.
_LONG_TOKENS, _LONG_ALLOWANCE = 12, 0.2
_CERTAIN_SPEECH = 0.1
# An uncertain text was probably said if its mean is not lower than this far below the threshold. The less certain it is that
# there is speech, the more is required: what is invented for laughter, noise and babble has lower means.
_SAID_ALLOWANCE, _SAID_FOR_NO_SPEECH = 0.35, 0.5
# The same for the whole text, if that is short.
_SAID_SHORT_ALLOWANCE = 0.75


@dataclass(frozen=True)
class Evidence:
    """A recogniser's result and its confidence."""

    text: str
    tokens: int
    """Number of text tokens."""
    log_probability: float
    """Mean natural-log probability of the tokens."""
    no_speech: float
    """Probability that the window holds no speech."""
    ended: bool = True
    """False if the token limit ended the search."""
    text_log_probability: float | None = None
    """Natural-log probability of the whole text; None if unknown."""


@dataclass(frozen=True)
class Repetition:
    """A phrase repeated in ``text[begin:end]``; its first occurrence is ``text[begin:once]``."""

    begin: int
    once: int
    end: int


def compression_ratio(text: str) -> float:
    """UTF-8 length divided by zlib-compressed length, as in openai/whisper (decoding.py)."""
    data = text.encode()
    return len(data) / len(zlib.compress(data)) if data else 1.0


def rejection(evidence: Evidence, thresholds: Thresholds) -> str | None:
    """The reason to reject a transcript ("empty", "silence", "repetition", "uncertain"), or None to accept it."""
    if not any(character.isalnum() for character in evidence.text):
        return "empty"
    unsure = evidence.log_probability < thresholds.log_probability
    if evidence.tokens <= SHORT_TOKENS and evidence.text_log_probability is not None:
        unsure = evidence.text_log_probability < thresholds.text_log_probability
    # Whisper reports silence only if both signs agree (openai/whisper, transcribe.py). On audio without speech it can
    # still be fairly confident of an invented phrase.
    hesitant = evidence.log_probability < thresholds.log_probability / 2
    doubtful = evidence.no_speech > thresholds.doubtful_no_speech
    certain = evidence.no_speech <= _CERTAIN_SPEECH and evidence.tokens > SHORT_TOKENS
    long = evidence.tokens >= _LONG_TOKENS and not doubtful and evidence.no_speech <= thresholds.no_speech
    if (certain or long) and not _repeats(evidence, thresholds):
        unsure = evidence.log_probability < thresholds.log_probability - _LONG_ALLOWANCE
    if (evidence.no_speech > thresholds.no_speech and unsure) or (doubtful and hesitant):
        # Speech in another language gives the same signs, with a lower no-speech probability.
        return "silence" if evidence.no_speech > _SILENCE_NO_SPEECH else "uncertain"
    if _loops(evidence, thresholds):
        return "repetition"
    if unsure:
        return "uncertain"
    return None


def was_said(evidence: Evidence, thresholds: Thresholds) -> bool:
    """Whether an uncertain text was probably said, though it may be misheard."""
    allowance = _SAID_ALLOWANCE - _SAID_FOR_NO_SPEECH * evidence.no_speech
    likely = evidence.log_probability >= thresholds.log_probability - allowance
    if evidence.tokens <= SHORT_TOKENS and evidence.text_log_probability is not None:
        likely &= evidence.text_log_probability >= thresholds.text_log_probability - _SAID_SHORT_ALLOWANCE
    return likely and evidence.no_speech <= _SILENCE_NO_SPEECH and not _repeats(evidence, thresholds)


def _repeats(evidence: Evidence, thresholds: Thresholds) -> bool:
    """Whether it ends with a repetition. That is a loop if the text is not certain: babble is heard as "Thank you, thank you"."""
    return _loops(replace(evidence, ended=False), thresholds)


def _loops(evidence: Evidence, thresholds: Thresholds) -> bool:
    """Whether the text repeats itself as people do not."""
    enough = len(evidence.text.encode()) >= _MIN_BYTES_FOR_RATIO
    if enough and compression_ratio(evidence.text) > thresholds.compression_ratio:
        return True
    return find_loop(evidence.text, evidence.ended) is not None


def find_loop(text: str, ended: bool = True) -> Repetition | None:
    """Find a decoder loop: a phrase repeated up to the end of the text or over more than half of it; None if absent.

    Normal repetition is not a loop: fewer than six times in a row, or fewer than sixteen for a word of up to four
    letters or a single character of unspaced text, but not for a stutter such as "D-D-D". If the search hit its token
    limit, two repetitions are enough.
    """
    places = [(match.group().lower(), match.start(), match.end()) for match in re.finditer(r"\w+", text)]
    if len(places) * 8 < sum(len(word) for word, _, _ in places):  # text without spaces: compare characters
        places = [(c.lower(), i, i + 1) for i, c in enumerate(text) if c.isalnum()]
    units = [word for word, _, _ in places]
    for size in range(1, min(_LONGEST_PHRASE, len(units) // 2) + 1):
        run = 0
        for i in range(size, len(units) + 1):
            if i < len(units) and units[i] == units[i - size]:
                run += 1
                continue
            first, last = i - run - size, i - 1
            phrase = set(units[first : first + size])
            begin = places[first][1]
            stuttered = units[first].isalpha() and text[begin + 1 : begin + 2] == "-"
            short = len(phrase) == 1 and _short(units[first]) and not stuttered
            needed = _SHORT_REPEATS if short else _LOOP_REPEATS
            at_end = last == len(units) - 1
            enough = run >= size * (needed - 1) or (run >= size and at_end and not ended)
            if enough and (at_end or 2 * (run + size) > len(units)):
                return Repetition(begin, places[first + size - 1][2], places[last][2])
            run = 0
    return None


def _short(unit: str) -> bool:
    """Whether a unit is short: up to four letters, or one character of kana or Chinese (four are a phrase)."""
    return len(unit) <= (1 if any("\u3040" <= character <= "\u9fff" for character in unit) else 4)
