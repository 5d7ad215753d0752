"""Advanced SubStation Alpha files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ..subtitles import escapes
from ..subtitles.bidi import directed
from ..subtitles.cues import Cue
from ..subtitles.fit import font_size
from ..subtitles.lines import Lines
from ..subtitles.rules import SubtitleRules
from .cue_file import CueSink

# ASS alignments are numeric keypad positions: 2 is bottom centre, 8 top centre.
_ALIGNMENTS = {"bottom": 2, "top": 8}
_ASS_WIDTH, _ASS_MARGIN, _ASS_MARGIN_V = 1920, 60, 50
_ASS_SIZES = {"Translation": 64, "Source": 46}


class AssSink(CueSink):
    """Advanced SubStation Alpha, version 4+, with a style for translations and one for sources.

    Encoding -1 makes libass detect the direction of each line; the default is left to right.
    """

    named = False

    def __init__(
        self, path: Path, rules: SubtitleRules, *, resume: bool = False, languages: Sequence[str] = ()
    ) -> None:
        self.header = ass_header(
            ("Translation", _ASS_SIZES["Translation"], rules.position),
            ("Source", _ASS_SIZES["Source"], rules.source_position),
        )
        super().__init__(path, rules, resume=resume, languages=languages)

    def block(self, cue: Cue) -> str:
        text, source = _ass_text(cue.lines, "Translation"), _ass_text(cue.source_lines, "Source")
        if self._rules.position == self._rules.source_position and text and source:
            return self._event(cue, "Translation", rf"{text}\N{{\rSource}}{source}")
        return "".join(self._event(cue, *part) for part in (("Source", source), ("Translation", text)) if part[1])

    @staticmethod
    def _event(cue: Cue, style: str, text: str) -> str:
        return ass_event(cue.start_s, cue.end_s, style, cue.speaker, text)


def ass_header(*styles: tuple[str, int, str], unsaid: str = "&H000000FF") -> str:
    """Everything before the first event. ``styles``: name, size and position of each. ``unsaid``: the colour of karaoke's
    text before its time."""
    shown = "".join(
        f"Style: {name},Arial,{size},&H00FFFFFF,{unsaid},&H00000000,&H80000000,0,0,0,0,100,100,0,0,1,3,1,"
        f"{_ALIGNMENTS[position]},{_ASS_MARGIN},{_ASS_MARGIN},{_ASS_MARGIN_V},-1\n"
        for name, size, position in styles
    )
    return (
        f"[Script Info]\nScriptType: v4.00+\nPlayResX: {_ASS_WIDTH}\nPlayResY: 1080\nWrapStyle: 0\n"
        "ScaledBorderAndShadow: yes\n\n"
        "[V4+ Styles]\nFormat: Name, Fontname, Fontsize, PrimaryColour, SecondaryColour, OutlineColour, BackColour, "
        "Bold, Italic, Underline, StrikeOut, ScaleX, ScaleY, Spacing, Angle, BorderStyle, Outline, Shadow, "
        f"Alignment, MarginL, MarginR, MarginV, Encoding\n{shown}\n"
        "[Events]\nFormat: Layer, Start, End, Style, Name, MarginL, MarginR, MarginV, Effect, Text\n"
    )


def ass_event(start_s: float, end_s: float, style: str, speaker: str | None, text: str) -> str:
    name = (speaker or "").replace(",", ";")  # fields end with commas
    return f"Dialogue: 0,{_ass_time(start_s)},{_ass_time(end_s)},{style},{name},0,0,0,,{text}\n"


def _ass_text(lines: Lines, style: str) -> str:
    """The ASS text of one language's lines, in a smaller font if they would not fit into the picture."""
    text = r"\N".join(escapes.ass(line) for line in directed(lines))
    size = font_size(lines, _ASS_SIZES[style], _ASS_WIDTH - 2 * _ASS_MARGIN, _ASS_MARGIN_V)
    return text if size == _ASS_SIZES[style] else rf"{{\fs{size}}}{text}"


def _ass_time(seconds: float) -> str:
    """H:MM:SS.cc, truncated rather than rounded to keep the gaps between cues."""
    hundredths = int(seconds * 1000 + 0.5) // 10
    minutes, hundredths_left = divmod(hundredths, 6000)
    return f"{minutes // 60}:{minutes % 60:02}:{hundredths_left // 100:02}.{hundredths_left % 100:02}"
