"""The texts of a session, for readers that come later or have missed something. Pure."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from pipeline.events import (
    Delta,
    EndOfInput,
    PipelineEvent,
    SourceDelta,
    SourceSentence,
    Transcript,
    Translation,
    TranslationLost,
)
from pipeline.sentences.growing import GrowingText


@dataclass
class _Text:
    """A text, source or translation, as its changes built it."""

    last: SourceDelta | Delta
    growing: GrowingText = field(default_factory=GrowingText)
    end: SourceSentence | Translation | None = None

    def apply(self, change: SourceDelta | Delta) -> None:
        self.growing.apply(change)
        self.last = change

    def whole(self) -> SourceDelta | Delta:
        """All changes as one."""
        text, committed = self.growing.text, self.growing.committed
        if isinstance(self.last, Delta):
            return replace(self.last, text=text, withdrawn=0, committed=committed, token=None, log_probability=0.0)
        return replace(self.last, text=text, withdrawn=0, committed=committed)

    def finish(self, end: SourceSentence | Translation) -> None:
        self.last, self.growing, self.end = self.whole(), GrowingText(), end  # one piece instead of one per token
        self.growing.apply(self.last)

    def events(self) -> Iterator[PipelineEvent]:
        if len(self.growing):
            yield self.last if self.end is not None else self.whole()
        if self.end is not None:
            yield self.end


class History:
    """Keeps the text of the newest sentences, so that a reader can be told all of it in a few events."""

    def __init__(self, sentences: int) -> None:
        """``sentences``: how many are kept, and how many transcripts of speech that is in no sentence."""
        self._sentences = sentences
        self._texts: dict[int, dict[str, _Text]] = {}  # sentence → language ("" for the source) → text
        self._missing: deque[Transcript] = deque(maxlen=sentences)
        self._lost: list[TranslationLost] = []
        self._end: EndOfInput | None = None

    def push(self, event: PipelineEvent) -> None:
        """Take the next event of the stream."""
        match event:
            case SourceDelta() | Delta():
                self._text(event, event).apply(event)
            case SourceSentence():
                self._text(event, SourceDelta(event.sentence, event.language, "")).finish(event)
            case Translation():  # an empty one has no changes
                self._text(event, Delta(event.sentence, event.language, "")).finish(event)
            case Transcript() if not event.is_noise and concerns(event, None):
                self._missing.append(event)
            case TranslationLost():
                self._lost.append(event)
            case EndOfInput():
                self._end = event
        while len(self._texts) > self._sentences:
            del self._texts[min(self._texts)]

    def _text(self, event: SourceDelta | SourceSentence | Delta | Translation, first: SourceDelta | Delta) -> _Text:
        of_sentence = self._texts.setdefault(event.sentence, {})
        return of_sentence.setdefault(_key(event), _Text(first))

    def events(self, language: str | None = None) -> list[PipelineEvent]:
        """Events that give a new reader all texts as they are now; with the translation into one ``language`` only, if given."""
        found: list[PipelineEvent] = []
        for _, texts in sorted(self._texts.items()):
            for key, text in texts.items():
                if not key or language in (None, key):
                    found += text.events()
        found += self._missing
        found += [lost for lost in self._lost if language in (None, lost.language)]
        return [*found, *([self._end] if self._end is not None else [])]


def concerns(event: PipelineEvent, language: str | None) -> bool:
    """Whether an event is for readers of one language; None: of all."""
    if isinstance(event, Transcript):
        return event.rejected is not None or bool(event.missing)
    return not isinstance(event, Delta | Translation | TranslationLost) or language in (None, event.language)


def _key(event: SourceDelta | SourceSentence | Delta | Translation) -> str:
    return "" if isinstance(event, SourceDelta | SourceSentence) else event.language
