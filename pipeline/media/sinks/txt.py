"""Plain text files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ...core import EndOfInput, PipelineEvent
from ..subtitles.rules import SubtitleRules
from ..subtitles.sentences import SentenceBuilder
from .block_file import BlockFile


class TextSink:
    """One translated sentence per line, with the name of a new speaker; if bilingual, the source on the next line and then a
    blank line."""

    def __init__(
        self, path: Path, rules: SubtitleRules, *, resume: bool = False, languages: Sequence[str] = ()
    ) -> None:
        """``languages``: the one whose translations are written; by default, the only one of the stream."""
        self._file = BlockFile(path, resume=resume)
        self._bilingual = rules.bilingual
        self._sentences = SentenceBuilder(
            bilingual=rules.bilingual, language=next(iter(languages), None), named=True, marked=rules.mark_uncertain
        )

    def write(self, event: PipelineEvent) -> None:
        self._file.begin()
        if (sentence := self._sentences.push(event)) is not None:
            shown = filter(None, (sentence.text, sentence.source)) if self._bilingual else (sentence.text,)
            self._file.append("\n".join(shown) + ("\n\n" if self._bilingual else "\n"))
        if isinstance(event, EndOfInput):
            self._file.finish()

    def close(self) -> None:
        self._file.close()
