"""The table of subtitle formats, and opening the requested files."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from pipeline.errors import UsageError
from pipeline.names import STANDARD_OUTPUT
from pipeline.sinks.ass import AssSink
from pipeline.sinks.jsonl import JsonlSink
from pipeline.sinks.sink import Sink, close_all
from pipeline.sinks.srt import SrtSink
from pipeline.sinks.txt import TextSink
from pipeline.sinks.vtt import VttSink
from pipeline.subtitles.rules import SubtitleRules

_SINKS: dict[str, Callable[..., Sink]] = {
    "srt": SrtSink,
    "vtt": VttSink,
    "ass": AssSink,
    "jsonl": JsonlSink,
    "txt": TextSink,
}
FORMATS = tuple(_SINKS)
"""Supported subtitle formats; each is also the file suffix."""


def sink_makers(rules: SubtitleRules, *, resume: bool = False) -> dict[str, Callable[[Path], Sink]]:
    """A function per format that opens a file of it.

    Args:
        resume: continue the files of an interrupted run; see ``BlockFile``.
    """
    return {kind: partial(sink, rules=rules, resume=resume) for kind, sink in _SINKS.items()}


def _is_standard_output(path: Path) -> bool:
    """Whether standard output is redirected to this file; two writers would overwrite each other."""
    try:
        there, ours = path.stat(), os.fstat(1)
    except OSError:
        return False
    return stat.S_ISREG(there.st_mode) and os.path.samestat(there, ours)


def open_sinks(paths: dict[str, Path], source: Path | None, makers: Mapping[str, Callable[[Path], Sink]]) -> list[Sink]:
    """Open one sink per kind → path with ``makers``. If one fails, close those already open.

    Raises:
        UsageError: a file cannot be created, or is ``source`` (the recording), or another sink's.
    """
    taken = {os.path.realpath(source): "the recording"} if source else {}
    if (twice := [kind for kind, path in paths.items() if path == STANDARD_OUTPUT])[1:]:
        raise UsageError(f"{' and '.join(twice)} cannot all go to standard output; name a file for all but one")
    sinks: list[Sink] = []
    try:
        for kind, path in paths.items():
            if path == STANDARD_OUTPUT:
                sinks.append(makers[kind](path))
                continue
            other = "where standard output goes" if _is_standard_output(path) else taken.get(os.path.realpath(path))
            if other is not None:
                raise UsageError(f"{path} is also {other}; choose another place for the {kind} file")
            sinks.append(makers[kind](path))
            if path.is_file():  # a device may have several writers
                taken[os.path.realpath(path)] = f"the file for {kind}"
    except BaseException:
        close_all(sinks)
        raise
    return sinks
