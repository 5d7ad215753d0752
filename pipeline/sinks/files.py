"""Subtitle files: SRT, WebVTT, ASS, plain text; and the opening of one for each format that is asked for."""

from __future__ import annotations

import os
import stat
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from pipeline.errors import UsageError
from pipeline.events import EndOfInput, PipelineEvent
from pipeline.names import STANDARD_OUTPUT
from pipeline.sinks.jsonl import JsonlSink
from pipeline.sinks.sink import BlockFile, Sink, close_all
from pipeline.subtitles import escapes
from pipeline.subtitles.bidi import directed
from pipeline.subtitles.cues import Cue, CueBuilder
from pipeline.subtitles.fit import font_size
from pipeline.subtitles.lines import Lines
from pipeline.subtitles.rules import SubtitleRules
from pipeline.subtitles.sentences import SentenceBuilder

# ASS: the numpad's keys say where text stands, 2 is bottom centre, 8 top centre.
_ALIGNMENTS = {"bottom": 2, "top": 8}
_ASS_WIDTH, _ASS_MARGIN, _ASS_MARGIN_V = 1920, 60, 50
_ASS_SIZES = {"Translation": 64, "Source": 46}


class CueSink(ABC):
    """A file with one block a cue.

    When it is closed before the end of the input, a sentence that waits for the next one is written too, unless a run
    that will ``resume`` this one is to decide on it.
    """

    header = ""

    def __init__(self, path: Path, rules: SubtitleRules, *, resume: bool = False) -> None:
        self._file = BlockFile(path, self.header, resume=resume)
        self._rules, self._resume = rules, resume
        self._cues = CueBuilder(rules)

    @abstractmethod
    def block(self, cue: Cue) -> str:
        """The text of one cue, with what separates it from the next."""

    def write(self, event: PipelineEvent) -> None:
        self._file.begin()
        for cue in self._cues.push(event):
            self._file.append(self.block(cue))
        if isinstance(event, EndOfInput):
            self._file.finish()

    def close(self) -> None:
        try:
            if not self._resume:
                for cue in self._cues.flush():
                    self._file.append(self.block(cue))
        finally:
            self._file.close()


class SrtSink(CueSink):
    """SubRip. It has no positions: a source stands below its translation."""

    def block(self, cue: Cue) -> str:
        shown = (*directed(cue.lines), *directed(cue.source_lines))
        text = "\n".join(escapes.srt(line) for line in shown)
        return f"{cue.index}\n{timestamp(cue.start_s, ',')} --> {timestamp(cue.end_s, ',')}\n{text}\n\n"


class VttSink(CueSink):
    """WebVTT (https://www.w3.org/TR/webvtt1). A source at the other edge of the picture is a cue of its own."""

    header = "WEBVTT\n\n"

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
        # The bottom is where players put what says nothing of it.
        return "".join(
            f"{times}{' line:0' if position == 'top' else ''}\n{shown}\n\n" for shown, position in parts if shown
        )


class AssSink(CueSink):
    """Advanced SubStation Alpha, version 4+, with a style for translations and one for sources.

    Encoding -1 makes libass find out each line's direction, which is left to right otherwise.
    """

    def __init__(self, path: Path, rules: SubtitleRules, *, resume: bool = False) -> None:
        styles = "".join(
            f"Style: {name},Arial,{size},&H00FFFFFF,&H000000FF,&H00000000,&H80000000,0,0,0,0,100,100,0,0,1,3,1,"
            f"{_ALIGNMENTS[position]},{_ASS_MARGIN},{_ASS_MARGIN},{_ASS_MARGIN_V},-1\n"
            for name, size, position in (
                ("Translation", _ASS_SIZES["Translation"], rules.position),
                ("Source", _ASS_SIZES["Source"], rules.source_position),
            )
        )
        self.header = (
            f"[Script Info]\nScriptType: v4.00+\nPlayResX: {_ASS_WIDTH}\nPlayResY: 1080\nWrapStyle: 0\n"
            "ScaledBorderAndShadow: yes\n\n"
            "[V4+ Styles]\nFormat: Name, Fontname, Fontsize, PrimaryColour, SecondaryColour, OutlineColour, BackColour, "
            "Bold, Italic, Underline, StrikeOut, ScaleX, ScaleY, Spacing, Angle, BorderStyle, Outline, Shadow, "
            f"Alignment, MarginL, MarginR, MarginV, Encoding\n{styles}\n"
            "[Events]\nFormat: Layer, Start, End, Style, Name, MarginL, MarginR, MarginV, Effect, Text\n"
        )
        super().__init__(path, rules, resume=resume)

    def block(self, cue: Cue) -> str:
        text, source = _ass_text(cue.lines, "Translation"), _ass_text(cue.source_lines, "Source")
        if self._rules.position == self._rules.source_position and text and source:
            return self._event(cue, "Translation", rf"{text}\N{{\rSource}}{source}")
        return "".join(self._event(cue, *part) for part in (("Source", source), ("Translation", text)) if part[1])

    @staticmethod
    def _event(cue: Cue, style: str, text: str) -> str:
        return f"Dialogue: 0,{_centiseconds(cue.start_s)},{_centiseconds(cue.end_s)},{style},,0,0,0,,{text}\n"


