"""Which transcripts are not to be believed: pure rules over what Whisper says of its own doubt."""

from __future__ import annotations

import re
import zlib
from dataclasses import dataclass

from pipeline.store.known import Thresholds

# What is not believed is called silence where speech is this improbable.
_SILENT = 0.8
# The longest phrase of a loop, in words, or in characters of text without spaces.
_LONGEST_PHRASE = 16
# Shorter texts compress to more than half of their length whatever they say: zlib's header is a good part of them.
_LEAST_FOR_RATIO = 80
# People say a phrase four times in a row ("Testing, testing, …"), and short words and digits more often.
_LOOP_REPEATS = 6
_SHORT_REPEATS = 16
# The mean over a few tokens tells little: half of it is how sure the search is of the full stop and of the end. Texts of so
# few tokens are judged by the probability of the whole text, however it is written (measured on single digits, names of
# months and other words by three speakers, clean and in noise: of texts right and wrong, the right one has the higher
# value in 94 % of the pairs, and the higher mean in 88 %).
SHORT_TOKENS = 3


@dataclass(frozen=True)
class Evidence:
    """What a recogniser found, and how sure it is."""

    text: str
    tokens: int
    """Text tokens."""
    log_probability: float
    """Mean natural-log probability of the tokens."""
    no_speech: float
    """Probability that the window holds no speech."""
    ended: bool = True
    """False where the limit of tokens ended the search."""
    text_log_probability: float | None = None
    """Natural logarithm of the probability of the whole text; None where it is not known."""


@dataclass(frozen=True)
class Repetition:
    """A phrase that comes again and again in a text: ``text[begin:end]``, the first time as ``text[begin:once]``."""

    begin: int
    once: int
    end: int


def compression_ratio(text: str) -> float:
    """UTF-8 length over zlib-compressed length, as openai/whisper defines it (decoding.py)."""
    data = text.encode()
    return len(data) / len(zlib.compress(data)) if data else 1.0


def rejection(evidence: Evidence, thresholds: Thresholds) -> str | None:
    """Why a transcript must not be translated ("empty", "silence", "repetition", "uncertain"), or None."""
    if not any(character.isalnum() for character in evidence.text):
        return "empty"
    unsure = evidence.log_probability < thresholds.log_probability
    if evidence.tokens <= SHORT_TOKENS and evidence.text_log_probability is not None:
        unsure = evidence.text_log_probability < thresholds.text_log_probability
    # Whisper calls a window silent only if both its signs agree (openai/whisper, transcribe.py). Made to say something where
    # nobody speaks, it can be half sure of a phrase.
    hesitant = evidence.log_probability < thresholds.log_probability / 2
    doubtful = evidence.no_speech > thresholds.doubtful_no_speech
    if (evidence.no_speech > thresholds.no_speech and unsure) or (doubtful and hesitant):
        # Speech in another language than the one listened for looks like this, too, but less sure.
        return "silence" if evidence.no_speech > _SILENT else "uncertain"
    long = len(evidence.text.encode()) >= _LEAST_FOR_RATIO
    if (long and compression_ratio(evidence.text) > thresholds.compression_ratio) or loop(
        evidence.text, evidence.ended
    ):
        return "repetition"
    if unsure:
        return "uncertain"
    return None


def loop(text: str, ended: bool = True) -> Repetition | None:
    """A decoder's loop: a phrase that repeats up to the end of the text, or through most of it; None where there is none.

    Phrases that people repeat are no loops: fewer than six times in a row, a word of up to four letters or a character of
    unspaced text fewer than sixteen times. Where the search did not end by itself, twice is enough.
    """
    found = [(match.group().lower(), match.start(), match.end()) for match in re.finditer(r"\w+", text)]
    if len(found) * 8 < sum(len(word) for word, _, _ in found):  # no spaces: each character counts
        found = [(c.lower(), i, i + 1) for i, c in enumerate(text) if c.isalnum()]
    units = [word for word, _, _ in found]
    for size in range(1, min(_LONGEST_PHRASE, len(units) // 2) + 1):
        run = 0
        for i in range(size, len(units) + 1):
            if i < len(units) and units[i] == units[i - size]:
                run += 1
                continue
            first, last = i - run - size, i - 1
            phrase = set(units[first : first + size])
            needed = _SHORT_REPEATS if len(phrase) == 1 and _short(units[first]) else _LOOP_REPEATS
            at_end = last == len(units) - 1
            enough = run >= size * (needed - 1) or (run >= size and at_end and not ended)
            if enough and (at_end or 2 * (run + size) > len(units)):
                return Repetition(found[first][1], found[first + size - 1][2], found[last][2])
            run = 0
    return None


def _short(unit: str) -> bool:
    """A word of up to four letters; of kana and Chinese characters, one, for four are words enough for a phrase."""
    return len(unit) <= (1 if any("\u3040" <= character <= "\u9fff" for character in unit) else 4)
