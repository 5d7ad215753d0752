"""The texts of a session, for readers that come later or have missed something. Pure."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, replace

from ..captions.states import State, key
from ..events import (
    Correction,
    EndOfInput,
    PipelineEvent,
    SourceSentence,
    SourceText,
    TargetText,
    Transcript,
    Translation,
    TranslationLost,
)


@dataclass
class _Text:
    """A text, source or translation."""

    newest: SourceText | TargetText | None = None
    end: SourceSentence | Translation | None = None
    correction: Correction | None = None

    def push(self, state: State) -> None:
        if isinstance(state, TargetText):
            self.newest = replace(state, tokens=())
        elif isinstance(state, SourceText):
            self.newest = state
        else:
            self.end = state

    def events(self) -> Iterator[PipelineEvent]:
        if self.newest is not None and self.newest.text:
            yield self.newest
        if self.end is not None:
            yield self.end
        if self.correction is not None:
            yield self.correction


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
            case SourceText() | SourceSentence() | TargetText() | Translation():
                number, language = key(event)
                self._texts.setdefault(number, {}).setdefault(language, _Text()).push(event)
            case Correction() if (text := self._finished(event)) is not None:
                text.correction = event
            case Transcript() if not event.is_noise and concerns(event, None):
                self._missing.append(event)
            case TranslationLost():
                self._lost.append(event)
            case EndOfInput():
                self._end = event
        while len(self._texts) > self._sentences:
            del self._texts[min(self._texts)]

    def takes(self, correction: Correction) -> bool:
        """Whether the stream goes on, and the text that is corrected is finished and still kept."""
        return self._end is None and self._finished(correction) is not None

    def _finished(self, correction: Correction) -> _Text | None:
        text = self._texts.get(correction.sentence, {}).get(correction.language)
        return text if text is not None and text.end is not None else None

    def events(self, language: str | None = None) -> list[PipelineEvent]:
        """Events that give a new reader all texts as they are now; with the translation into one ``language`` only, if given."""
        found: list[PipelineEvent] = []
        for _, texts in sorted(self._texts.items()):
            for target, text in texts.items():
                if not target or language in (None, target):
                    found += text.events()
        found += self._missing
        found += [lost for lost in self._lost if language in (None, lost.language)]
        return [*found, *([self._end] if self._end is not None else [])]


def concerns(event: PipelineEvent, language: str | None) -> bool:
    """Whether an event is for readers of one language; None: of all."""
    if isinstance(event, Transcript):
        return event.rejected is not None or bool(event.missing)
    if isinstance(event, Correction) and not event.language:  # of what was said
        return True
    kinds = TargetText | Translation | TranslationLost | Correction
    return not isinstance(event, kinds) or language in (None, event.language)
