"""Read reference translations: SRT or WebVTT with times, or a text file for a whole recording."""

from __future__ import annotations

import math
from pathlib import Path

from ..errors import UsageError
from ..latency.emissions import Unit, units
from ..latency.metrics import Reference
from ..subtitles.check import read_cues


def read_reference(path: Path, unit: Unit) -> list[Reference]:
    """Read the sentences of a reference.

    A text file gives one sentence of infinite length, because the length of the recording is not known yet.
    """
    suffix = path.suffix.lower()
    if suffix not in (".srt", ".vtt", ".txt"):
        raise UsageError(f"{path} is not a supported reference; give .srt or .vtt with times, or .txt without")
    try:
        text = path.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UsageError(f"cannot read the reference {path} ({reason}); give a file in UTF-8") from error
    try:
        cues = [] if suffix == ".txt" else read_cues(text)
    except UsageError as error:
        raise UsageError(f"cannot read the reference {path}: {error}") from None
    timed = [("\n".join(cue.lines), float(cue.start_ms), float(cue.end_ms - cue.start_ms)) for cue in cues]
    found = [
        Reference(tuple(words), start_ms, length_ms)
        for text, start_ms, length_ms in timed or [(text, 0.0, math.inf)]
        if (words := units(text, unit)) and length_ms > 0
    ]
    if not found:
        raise UsageError(f"{path} contains no sentence; give the translation of the recording")
    return found
