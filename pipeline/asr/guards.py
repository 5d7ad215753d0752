"""Which transcripts are not to be believed: pure rules over what Whisper says of its own doubt."""

from __future__ import annotations

import re
import zlib

from pipeline.config import AsrConfig

# Whisper calls a window silent only if both its signs agree (openai/whisper, transcribe.py). Made to say something in
# silence, it can be half sure of a phrase; where it is this sure that nobody speaks, half is not enough.
_SURELY_SILENT = 0.9
# A phrase said so many times in a row is a decoder's loop, not speech.
_LOOP_REPEATS = 4
_SHORT_REPEATS = 16  # of one digit, letter or word as short, which people do say in a row


def compression_ratio(text: str) -> float:
    """UTF-8 length over zlib-compressed length, as openai/whisper defines it (decoding.py)."""
    data = text.encode()
    return len(data) / len(zlib.compress(data)) if data else 1.0


def rejection(text: str, no_speech: float, log_probability: float, ratio: float, config: AsrConfig) -> str | None:
    """Why a transcript must not be translated, or None.

    Args:
        no_speech: probability that the window holds no speech.
        log_probability: mean natural-log probability of the tokens.
        ratio: compression ratio of the text.
    """
    if not any(character.isalnum() for character in text):
        return "empty"
    unsure = log_probability < config.log_probability_threshold
    hesitant = log_probability < config.log_probability_threshold / 2
    if (no_speech > config.no_speech_threshold and unsure) or (no_speech > _SURELY_SILENT and hesitant):
        return "silence"
    if ratio > config.compression_ratio_threshold or loops(text):
        return "repetition"
    if unsure:
        return "uncertain"
    return None


def loops(text: str) -> bool:
    """True where a phrase of up to eight words, or up to eight characters of unspaced text, repeats four times in a row.

    One word of up to four letters, or one character of unspaced text, may come fifteen times.
    """
    words = re.findall(r"\w+", text.lower())
    units = list("".join(words)) if len(words) * 8 < len("".join(words)) else words
    for size in range(1, 9):
        run = 0
        for i in range(size, len(units)):
            run = run + 1 if units[i] == units[i - size] else 0
            # Digits and single letters are dictated in runs: "nine nine nine nine", whatever size they are looked at in.
            single = len(set(units[i + 1 - size : i + 1])) == 1 and _short(units[i])
            repeats = _SHORT_REPEATS if single else _LOOP_REPEATS
            if run >= size * (repeats - 1):
                return True
    return False


def _short(unit: str) -> bool:
    """A word of up to four letters; of kana and Chinese characters, one, for four are words enough for a phrase."""
    return len(unit) <= (1 if any("\u3040" <= character <= "\u9fff" for character in unit) else 4)
