"""Translates subtitles: sentences go on over them, are translated whole, and are laid out in the same times. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise

from ..backends import NEXT
from ..languages import CLAUSE_MARKS
from ..languages.rules import rules as language_rules
from ..media import SubtitleRules, layout, line_limit, width
from .formats import FileCue
from .labels import NOTE, TAG, labels, translated_label

_LONG_PAUSE_MS = 5_000
"""No sentence goes on after it."""
_TOUCH_MS = 100
"""The most milliseconds between a subtitle and one that shows its text again: two frames."""
_RECENT = 8
"""Subtitles before one that may have its text: a sign's layers come in turn."""
_ROLLING = 0.25
"""Share of subtitles that begin with lines of the one before, from which a file is one of rolling captions."""
_BALANCED = 20
"""Lines of a text up to which they are made alike in length: that takes twenty times as long."""
_PIECE = re.compile(rf"(?P<tag>{TAG})|(?P<blank>\s+)|\S")
_MARKUP = re.compile(TAG)
# ASS overrides of the whole text, which begin it. Styles are none: they may end within it.
_LEAD = re.compile(r"(?:\{(?!\\[ibus]1\})[^{}\n]*\})*")
# What begins a text of its own: someone else speaks, or sings.
_BEGINS = re.compile(rf"(?:{TAG}|\s)*?(?:[-–—‐\[(]|{NOTE}|>>|<v[.\s])")
_SPEAKER = re.compile(rf"(?:{TAG}|\s)*([^\W\d_][\w .'’]*):(?!\d)")
_ENDS = re.compile(rf"(?:{NOTE}|^(?:{TAG}|\s)*(?:\[[^\]]*\]|\([^)]*\)))(?:{TAG}|\s)*$")
# "# la la #": a song in files without ♪.
_HASH = re.compile(rf"(?P<open>(?:{TAG}|\s)*#\s+)(?P<text>.+?)(?P<close>\s+#(?:{TAG}|\s)*)", re.DOTALL)
# The end of a text whose sentence goes on, although a capital follows: "I am in", "Yes,", "and so...".
_OPEN_END = re.compile(rf"(?:\b[^\W\d_A-Z]{{1,3}}|[{CLAUSE_MARKS}…–—-]|\.\.)$")


@dataclass(frozen=True)
class _Text:
    """Lines of a subtitle that are one text, of one voice."""

    cue: FileCue
    text: str
    goes_on: bool
    """Whether this line goes on from the one before it in its subtitle."""


def translated_cues(
    cues: Sequence[FileCue], translate: Callable[[str], str], languages: tuple[str, str], rules: SubtitleRules
) -> list[str]:
    """The text of each subtitle in the other language, with its markup.

    ``translate``: of a text whose sentences go on over its lines, such as ``TextTranslation.translate``. Its marks come back in their
    places, and so does ``NEXT``, which stands between two subtitles. ``languages``: that of the subtitles, and the one to translate into.
    """
    texts, shown = _texts(cues)
    translations: list[str] = []
    for run in _runs(texts, languages[0]):
        translations += [_laid_out(text.strip(), rules) for text in _translated(run, translate, languages)]
    whole = [lead + _lines_of(translations[number] for number in numbers) for lead, numbers in shown]
    if rules.bilingual:
        return [_lines_of(dict.fromkeys((text, cue.text))) for text, cue in zip(whole, cues, strict=True)]
    return whole


def _lines_of(texts: Iterable[str]) -> str:
    """Texts in lines, without a blank one, which would end a subtitle."""
    return "\n".join(filter(None, texts))


def markup_free(text: str) -> str:
    """The text without tags and overrides."""
    return _MARKUP.sub("", text)


def too_long(cues: Sequence[FileCue], texts: Sequence[str], rules: SubtitleRules) -> int:
    """How many subtitles have more lines than the rules allow, and than before."""
    most = rules.max_lines * (2 if rules.bilingual else 1)
    return sum(
        len(text.split("\n")) > max(most, len(cue.text.split("\n"))) for cue, text in zip(cues, texts, strict=True)
    )


def _texts(cues: Sequence[FileCue]) -> tuple[list[_Text], list[tuple[str, list[int]]]]:
    """The texts of subtitles, each once; and of each subtitle the marks that begin it, and the numbers of its texts."""
    rolling = _is_rolling(cues)
    texts: list[_Text] = []
    shown: list[tuple[str, list[int]]] = []
    for number, cue in enumerate(cues):
        lines, numbers = _lines(cue.text), list[int]()
        for earlier in range(number - 1, max(0, number - (1 if rolling else _RECENT)) - 1, -1):
            again = _repeated(cues[earlier], cue, whole=not rolling)
            if again:
                numbers += shown[earlier][1][-again:] if rolling else shown[earlier][1]
                lines = lines[again:]
                break
        shown.append((_lead(cue.text), numbers))
        for position, line in enumerate(lines):
            begins = position == 0 or _begins(line) or _ENDS.search(lines[position - 1]) is not None
            if begins or rolling:
                numbers.append(len(texts))
                texts.append(_Text(cue, line, not begins))
            else:
                texts[-1] = _Text(cue, f"{texts[-1].text} {line}", texts[-1].goes_on)
    return texts, shown


