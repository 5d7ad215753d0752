"""The table of subtitle formats, and opening the requested files."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path

from ...errors import UsageError
from ...names import STANDARD_OUTPUT
from ...plugins import Table
from ..subtitles.rules import SubtitleRules
from .sink import Sink, close_all

_SPOKEN = {
    "json": "media.sinks.spoken_files:WhisperJsonSink",
    "tsv": "media.sinks.spoken_files:TsvSink",
    "lrc": "media.sinks.spoken_files:LrcSink",
    "karaoke": "media.sinks.spoken_files:KaraokeSink",
}
SINKS = Table(
    "formats",
    "format",
    {
        "srt": "media.sinks.srt:SrtSink",
        "vtt": "media.sinks.vtt:VttSink",
        "ass": "media.sinks.ass:AssSink",
        "ttml": "media.sinks.ttml:TtmlSink",
        "jsonl": "media.sinks.jsonl:JsonlSink",
        "txt": "media.sinks.txt:TextSink",
        **_SPOKEN,
    },
)
"""Each is a class of sinks, made of a path and, by keyword, rules, languages and resume; see ``sink_makers``."""
FORMATS = tuple(SINKS.own)
"""The subtitle formats of this package."""
SPOKEN = frozenset(_SPOKEN)
"""Formats whose file has what was said, with the times of words."""


MakeSink = Callable[..., Sink]
"""Opens the sink at a path, for the translations into ``languages``; by default, the only one of the stream."""


def file_suffix(kind: str) -> str:
    """The suffix of files in a format."""
    return ".karaoke.ass" if kind == "karaoke" else f".{kind}"


def sink_makers(rules: SubtitleRules, *, more: Iterable[str] = (), resume: bool = False) -> dict[str, MakeSink]:
    """A function per format that opens a file of it.

    Args:
        more: formats of other packages.
        resume: continue the files of an interrupted run; see ``BlockFile``.
    """
    return {kind: partial(SINKS.make, kind, rules=rules, resume=resume) for kind in (*FORMATS, *more)}


def _is_standard_output(path: Path) -> bool:
    """Whether standard output is redirected to this file; two writers would overwrite each other."""
    try:
        there, ours = path.stat(), os.fstat(1)
    except OSError:
        return False
    return stat.S_ISREG(there.st_mode) and os.path.samestat(there, ours)


def open_sinks(
    paths: Mapping[tuple[str, str], Path],
    source: Path | None,
    makers: Mapping[str, MakeSink],
    languages: Sequence[str] = (),
) -> list[Sink]:
    """Open one sink per (kind, language) → path with ``makers``. If one fails, close those already open.

    ``languages`` are those of a file whose language is "", because it has all.
    """
    taken = {os.path.realpath(source): "the recording"} if source else {}
    if (twice := [kind for (kind, _), path in paths.items() if path == STANDARD_OUTPUT])[1:]:
        raise UsageError(f"{' and '.join(twice)} cannot share standard output; name a file for all but one")
    sinks: list[Sink] = []
    try:
        for (kind, language), path in paths.items():
            inside = (language,) if language else languages
            if path == STANDARD_OUTPUT:
                sinks.append(makers[kind](path, languages=inside))
                continue
            other = "where standard output goes" if _is_standard_output(path) else taken.get(os.path.realpath(path))
            if other is not None:
                raise UsageError(f"{path} is also {other}; choose another place for the {kind} file")
            sinks.append(makers[kind](path, languages=inside))
            if path.is_file():  # a device may have several writers
                taken[os.path.realpath(path)] = f"the file for {kind}"
    except BaseException:
        close_all(sinks)
        raise
    return sinks
