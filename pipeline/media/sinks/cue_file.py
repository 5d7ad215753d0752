"""The base class of SubRip, WebVTT, ASS and TTML files: one block per cue."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path

from ...core import EndOfInput, PipelineEvent
from ..subtitles.cues import Cue, CueBuilder
from ..subtitles.rules import SubtitleRules
from .block_file import BlockFile


class CueSink(ABC):
    """A file with one block per cue.

    If closed before the end of the input, it also writes a sentence that waits for the next one. With ``resume`` it
    does not, because the next run decides on that sentence.
    """

    header = footer = ""
    named = True
    """Whether the text says who speaks: the format has no field for that."""

    def __init__(
        self, path: Path, rules: SubtitleRules, *, resume: bool = False, languages: Sequence[str] = ()
    ) -> None:
        """``languages``: the one whose translations are written; by default, the only one of the stream."""
        self._file = BlockFile(path, self.header, self.footer, resume=resume)
        self._rules, self._resume = rules, resume
        self._cues = CueBuilder(rules, next(iter(languages), None), named=self.named)

    @abstractmethod
    def block(self, cue: Cue) -> str:
        """The text of one cue, including the separator after it."""

    def write(self, event: PipelineEvent) -> None:
        self._file.begin()
        for cue in self._cues.push(event):
            self._file.append(self.block(cue))
        if isinstance(event, EndOfInput):
            self._file.finish()

    def close(self) -> None:
        try:
            if not self._resume:
                for cue in self._cues.flush():
                    self._file.append(self.block(cue))
        finally:
            self._file.close()


def timestamp(seconds: float, mark: str) -> str:
    """HH:MM:SS, ``mark`` and milliseconds, rounded to the nearest millisecond."""
    milliseconds = round(seconds * 1000)
    minutes, milliseconds_left = divmod(milliseconds, 60_000)
    return f"{minutes // 60:02}:{minutes % 60:02}:{milliseconds_left // 1000:02}{mark}{milliseconds_left % 1000:03}"
