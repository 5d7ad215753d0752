"""Punctuation marks at the end of sentences and clauses, in all languages, and text without any. Pure."""

from __future__ import annotations

import re
import unicodedata

MARKS = ".!?…。！？．؟۔।"
CLAUSE_MARKS = ",;:，；：、،؛"
CLOSERS = "\"'”’»›」』】》〉)]}）］"
# The marks at the end of a text that later words may change.
_FINAL_MARKS = re.compile(rf"[\s{re.escape(MARKS + CLAUSE_MARKS)}]*$")


def final_marks(text: str) -> str:
    """The marks at the end of a text, without blanks."""
    return "".join(_FINAL_MARKS.search(text).group().split())  # type: ignore[union-attr]  # matches every text


def letters(text: str) -> str:
    """The letters and digits of a text, case-folded."""
    return "".join(c for c in unicodedata.normalize("NFKC", text).casefold() if c.isalnum())
