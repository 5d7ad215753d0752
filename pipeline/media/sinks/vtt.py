"""WebVTT files."""

from __future__ import annotations

from ..subtitles import escapes
from ..subtitles.bidi import directed
from ..subtitles.cues import Cue
from .cue_file import CueSink, timestamp


class VttSink(CueSink):
    """WebVTT (https://www.w3.org/TR/webvtt1). If the source has another position, it is a separate cue."""

    header = "WEBVTT\n\n"
    named = False

    def block(self, cue: Cue) -> str:
        times = f"{timestamp(cue.start_s, '.')} --> {timestamp(cue.end_s, '.')}"
        text, source = (
            "\n".join(escapes.vtt(line) for line in directed(lines)) for lines in (cue.lines, cue.source_lines)
        )
        source = f"<c.source>{source}</c>" if source else ""
        rules = self._rules
        if rules.position == rules.source_position:
            parts = [("\n".join(filter(None, (text, source))), rules.position)]
        else:
            parts = [(source, rules.source_position), (text, rules.position)]
        voice = f"<v {escapes.vtt(cue.speaker)}>" if cue.speaker is not None else ""
        # Players place cues without a line setting at the bottom.
        return "".join(
            f"{times}{' line:0' if position == 'top' else ''}\n{voice}{shown}\n\n" for shown, position in parts if shown
        )
