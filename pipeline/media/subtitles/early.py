"""Build translated sentences before they are final, for readers that take nothing back. Pure."""

from __future__ import annotations

from ...core import AppendOnlySentences, Piece, PipelineEvent, SourceSentence, SourceText, TargetText, Translation
from .sentences import Sentence, SentenceBuilder
from .text import normalized


class EarlySentenceBuilder:
    """Builds the sentences of one language, each once: see ``AppendOnlySentences`` for when."""

    def __init__(self, language: str) -> None:
        self._language, self._final = language, SentenceBuilder(language=language)
        self._appended = AppendOnlySentences()
        self._sources: dict[int, SourceText | SourceSentence] = {}
        """The source of each sentence without a final translation, by number."""

    @property
    def differing(self) -> int:
        """Units of finished text that were appended otherwise, or not; see ``AppendOnlyText``."""
        return self._appended.differing

    def push(self, event: PipelineEvent) -> list[Sentence]:
        """Take one event; return the sentences that it completes."""
        final = self._final.push(event)
        if isinstance(event, SourceText | SourceSentence):
            self._sources[event.sentence] = event
        if not isinstance(event, TargetText | Translation) or event.language != self._language:
            return []
        sentences = [self._sentence(piece, final) for piece in self._appended.push(event)]
        if isinstance(event, Translation):
            self._sources = {number: one for number, one in self._sources.items() if number > event.sentence}
        return [sentence for sentence in sentences if sentence is not None]

    def _sentence(self, piece: Piece, final: Sentence | None) -> Sentence | None:
        text, source = normalized(piece.text), self._sources.get(piece.sentence)
        if final is not None and final.text == text:
            return final
        if source is None:  # SourceSentence comes first
            return None
        if isinstance(source, SourceText):
            times = source.start_s, source.end_s, source.heard_s
            source = SourceSentence(source.sentence, source.language, source.text, *times, speaker=source.speaker)
        return Sentence(
            source.start_s, source.end_s, normalized(source.text), text, sources=(source,), speaker=source.speaker
        )
