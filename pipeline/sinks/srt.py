"""SubRip files."""

from __future__ import annotations

from pipeline.sinks.cue_file import CueSink, timestamp
from pipeline.subtitles import escapes
from pipeline.subtitles.bidi import directed
from pipeline.subtitles.cues import Cue


class SrtSink(CueSink):
    """SubRip. The format has no positions, so the source is below its translation."""

    def block(self, cue: Cue) -> str:
        shown = (*directed(cue.lines), *directed(cue.source_lines))
        text = "\n".join(escapes.srt(line) for line in shown)
        return f"{cue.index}\n{timestamp(cue.start_s, ',')} --> {timestamp(cue.end_s, ',')}\n{text}\n\n"
