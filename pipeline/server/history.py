"""The texts of a session, for readers that come later or have missed something. Pure."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace

from ..core import (
    Correction,
    EndOfInput,
    Paused,
    PipelineEvent,
    Resumed,
    SourceSentence,
    SourceText,
    State,
    TargetText,
    Transcript,
    Translation,
    TranslationLost,
    key,
)


@dataclass
class _Text:
    """A text, source or translation."""

    newest: SourceText | TargetText | None = None
    end: SourceSentence | Translation | None = None
    correction: Correction | None = None
    events: tuple[PipelineEvent, ...] = ()
    """What a new reader is told of it. A thousand sentences are put together from these in a moment."""

    def push(self, event: State | Correction) -> None:
        if isinstance(event, TargetText):
            self.newest = replace(event, tokens=())
        elif isinstance(event, SourceText):
            self.newest = event
        elif isinstance(event, Correction):
            self.correction = event
        else:
            self.end = event
        newest = self.newest if self.newest is not None and self.newest.text else None
        self.events = tuple(event for event in (newest, self.end, self.correction) if event is not None)


class History:
    """Keeps the text of the newest sentences, so that a reader can be told all of it in a few events."""

    def __init__(self, sentences: int) -> None:
        """``sentences``: how many are kept, and how many transcripts of speech that is in no sentence."""
        self._sentences = sentences
        self._texts: dict[int, dict[str, _Text]] = {}  # sentence → language ("" for the source) → text
        self._missing: deque[Transcript] = deque(maxlen=sentences)
        self._lost: list[TranslationLost] = []
        self._paused: Paused | None = None
        self._end: EndOfInput | None = None

    def push(self, event: PipelineEvent) -> None:
        """Take the next event of the stream."""
        match event:
            case SourceText() | SourceSentence() | TargetText() | Translation():
                number, language = key(event)
                self._texts.setdefault(number, {}).setdefault(language, _Text()).push(event)
            case Correction() if self.finished(event.sentence, event.language) is not None:
                self._texts[event.sentence][event.language].push(event)
            case Paused() | Resumed():
                self._paused = event if isinstance(event, Paused) else None
            case Transcript() if not event.is_noise and concerns(event, None):
                self._missing.append(event)
            case TranslationLost():
                self._lost.append(event)
            case EndOfInput():
                self._end = event
        while len(self._texts) > self._sentences:
            del self._texts[min(self._texts)]

    def finished(self, sentence: int, language: str) -> tuple[SourceSentence | Translation, Correction | None] | None:
        """A finished text, ``language`` "" for the source, and its correction; None if it is not kept, or the stream has ended."""
        text = self._texts.get(sentence, {}).get(language)
        return (text.end, text.correction) if self._end is None and text is not None and text.end is not None else None

    def events(self, language: str | None = None) -> list[PipelineEvent]:
        """Events that give a new reader all texts as they are now; with the translation into one ``language`` only, if given."""
        events: list[PipelineEvent] = []
        for _, texts in sorted(self._texts.items()):
            for target, text in texts.items():
                if not target or language in (None, target):
                    events += text.events
        events += self._missing
        events += [lost for lost in self._lost if language in (None, lost.language)]
        return [*events, *(event for event in (self._paused, self._end) if event is not None)]


def concerns(event: PipelineEvent, language: str | None) -> bool:
    """Whether an event is for readers of one language; None: of all."""
    if isinstance(event, Transcript):
        return event.rejected is not None or bool(event.missing)
    if isinstance(event, Correction) and not event.language:  # of what was said
        return True
    kinds = TargetText | Translation | TranslationLost | Correction
    return not isinstance(event, kinds) or language in (None, event.language)
