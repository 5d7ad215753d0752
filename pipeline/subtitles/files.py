"""Subtitle files: SRT, WebVTT, JSON lines, plain text."""

from __future__ import annotations

import dataclasses
import json
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pipeline.errors import UsageError
from pipeline.events import EndOfInput, PipelineEvent
from pipeline.subtitles.cues import Cue, CueBuilder
from pipeline.subtitles.lines import break_lines
from pipeline.subtitles.sink import BlockFile, Sink

_CAPITAL = re.compile(r"(?<=[a-z])(?=[A-Z])")


class CueSink(ABC):
    """A file with one block a cue."""

    header = ""

    def __init__(self, path: Path) -> None:
        self._file = BlockFile(path, self.header)
        self._cues = CueBuilder()

    @abstractmethod
    def block(self, cue: Cue) -> str:
        """The text of one cue, with what separates it from the next."""

    def write(self, event: PipelineEvent) -> None:
        self._file.begin()
        cue = self._cues.push(event)
        if cue is not None:
            self._file.append(self.block(cue))

    def close(self) -> None:
        self._file.close()


class SrtSink(CueSink):
    """SubRip."""

    def block(self, cue: Cue) -> str:
        text = "\n".join(break_lines(cue.text.replace("-->", "->")))
        return f"{cue.index}\n{timestamp(cue.start_s, ',')} --> {timestamp(cue.end_s, ',')}\n{text}\n\n"


class VttSink(CueSink):
    """WebVTT (https://www.w3.org/TR/webvtt1)."""

    header = "WEBVTT\n\n"

    def block(self, cue: Cue) -> str:
        text = "\n".join(break_lines(cue.text)).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
        return f"{timestamp(cue.start_s, '.')} --> {timestamp(cue.end_s, '.')}\n{text}\n\n"


class TextSink(CueSink):
    """One translated sentence a line."""

    def block(self, cue: Cue) -> str:
        return cue.text + "\n"


class JsonlSink:
    """Every event as it happens, one JSON object a line: ``type`` is transcript, delta, end or a notice's name."""

    def __init__(self, path: Path) -> None:
        self._file = BlockFile(path)

    def write(self, event: PipelineEvent) -> None:
        kind = "end" if isinstance(event, EndOfInput) else _CAPITAL.sub("_", type(event).__name__).lower()
        self._file.append(json.dumps({"type": kind, **_rounded(dataclasses.asdict(event))}, ensure_ascii=False) + "\n")

    def close(self) -> None:
        self._file.close()


def _rounded(value: Any) -> Any:
    """Four decimals are a tenth of a millisecond, and enough of a probability."""
    if isinstance(value, dict):
        return {key: _rounded(inner) for key, inner in value.items() if inner is not None}
    return round(value, 4) if isinstance(value, float) else value


FORMATS: dict[str, Callable[[Path], Sink]] = {"srt": SrtSink, "vtt": VttSink, "jsonl": JsonlSink, "txt": TextSink}


def open_sinks(
    paths: dict[str, Path], source: Path | None = None, formats: Mapping[str, Callable[[Path], Sink]] = FORMATS
) -> list[Sink]:
    """One sink for each format → path; if one cannot be opened, those before it are closed.

    Raises:
        UsageError: a file cannot be created, or it is ``source``, the recording, or another sink's.
    """
    taken = {source.resolve(): "the recording"} if source else {}
    sinks: list[Sink] = []
    try:
        for kind, path in paths.items():
            if (other := taken.get(path.resolve())) is not None:
                raise UsageError(f"{path} is {other} too; give --{kind} a file of its own")
            sinks.append(formats[kind](path))
            if path.is_file():  # a device may take several
                taken[path.resolve()] = f"the file for {kind}"
    except BaseException:
        for sink in sinks:
            sink.close()
        raise
    return sinks


def timestamp(seconds: float, mark: str) -> str:
    """HH:MM:SS and milliseconds after ``mark``, rounded to the nearest."""
    milliseconds = round(seconds * 1000)
    minutes, rest = divmod(milliseconds, 60_000)
    return f"{minutes // 60:02}:{minutes % 60:02}:{rest // 1000:02}{mark}{rest % 1000:03}"
