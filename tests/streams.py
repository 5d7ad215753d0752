"""Artificial streams of events: sentences and their translations, and any valid stream, drawn by Hypothesis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import TypeVar

from hypothesis import strategies as st

from pipeline.events import Delta, EndOfInput, PipelineEvent, SourceDelta, SourceSentence, Translation, Word
from pipeline.sentences.growing import common_length, edit


def spoken(
    number: int,
    text: str,
    start_s: float = 0.0,
    end_s: float = 1.0,
    *,
    language: str = "en",
    heard_s: float | None = None,
    words: tuple[Word, ...] = (),
    before_pause: bool = True,
) -> list[PipelineEvent]:
    """A sentence that is recognised all at once."""
    heard_s = end_s if heard_s is None else heard_s
    return [
        SourceDelta(number, language, text, 0, len(text), start_s, end_s, heard_s),
        SourceSentence(number, language, text, start_s, end_s, heard_s, words, before_pause),
    ]


def translated(
    number: int, pieces: Sequence[str], *, language: str = "zh", heard_s: float = 0.0, score: float = -0.1
) -> list[PipelineEvent]:
    """The translation of a sentence: a delta for each piece, which may be a character, and the end."""
    text = "".join(pieces)
    deltas = [
        Delta(
            number,
            language,
            piece,
            committed=len(text) if at == len(pieces) else 0,
            token=5,
            log_probability=score,
            heard_s=heard_s,
            complete=at == len(pieces),
        )
        for at, piece in enumerate(pieces, 1)
    ]
    return [*deltas, Translation(number, language, text, heard_s=heard_s)]


_Event = TypeVar("_Event")


@dataclass(frozen=True)
class Stream:
    """A valid stream, and the texts that it adds up to."""

    events: list[PipelineEvent]
    sources: dict[int, str]
    translations: dict[tuple[int, str], str]
    """(sentence, language) → text."""


@dataclass(frozen=True)
class _Change:
    """A change of a text, as in ``SourceDelta`` and ``Delta``."""

    text: str
    withdrawn: int
    committed: int


@st.composite
def _changes(draw: st.DrawFn, text: str) -> list[_Change]:
    """Any valid changes that add up to ``text``; the last one commits it."""
    shown, committed = "", 0
    found: list[_Change] = []
    for _ in range(draw(st.integers(0, 4))):
        kept = draw(st.integers(committed, len(shown)))
        right = text[kept : kept + draw(st.integers(0, 8))] if shown[:kept] == text[:kept] else ""
        appended = draw(st.sampled_from([right, right + "x", " y", "是"]))
        withdrawn, shown = len(shown) - kept, shown[:kept] + appended
        committed = draw(st.integers(committed, max(committed, common_length(shown, text))))
        found.append(_Change(appended, withdrawn, committed))
    withdrawn, appended = edit(shown, text)
    return [*found, _Change(appended, withdrawn, len(text))]


@st.composite
def streams(
    draw: st.DrawFn,
    texts: st.SearchStrategy[str],
    languages: Sequence[str] = ("zh", "de"),
    sentences: int = 4,
    ahead: bool = True,
) -> Stream:
    """Any stream that a live run may put out, of one to ``sentences`` sentences.

    They are recognised one after another; each language translates them in order and at its own pace, the sentence in
    progress as a draft, and finally when it has ended. Drafts of the next sentence may come before that (``ahead``). Each
    change of the source has a ``heard_s`` of its own.
    """
    source: list[PipelineEvent] = []
    # For each language, its events, each with the source event that it is made from.
    made: list[list[tuple[PipelineEvent, PipelineEvent]]] = [[] for _ in languages]
    stream = Stream([], {}, {})
    heard_s = 0.0
    for number in range(draw(st.integers(1, sentences))):
        text = stream.sources[number] = draw(texts)
        start_s, end_s = 4.0 * number, 4.0 * number + 3
        changes: list[PipelineEvent] = []
        for change in draw(_changes(text)):
            heard_s += 1
            changes.append(
                SourceDelta(number, "en", change.text, change.withdrawn, change.committed, start_s, end_s, heard_s)
            )
        _insert(draw, source, changes, 1 if ahead else 0)
        source.append(SourceSentence(number, "en", text, start_s, end_s, heard_s))
        for language, track in zip(languages, made, strict=True):
            text = stream.translations[number, language] = draw(texts)
            *drafts, last = draw(_changes(text))
            at = 0
            begun: list[tuple[PipelineEvent, PipelineEvent]] = []
            for change in drafts:
                at = draw(st.integers(at, len(changes) - 1))
                begun.append((_delta(number, language, change, changes[at], complete=draw(st.booleans())), changes[at]))
            _insert(draw, track, begun, 2 if ahead else 0)
            track.append((_delta(number, language, last, source[-1], complete=True), source[-1]))
            track.append((Translation(number, language, text, heard_s=heard_s), source[-1]))
    # For each language, its events, each with the number of source events that come before it.
    position = {id(event): at for at, event in enumerate(source, 1)}
    targets = [[(position[id(origin)], event) for event, origin in track] for track in made]
    sent = 0
    while sent < len(source) or any(targets):
        ready = [track for track in targets if track and track[0][0] <= sent]
        choice = draw(st.integers(0 if sent < len(source) else 1, len(ready)))
        if choice:
            stream.events.append(ready[choice - 1].pop(0)[1])
        else:
            stream.events.append(source[sent])
            sent += 1
    stream.events.append(EndOfInput(heard_s))
    return stream


def _insert(draw: st.DrawFn, events: list[_Event], changes: list[_Event], end: int) -> None:
    """Append the first changes of a sentence, as many of the uncommitted ones as is drawn before the ``end`` last events."""
    uncommitted = list(takewhile(lambda change: not _committed(change), changes))
    ahead = draw(st.integers(0, len(uncommitted))) if events else 0
    events[len(events) - end : len(events) - end] = changes[:ahead]
    events += changes[ahead:]


def _committed(change: object) -> int:
    event = change[0] if isinstance(change, tuple) else change
    assert isinstance(event, SourceDelta | Delta)
    return event.committed


def _delta(number: int, language: str, change: _Change, source: PipelineEvent, *, complete: bool) -> Delta:
    """``change`` of a translation, made from what ``source`` says."""
    assert isinstance(source, SourceDelta | SourceSentence)
    return Delta(
        number,
        language,
        change.text,
        change.withdrawn,
        change.committed,
        log_probability=-0.1,
        heard_s=source.heard_s,
        complete=complete,
    )
