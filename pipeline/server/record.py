"""The record of a session: its events as JSON lines, and subtitle files, written on a thread of its own."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from pathlib import Path

from ..errors import PipelineError, UsageError
from ..events import PipelineEvent
from ..run.worker import Worker
from ..sinks.files import sink_makers
from ..sinks.sink import Sink, close_all, write_all
from ..subtitles.rules import SubtitleRules

log = logging.getLogger(__name__)

SUBTITLES = ("srt", "vtt")
"""Subtitle formats that are written for each language."""
_WRITE_S = 5.0


class Record:
    """Files in a folder: ``NAME.jsonl``, and ``NAME.LANGUAGE.srt`` and ``.vtt`` for each language.

    A disk that is full or does not answer ends the record with a warning; the session goes on.
    """

    def __init__(
        self, folder: Path, name: str, rules: SubtitleRules, targets: Sequence[str], limit_s: float = _WRITE_S
    ) -> None:
        """``limit_s``: how long the session waits for one event to be written before it gives the record up."""
        self.failed = False
        """Whether the record has ended early."""
        self._folder, self._name, self._limit_s = folder, name, limit_s
        self._makers, self._targets = sink_makers(rules), tuple(targets)
        self._sinks: list[Sink] | None = None
        self._worker = Worker("record")

    async def write(self, event: PipelineEvent) -> None:
        """Write an event. When this returns, the operating system has it, so that a killed process does not lose it."""
        if self.failed:
            return
        try:
            async with asyncio.timeout(self._limit_s):
                await self._worker.run(lambda: self._write(event))
        except TimeoutError:
            self._fail(f"the disk took longer than {self._limit_s:g} s")
        except (PipelineError, OSError) as error:
            self._fail(str(error))

    async def close(self) -> None:
        """Write what waits for more text, and close the files. Nothing can be written after it."""
        try:
            async with asyncio.timeout(self._limit_s):
                await self._worker.run(self._close)
        except (TimeoutError, PipelineError, OSError) as error:
            if not self.failed:
                self._fail(str(error) or "the disk does not answer")
        self._worker.close()

    def _write(self, event: PipelineEvent) -> None:
        if self._sinks is None:
            self._sinks = []
            for suffix, kind, languages in [
                (".jsonl", "jsonl", self._targets),
                *((f".{target}.{kind}", kind, (target,)) for target in self._targets for kind in SUBTITLES),
            ]:
                self._sinks.append(self._makers[kind](self._folder / f"{self._name}{suffix}", languages))
        write_all(self._sinks, event)

    def _close(self) -> None:
        close_all(self._sinks or [])

    def _fail(self, reason: str) -> None:
        self.failed = True
        log.warning("the record of session %s ends here: %s; the session goes on", self._name, reason)


def check_folder(folder: Path) -> None:
    """Create the folder for records, for its owner alone, if it does not exist."""
    probe = folder / ".writable"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise UsageError(
            f"cannot write records into {folder} ({error.strerror}); give --record a folder that can be written to"
        ) from None