def _begins(text: str) -> bool:
    """Whether a text begins like one of another voice: with a dash, a note, a bracket, or a name in capitals."""
    speaker = _SPEAKER.match(text)
    return _BEGINS.match(text) is not None or (speaker is not None and not any(map(str.islower, speaker[1])))


def _lead(text: str) -> str:
    return _LEAD.match(text).group()  # type: ignore[union-attr]  # matches every text


def _lines(text: str) -> list[str]:
    """The lines of a subtitle without the marks that begin it."""
    return [re.sub(r"[ \t]+", " ", line.strip()) for line in text[len(_lead(text)) :].split("\n") if line.strip()]


def _repeated(earlier: FileCue, cue: FileCue, *, whole: bool) -> int:
    """How many lines at the beginning of a subtitle are the last ones of an earlier one; ``whole``: all of both, or none."""
    if _pause_ms(earlier, cue) > _TOUCH_MS:
        return 0
    before, lines = _lines(earlier.text), _lines(cue.text)
    if whole:
        return len(lines) if before == lines else 0
    return max((count for count in range(1, len(lines) + 1) if before[-count:] == lines[:count]), default=0)


def _is_rolling(cues: Sequence[FileCue]) -> bool:
    """Whether new lines push old ones up, which stand in two subtitles, as in automatic captions."""
    pushed = [0 < _repeated(cue, after, whole=False) < len(_lines(after.text)) for cue, after in pairwise(cues)]
    return sum(pushed) > _ROLLING * len(pushed)


def _pause_ms(first: FileCue, second: FileCue) -> int:
    """Between two subtitles; negative if they overlap, 0 if their times are not known."""
    return 0 if first.end_ms is None or second.start_ms is None else second.start_ms - first.end_ms


def _runs(texts: Sequence[_Text], language: str) -> Iterator[Sequence[_Text]]:
    """The texts in which a sentence may go on from one to the next."""
    start = 0
    for number, (text, following) in enumerate(pairwise(texts), 1):
        if not (following.goes_on or _may_go_on(text, following, language)):
            yield texts[start:number]
            start = number
    if texts:
        yield texts[start:]


def _may_go_on(first: _Text, second: _Text, language: str) -> bool:
    """Whether a sentence may go on from a subtitle to the next one: the same voice, soon after, and no sign or title."""
    if first.cue.voice != second.cue.voice or _begins(second.text) or _ENDS.search(first.text):
        return False
    is_soon = 0 <= _pause_ms(first.cue, second.cue) < _LONG_PAUSE_MS
    return is_soon and not _begins_with_capital(first.text, second.text, language)


def _begins_with_capital(before: str, text: str, language: str) -> bool:
    """Whether the capital of a text says that it does not go on from the one before, as that of a title does."""
    before, text = _MARKUP.sub("", before).strip(), _MARKUP.sub("", text).strip()
    of_language = language_rules(language)
    all_capitals = before.isupper() and text.isupper()
    if of_language.capital_nouns or all_capitals or not text[:1].isupper() or _OPEN_END.search(before):
        return False
    return re.match(r"\w+", text)[0] not in of_language.capitals.split()  # type: ignore[index]  # begins with a letter


def _translated(run: Sequence[_Text], translate: Callable[[str], str], languages: tuple[str, str]) -> Sequence[str]:
    """The translation of each of the texts of a run."""
    whole, opened, closed = NEXT.join(text.text for text in run), "", ""
    if len(run) == 1 and (song := _HASH.fullmatch(whole)):
        opened, whole, closed = song.groups()
    written, position = opened, 0
    for start, end in labels(whole, languages):
        label = translated_label(whole[start:end], translate, languages)
        written += f"{translate(whole[position : start - 1])}{whole[start - 1]}{label}{whole[end]}"
        position = end + 1
    return (written + translate(whole[position:]) + closed).split(NEXT)


def _laid_out(line: str, rules: SubtitleRules) -> str:
    """A text with the best line breaks."""
    pieces = list(_PIECE.finditer(line))
    shown = " ".join("".join(" " if piece["blank"] else piece.group() for piece in pieces if not piece["tag"]).split())
    if width(shown) > _BALANCED * line_limit(shown, rules):
        rules = replace(rules, max_lines=1)
    lines = [line for cue in layout(shown, rules, cues=1) for line in cue]
    ends = set(accumulate(len("".join(line.split())) for line in lines[:-1]))
    text, count = "", 0
    for piece in pieces:
        if piece["blank"] and count in ends:
            text, ends = f"{text}\n", ends - {count}
        elif piece["blank"] or piece["tag"]:
            text += piece.group()
        else:
            if count in ends:  # between two characters
                text, ends = f"{text}\n", ends - {count}
            text, count = text + piece.group(), count + 1
    return text
