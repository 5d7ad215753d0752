"""Build translated sentences from events. Pure."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from ...core import PipelineEvent, SourceSentence, TargetText, Translation
from ...languages import same_language
from .text import is_cjk, normalized

# Sources that wait for their translation. Some have none, such as those spoken in the target language.
_MAX_WAITING = 1_000
UNCERTAIN = "[?]"
"""The mark of text that may be misheard."""


@dataclass(frozen=True)
class Sentence:
    """A complete sentence and its times."""

    start_s: float
    end_s: float
    source: str
    """Normalized; empty if ``text`` is in the language spoken."""
    text: str
    """Normalized; empty only if nothing was translated but the source is shown."""
    seams: frozenset[int] = frozenset()
    """Token boundaries as positions in ``text``."""
    before_pause: bool = True
    """Whether a pause follows it, not the next word."""
    sources: tuple[SourceSentence, ...] = ()
    """The source sentences, in order; their words have times."""
    speaker: str | None = None
    """The speaker's name; None if unknown."""

    @property
    def spoken_ms(self) -> float:
        return 1000 * (self.end_s - self.start_s)

    def joined(self, other: Sentence) -> Sentence:
        """This sentence and the next one of the same speaker, ``other``, combined."""
        text = _join_texts(self.text, other.text)
        shift = len(text) - len(other.text)
        seams = self.seams | {shift + seam for seam in other.seams} | {shift}
        source = _join_texts(self.source, other.source)
        end_s = max(self.end_s, other.end_s)
        sources = self.sources + other.sources
        return Sentence(self.start_s, end_s, source, text, seams, other.before_pause, sources, self.speaker)

    def begin_at(self, share: float) -> float:
        """When the source after the given share of it, 0 to 1, begins to be said, in seconds."""
        lengths = [max(1, len(source.text)) for source in self.sources]
        letters = share * sum(lengths)
        for source, length in zip(self.sources, lengths, strict=True):
            if letters <= length:
                return source.begin_at(letters / length)
            letters -= length
        return self.end_s


class SentenceBuilder:
    """Builds the sentences of one language. A sentence without text is dropped, unless its source is shown."""

    def __init__(
        self, *, bilingual: bool = False, language: str | None = None, named: bool = False, marked: bool = False
    ) -> None:
        """``language``: the language of the translations to take; None takes all, for a stream that has only one.

        ``named``: a text begins with its speaker's name, unless it is of the same speaker as the one before. ``marked``: texts
        of what may be misheard end with "[?]".
        """
        self._bilingual, self._language, self._named, self._marked = bilingual, language, named, marked
        self._speaker: str | None = None
        """The speaker of the last text, if speakers are named."""
        self._newest: TargetText | None = None
        self._sources: deque[SourceSentence] = deque(maxlen=_MAX_WAITING)

    def push(self, event: PipelineEvent) -> Sentence | None:
        """Take one event; return the sentence it completes, if any."""
        if isinstance(event, SourceSentence):
            self._sources.append(event)
        if not isinstance(event, TargetText | Translation) or self._language not in (None, event.language):
            return None
        if isinstance(event, TargetText):
            self._newest = event
            return None
        while self._sources and self._sources[0].sentence < event.sentence:
            self._sources.popleft()
        if not self._sources or self._sources[0].sentence != event.sentence:
            return None  # a translation without its source; SourceSentence comes first
        said = self._sources[0]
        text, source = normalized(event.text), normalized(said.text)
        if same_language(event.language, said.language):  # shown once
            source = ""
        if not (text or (self._bilingual and source)):
            return None
        written = self._newest if self._newest is not None and self._newest.sentence == event.sentence else None
        seams = frozenset(token.end for token in written.tokens) if written is not None else frozenset()
        if text != event.text:
            seams = frozenset(len(normalized(event.text[:seam])) for seam in seams)
        if self._named and text and said.speaker != self._speaker:
            self._speaker = said.speaker
            name = f"{said.speaker}{'：' if is_cjk(text) else ': '}" if said.speaker is not None else ""
            text, seams = name + text, frozenset(len(name) + seam for seam in seams)
        if self._marked and said.uncertain:
            text, source = (_join_texts(texts, UNCERTAIN) if texts else "" for texts in (text, source))
        return Sentence(said.start_s, said.end_s, source, text, seams, said.before_pause, (said,), said.speaker)


def _join_texts(first: str, second: str) -> str:
    if not (first and second):
        return first or second
    return first + ("" if is_cjk(first) and is_cjk(second) else " ") + second
