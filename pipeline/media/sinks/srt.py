"""SubRip files."""

from __future__ import annotations

from ..subtitles import escapes
from ..subtitles.bidi import directed
from ..subtitles.cues import Cue
from .cue_file import CueSink, timestamp


class SrtSink(CueSink):
    """SubRip. The format has no positions, so the source is below its translation."""

    def block(self, cue: Cue) -> str:
        shown = (*directed(cue.lines), *directed(cue.source_lines))
        text = "\n".join(escapes.srt(line) for line in shown)
        return f"{cue.index}\n{timestamp(cue.start_s, ',')} --> {timestamp(cue.end_s, ',')}\n{text}\n\n"
