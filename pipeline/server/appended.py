"""The text of a session for readers that cannot take text back: only committed text, appended. Pure."""

from __future__ import annotations

from pipeline.events import Delta, SourceDelta, SourceSentence, Translation
from pipeline.languages import sets_sentences_apart
from pipeline.sentences.growing import GrowingText


class AppendedText:
    """The source, or one translation, as one growing text. Sentences are set apart as their language does."""

    def __init__(self) -> None:
        self._growing: dict[int, GrowingText] = {}  # of sentences in progress
        self._appended: dict[int, int] = {}  # sentence → characters appended so far

    def push(self, event: SourceDelta | SourceSentence | Delta | Translation) -> str:
        """The text that the event appends, often none."""
        number = event.sentence
        if isinstance(event, SourceSentence | Translation):  # its changes came before, and committed all of it
            self._growing.pop(number, None)
            return ""
        text, appended = self._growing.setdefault(number, GrowingText()), self._appended.get(number, 0)
        text.apply(event)
        if text.committed <= appended:
            return ""
        space = " " if not appended and self._appended and sets_sentences_apart(event.language) else ""
        self._appended[number] = text.committed
        return space + text.text[appended : text.committed]

    def begin_anew(self) -> None:
        """The next events give all texts from their beginnings again (``pipeline.server.feed.Snapshot``)."""
        self._growing.clear()