def _ass_text(lines: Lines, style: str) -> str:
    """The lines of one language, smaller than the style's size if they would not fit into the picture."""
    text = r"\N".join(escapes.ass(line) for line in directed(lines))
    size = font_size(lines, _ASS_SIZES[style], _ASS_WIDTH - 2 * _ASS_MARGIN, _ASS_MARGIN_V)
    return text if size == _ASS_SIZES[style] else rf"{{\fs{size}}}{text}"


class TextSink:
    """One translated sentence a line; of two languages, the source on the line below it and then a blank one."""

    def __init__(self, path: Path, rules: SubtitleRules, *, resume: bool = False) -> None:
        self._file = BlockFile(path, resume=resume)
        self._bilingual = rules.bilingual
        self._sentences = SentenceBuilder(bilingual=rules.bilingual)

    def write(self, event: PipelineEvent) -> None:
        self._file.begin()
        if (sentence := self._sentences.push(event)) is not None:
            shown = filter(None, (sentence.text, sentence.source)) if self._bilingual else (sentence.text,)
            self._file.append("\n".join(shown) + ("\n\n" if self._bilingual else "\n"))
        if isinstance(event, EndOfInput):
            self._file.finish()

    def close(self) -> None:
        self._file.close()


_SINKS: dict[str, Callable[..., Sink]] = {
    "srt": SrtSink,
    "vtt": VttSink,
    "ass": AssSink,
    "jsonl": JsonlSink,
    "txt": TextSink,
}
FORMATS = tuple(_SINKS)
"""What subtitles can be written as; also the files' suffixes."""


def sink_makers(rules: SubtitleRules, *, resume: bool = False) -> dict[str, Callable[[Path], Sink]]:
    """For each format, what opens a file of it.

    Args:
        resume: go on with what an interrupted run left; see ``BlockFile``.
    """
    return {kind: partial(sink, rules=rules, resume=resume) for kind, sink in _SINKS.items()}


def _is_output(path: Path) -> bool:
    """Whether standard output is redirected to this file, which two writers would write over each other."""
    try:
        there, ours = path.stat(), os.fstat(1)
    except OSError:
        return False
    return stat.S_ISREG(there.st_mode) and os.path.samestat(there, ours)


def open_sinks(paths: dict[str, Path], source: Path | None, makers: Mapping[str, Callable[[Path], Sink]]) -> list[Sink]:
    """One sink for each kind → path, by ``makers``; if one cannot be opened, those before it are closed.

    Raises:
        UsageError: a file cannot be created, or it is ``source``, the recording, or another sink's.
    """
    taken = {os.path.realpath(source): "the recording"} if source else {}
    if (twice := [kind for kind, path in paths.items() if path == STANDARD_OUTPUT])[1:]:
        raise UsageError(f"{' and '.join(twice)} would both go to standard output; name a file for all but one")
    sinks: list[Sink] = []
    try:
        for kind, path in paths.items():
            if path == STANDARD_OUTPUT:
                sinks.append(makers[kind](path))
                continue
            other = "what standard output goes to" if _is_output(path) else taken.get(os.path.realpath(path))
            if other is not None:
                raise UsageError(f"{path} is {other} too; choose another place for the {kind} file")
            sinks.append(makers[kind](path))
            if path.is_file():  # a device may take several
                taken[os.path.realpath(path)] = f"the file for {kind}"
    except BaseException:
        close_all(sinks)
        raise
    return sinks


def timestamp(seconds: float, mark: str) -> str:
    """HH:MM:SS and milliseconds after ``mark``, rounded to the nearest."""
    milliseconds = round(seconds * 1000)
    minutes, rest = divmod(milliseconds, 60_000)
    return f"{minutes // 60:02}:{minutes % 60:02}:{rest // 1000:02}{mark}{rest % 1000:03}"


def _centiseconds(seconds: float) -> str:
    """H:MM:SS.cc; cut off, not rounded, so that gaps stay."""
    hundredths = int(seconds * 1000 + 0.5) // 10
    minutes, rest = divmod(hundredths, 6000)
    return f"{minutes // 60}:{minutes % 60:02}:{rest // 100:02}.{rest % 100:02}"
