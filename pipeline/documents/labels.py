"""Labels in subtitles, such as [door slams]: sounds and manners that are heard, and who speaks. Pure.

Translators read them as sentences, and shred them: those of a table are translated by it.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path

from ..languages import CLAUSE_MARKS, MARKS, language_tag

TAG = r"<[^<>\n]*>|\{[^{}\n]*\}"
"""A mark in a text."""
NOTE = r"[♩-♯\U0001f3b5\U0001f3b6]|#(?!\w)"
_AROUND = " ♩♪♫♬♭♮♯\U0001f3b5\U0001f3b6#"
_TABLE = Path(__file__).with_name("labels.tsv")
_BESIDE = rf"(?:{TAG}|{NOTE}|\s|[-–—‐>])*"
_LABEL = re.compile(
    rf"(?P<before>(?:^|(?<=[{MARKS}{CLAUSE_MARKS}\])]))(?:{_BESIDE}))?"
    rf"(?P<open>[\[(])(?P<text>[^\[\]()<>{{}}\x1e]+)[\])](?P<after>{_BESIDE}$)?"
)
_WORD = re.compile(r"[^\W\d_]{4,}")
_SENTENCE = re.compile(rf"[{MARKS}]\s*$")


def labels(text: str, languages: tuple[str, str]) -> Iterator[tuple[int, int]]:
    """The begin and end of each label in a text, without its brackets: at the text's ends, and between its sentences.

    Round brackets have other text, too, unless they are all of a text or the table has it.
    """
    for label in _LABEL.finditer(text):
        at_end = label["before"] is not None or label["after"] is not None
        is_whole = label.span() == (0, len(text))
        is_known = label["text"].casefold() in _table(languages)
        if at_end and (label["open"] == "[" or is_whole or is_known) and not _SENTENCE.search(label["text"]):
            yield label.span("text")


def translated_label(label: str, translation: Callable[[str], str], languages: tuple[str, str]) -> str:
    """A label by the table. Others by ``translation``; if there is a table, only those of several words of which none is left over,
    which shows that the rest is torn.
    """
    inside = label.strip(_AROUND)
    if inside != label:
        return label.replace(inside, translated_label(inside, translation, languages)) if inside else label
    table = _table(languages)
    small = label.lower() if label.isupper() else label
    result = table.get(label.casefold())
    if result is None:
        if table and " " not in label and not label.istitle():
            return label
        result = translation(small)
        if table and any(word.islower() and word in result.split() for word in _WORD.findall(small)):
            return label
    return result.upper() if label.isupper() else result[:1].upper() + result[1:] if label[0].isupper() else result


@cache
def _table(languages: tuple[str, str]) -> Mapping[str, str]:
    """Label in the language of a text → in the other one; of several with one translation, the first comes back."""
    source, target = (language_tag(language).language for language in languages)
    with _TABLE.open(encoding="utf-8", newline="") as lines:
        rows = [*csv.DictReader(lines, delimiter="\t")]
    if source == target or not {source, target} <= {*rows[0]}:
        return {}
    return {row[source]: row[target] for row in reversed(rows)}
