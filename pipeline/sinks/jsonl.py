"""JSON lines: write every event and cue as it comes, and read events back."""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path
from typing import Any

from pipeline.events import Confidence, Delta, EndOfInput, PipelineEvent, Transcript, Word
from pipeline.sinks.sink import BlockFile
from pipeline.subtitles.cues import Cue, CueBuilder
from pipeline.subtitles.rules import SubtitleRules

# JSON allows these in strings, but some line readers take them as line ends.
_LINE_ENDS = {ord(c): f"\\u{ord(c):04x}" for c in "\x85\u2028\u2029"}
_CAPITAL = re.compile(r"(?<=[a-z])(?=[A-Z])")


class JsonlSink:
    """One JSON object per line, with ``type`` transcript, delta, end, a notice's name, or cue.

    A cue follows the event that completed it.
    """

    def __init__(self, path: Path, rules: SubtitleRules, *, resume: bool = False) -> None:
        self._file = BlockFile(path, resume=resume)
        self._resume = resume
        self._cues = CueBuilder(rules)

    def write(self, event: PipelineEvent) -> None:
        cues = self._cues.push(event)
        if isinstance(event, EndOfInput):  # keep the end event last
            self._append_cues(cues)
            self._file.append(line(event))
            self._file.finish()
        else:
            self._file.append(line(event))
            self._append_cues(cues)

    def _append_cues(self, cues: list[Cue]) -> None:
        for cue in cues:
            self._file.append(line(cue))

    def close(self) -> None:
        try:
            if not self._resume:
                self._append_cues(self._cues.flush())
        finally:
            self._file.close()


def line(value: PipelineEvent | Cue, *, exact: bool = False) -> str:
    """The line of an event or a cue.

    Unless ``exact``, numbers are rounded to four decimals: 0.1 ms, and enough for probabilities.
    """
    kind = "end" if isinstance(value, EndOfInput) else _CAPITAL.sub("_", type(value).__name__).lower()
    record = {"type": kind, **_plain(dataclasses.asdict(value), exact)}
    return json.dumps(record, ensure_ascii=False).translate(_LINE_ENDS) + "\n"


def read_event(record: dict[str, Any]) -> Transcript | Delta | None:
    """The transcript or delta of a line written with ``exact``; None for other lines."""
    values = {key: value for key, value in record.items() if key != "type"}
    if record.get("type") == "transcript":
        return Transcript(**values | {"words": tuple(Word(**word) for word in values.get("words", ()))})
    if record.get("type") != "delta":
        return None
    for key in ("sentence_confidence", "segment_confidence"):
        if key in values:
            values[key] = Confidence(**values[key])
    return Delta(**values)


def _plain(value: Any, exact: bool) -> Any:
    if isinstance(value, dict):
        return {key: _plain(inner, exact) for key, inner in value.items() if inner is not None}
    if isinstance(value, list | tuple):
        return [_plain(inner, exact) for inner in value]
    return round(value, 4) if isinstance(value, float) and not exact else value
