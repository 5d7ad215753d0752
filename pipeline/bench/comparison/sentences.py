"""The sentences to translate: lines of a file, or built-in ones as said in meetings and on journeys."""

from __future__ import annotations

import re
from pathlib import Path

from pipeline.errors import UsageError

ENGLISH = (
    "Good morning, everyone, and thank you for coming to the meeting on such a short notice.",
    "Where is the hotel, and how long does it take to get there from the main station by bus?",
    "The train to London leaves at half past seven tomorrow, so we should meet here at seven.",
    "I would like to buy two tickets for the museum, please, and a map of the old town.",
)


def words_of(sentences: tuple[str, ...]) -> list[str]:
    """Return the distinct words of the sentences, without punctuation."""
    return list(dict.fromkeys(re.findall(r"[\w']+", " ".join(sentences))))


def read_sentences(path: Path) -> tuple[str, ...]:
    """Return the non-blank lines of a UTF-8 file.

    Raises:
        UsageError: the file cannot be read, or has no such line.
    """
    try:
        lines = path.read_text("utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read {path} ({error}); give a UTF-8 file with one sentence a line") from None
    found = tuple(line.strip() for line in lines if line.strip())
    if not found:
        raise UsageError(f"{path} has no sentences; give one per line")
    return found
