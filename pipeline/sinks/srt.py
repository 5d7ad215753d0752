"""SubRip files."""

from __future__ import annotations

from pipeline.sinks.cue_file import CueSink, timestamp
from pipeline.subtitles import escapes
from pipeline.subtitles.bidi import directed
from pipeline.subtitles.cues import Cue


class SrtSink(CueSink):
    """SubRip. It has no positions: a source stands below its translation."""

    def block(self, cue: Cue) -> str:
        shown = (*directed(cue.lines), *directed(cue.source_lines))
        text = "\n".join(escapes.srt(line) for line in shown)
        return f"{cue.index}\n{timestamp(cue.start_s, ',')} --> {timestamp(cue.end_s, ',')}\n{text}\n\n"
