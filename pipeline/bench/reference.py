"""Read reference translations: SRT or WebVTT with times, or a text file for a whole recording."""

from __future__ import annotations

import html
import math
import re
from pathlib import Path

import av

from ..errors import UsageError
from ..latency.emissions import Unit, units
from ..latency.metrics import Reference

# SRT and WebVTT tags, and ASS override codes, which SRT files contain too.
_MARKUP = re.compile(r"<[^>]*>|\{\\[^}]*\}")


def read_reference(path: Path, unit: Unit) -> list[Reference]:
    """Read the sentences of a reference.

    A text file gives one sentence of infinite length, because the length of the recording is not known yet.
    """
    suffix = path.suffix.lower()
    if suffix not in (".srt", ".vtt", ".txt"):
        raise UsageError(f"{path} is not a supported reference; give .srt or .vtt with times, or .txt without")
    try:
        text = path.read_text("utf-8-sig")
        timed = [(text, 0.0, math.inf)] if suffix == ".txt" else _cues(path)
    except (OSError, UnicodeDecodeError, av.error.FFmpegError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UsageError(f"cannot read the reference {path} ({reason}); give a file in UTF-8") from error
    found = [
        Reference(tuple(words), start_s * 1000, length_s * 1000)
        for text, start_s, length_s in timed
        if (words := units(text, unit)) and length_s > 0
    ]
    if not found:
        raise UsageError(f"{path} contains no sentence; give the translation of the recording")
    return found


def _cues(path: Path) -> list[tuple[str, float, float]]:
    """Return each cue's text without markup, start and length in seconds."""
    with av.open(str(path)) as container:
        return [
            (
                html.unescape(_MARKUP.sub("", bytes(packet).decode("utf-8"))),
                float(packet.pts * packet.time_base),
                float(packet.duration * packet.time_base),
            )
            for packet in container.demux(subtitles=0)
            if packet.pts is not None and packet.duration is not None
        ]
