"""Punctuation marks at the end of sentences and clauses, in all languages. Pure."""

from __future__ import annotations

import re

MARKS = ".!?…。！？．؟۔।"
CLAUSE_MARKS = ",;:，；：、،؛"
CLOSERS = "\"'”’»›」』】》〉)]}）］"
# The marks at the end of a text that later words may change.
_FINAL_MARKS = re.compile(rf"[\s{re.escape(MARKS + CLAUSE_MARKS)}]*$")


def final_marks(text: str) -> str:
    """The marks at the end of a text, without blanks."""
    return "".join(_FINAL_MARKS.search(text).group().split())  # type: ignore[union-attr]  # matches every text
