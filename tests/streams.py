"""Artificial streams of events: sentences and their translations, and any valid stream, drawn by Hypothesis."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from hypothesis import strategies as st

from pipeline.core.captions.changes import Change, ChangeEvent, Changes, States
from pipeline.events import (
    EndOfInput,
    PipelineEvent,
    SourceSentence,
    SourceText,
    TargetText,
    TargetToken,
    Translation,
    Word,
)


def states(events: Iterable[PipelineEvent | Change]) -> list[PipelineEvent]:
    """Events in which texts may be given as changes, with states in their place."""
    return list(map(States().push, events))


def changes(events: Iterable[PipelineEvent]) -> list[ChangeEvent]:
    """The events of a stream from its beginning, with changes in the place of states."""
    return list(map(Changes().push, events))


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
        SourceText(number, language, text, len(text), start_s, end_s, heard_s),
        SourceSentence(number, language, text, start_s, end_s, heard_s, words, before_pause),
    ]


def translated(
    number: int, pieces: Sequence[str], *, language: str = "zh", heard_s: float = 0.0, score: float = -0.1
) -> list[PipelineEvent]:
    """The translation of a sentence: a token for each piece, which may be a character, and the end."""
    tokens: tuple[TargetToken, ...] = ()
    found: list[PipelineEvent] = []
    for at in range(1, len(pieces) + 1):
        text, last = "".join(pieces[:at]), at == len(pieces)
        tokens += (TargetToken(5, score, len(text)),)
        found.append(TargetText(number, language, text, last * len(text), tokens, heard_s, last))
    return [*found, Translation(number, language, "".join(pieces), heard_s=heard_s)]


_Event = TypeVar("_Event")


@dataclass(frozen=True)
class Stream:
    """A valid stream, and the texts that it adds up to."""

    events: list[PipelineEvent]
    sources: dict[int, str]
    translations: dict[tuple[int, str], str]
    """(sentence, language) → text."""


@dataclass(frozen=True)
class _State:
    """A text as it is at some time."""

    text: str
    steady: int


@st.composite
def _states(draw: st.DrawFn, text: str) -> list[_State]:
    """Any valid states of a text that ends as ``text``; all of the last one is steady."""
    shown = ""
    found: list[_State] = []
    for _ in range(draw(st.integers(0, 4))):
        kept = draw(st.integers(0, len(shown)))
        right = text[kept : kept + draw(st.integers(0, 8))] if shown[:kept] == text[:kept] else ""
        shown = shown[:kept] + draw(st.sampled_from([right, right + "x", " y", "是"]))
        found.append(_State(shown, draw(st.integers(0, len(shown)))))
    return [*found, _State(text, len(text))]


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
    text of the source has a ``heard_s`` of its own.
    """
    source: list[PipelineEvent] = []
    # For each language, its events, each with the source event that it is made from.
    made: list[list[tuple[PipelineEvent, PipelineEvent]]] = [[] for _ in languages]
    stream = Stream([], {}, {})
    heard_s = 0.0
    for number in range(draw(st.integers(1, sentences))):
        text = stream.sources[number] = draw(texts)
        start_s, end_s = 4.0 * number, 4.0 * number + 3
        texts_so_far: list[PipelineEvent] = []
        for state in draw(_states(text)):
            heard_s += 1
            texts_so_far.append(SourceText(number, "en", state.text, state.steady, start_s, end_s, heard_s))
        _insert(draw, source, texts_so_far, 1 if ahead else 0)
        source.append(SourceSentence(number, "en", text, start_s, end_s, heard_s))
        for language, track in zip(languages, made, strict=True):
            text = stream.translations[number, language] = draw(texts)
            *drafts, last = draw(_states(text))
            at = 0
            begun: list[tuple[PipelineEvent, PipelineEvent]] = []
            for state in drafts:
                at = draw(st.integers(at, len(texts_so_far) - 1))
                said = texts_so_far[at]
                begun.append((_translation(number, language, state, said, complete=draw(st.booleans())), said))
            _insert(draw, track, begun, 2 if ahead else 0)
            track.append((_translation(number, language, last, source[-1], complete=True), source[-1]))
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


def _insert(draw: st.DrawFn, events: list[_Event], texts: list[_Event], end: int) -> None:
    """Append the texts of a sentence, but the first of them, as many as is drawn, before the ``end`` last events."""
    ahead = draw(st.integers(0, max(0, len(texts) - 1))) if events else 0
    events[len(events) - end : len(events) - end] = texts[:ahead]
    events += texts[ahead:]


def _translation(number: int, language: str, state: _State, source: PipelineEvent, *, complete: bool) -> TargetText:
    """The state of a translation, made from what ``source`` says."""
    token = TargetToken(None, -0.1, len(state.text))
    return TargetText(number, language, state.text, state.steady, (token,), heard_s=source.heard_s, complete=complete)
