"""The record of a session: its events as JSON lines, and subtitle files, written on a thread of its own."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import secrets
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from ..core import Correction, PipelineEvent, SourceSentence, State, States, Translation, Worker, key
from ..errors import PipelineError, UsageError
from ..media import Sink, SubtitleRules, close_all, read_event, write_all

log = logging.getLogger(__name__)

SUBTITLES = ("srt", "vtt")
"""Subtitle formats that are written for each language."""
_WRITE_S = 5.0
# Writing the subtitles of eight hours anew.
_REWRITE_S = 60.0


def new_name() -> str:
    """A name that begins with the time, and says nothing of the session's ``id``, which lets one read."""
    return f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{secrets.token_hex(4)}"


class Record:
    """Files in a folder: ``NAME.jsonl``, and ``NAME.LANGUAGE.srt`` and ``.vtt`` for each language.

    Subtitles of a session with corrections are written anew at its end; those of a language that was added come then.

    A disk that is full or does not answer ends the record with a warning; the session goes on.
    """

    def __init__(
        self, folder: Path, name: str, rules: SubtitleRules, targets: Sequence[str], limit_s: float = _WRITE_S
    ) -> None:
        """``limit_s``: how long the session waits for one event to be written before it gives the record up."""
        self.failed = False
        """Whether the record has ended early."""
        self._folder, self._name, self._limit_s = folder, name, limit_s
        from ..media import sink_makers  # with the formats of files

        self._makers, self._targets = sink_makers(rules), tuple(targets)
        self._added: list[str] = []
        self._sinks: list[Sink] | None = None
        self._corrections: dict[tuple[int, str], Correction] = {}
        self._worker = Worker("record")

    def add(self, target: str) -> None:
        """The session is translated into one more language, in which sentences may come in any order."""
        self._added.append(target)

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
            async with asyncio.timeout(self._limit_s + (_REWRITE_S if self._corrections or self._added else 0)):
                await self._worker.run(self._close)
        except (TimeoutError, PipelineError, OSError) as error:
            if not self.failed:
                self._fail(str(error) or "the disk does not answer")
        self._worker.close()

    def _write(self, event: PipelineEvent) -> None:
        if self._sinks is None:
            self._sinks = []
            self._sinks.append(self._makers["jsonl"](self._path("jsonl"), languages=self._targets))
            for target, kind in self._subtitles:
                self._sinks.append(self._makers[kind](self._path(f"{target}.{kind}"), languages=[target]))
        write_all(self._sinks, event)
        if isinstance(event, Correction):
            self._corrections[event.sentence, event.language] = event

    @property
    def _subtitles(self) -> list[tuple[str, str]]:
        return [(target, kind) for target in self._targets for kind in SUBTITLES]

    def _path(self, suffix: str) -> Path:
        return self._folder / f"{self._name}.{suffix}"

    def _close(self) -> None:
        if self._sinks is None:
            return
        close_all(self._sinks)
        if self._corrections:
            for target, kind in self._subtitles:
                self._write_anew(target, kind, self._corrected())
        for target in self._added:
            texts = (text for text in self._corrected() if isinstance(text, SourceSentence) or text.language == target)
            events = sorted(texts, key=lambda text: text.sentence)
            for kind in SUBTITLES:
                self._write_anew(target, kind, events)

    def _write_anew(self, target: str, kind: str, events: Iterable[State]) -> None:
        new = self._path("new")
        sink = self._makers[kind](new, languages=[target])
        try:
            for event in events:
                sink.write(event)
        finally:
            sink.close()
        os.replace(new, self._path(f"{target}.{kind}"))

    def _corrected(self) -> Iterator[State]:
        """The texts of the record as they were corrected."""
        states = States()
        with self._path("jsonl").open(encoding="utf-8") as lines:
            for line in lines:
                change = read_event(json.loads(line))
                event = None if change is None else states.push(change)
                if not isinstance(event, State):
                    continue
                correction = self._corrections.get(key(event))
                if correction is None:
                    yield event
                elif isinstance(event, SourceSentence):
                    speaker = event.speaker if correction.speaker is None else correction.speaker or None
                    words = event.words if correction.text == event.text else ()  # others now, which nobody timed
                    yield replace(event, text=correction.text, words=words, speaker=speaker)
                elif isinstance(event, Translation):
                    yield replace(event, text=correction.text)

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
