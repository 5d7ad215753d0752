"""JSON lines: write every event and cue as it comes, and read events back. docs/events.md describes the lines."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from ...core import (
    Change,
    ChangeEvent,
    Changes,
    Confidence,
    Correction,
    EndOfInput,
    MissingSpeech,
    PipelineEvent,
    SourceSentence,
    Transcript,
    Translation,
    Word,
)
from ..subtitles.rules import SubtitleRules

if TYPE_CHECKING:
    from ..subtitles.cues import Cue

VERSION = 4
"""Version of the lines. 1, without a header, had one text per segment; 2 had `committed` in the place of `steady`; 3 was not used."""
_HEADER = json.dumps({"type": "events", "version": VERSION}) + "\n"

Text = Transcript | SourceSentence | Translation | Correction | Change
"""The events that ``read_event`` returns; other lines have none."""

# JSON allows these in strings, but some line readers take them as line ends.
_LINE_ENDS = {ord(c): f"\\u{ord(c):04x}" for c in "\x85\u2028\u2029"}
_CAPITAL = re.compile(r"(?<=[a-z])(?=[A-Z])")


class JsonlSink:
    """A header, then one JSON object per line: the events, and each cue after the event that completed it."""

    def __init__(
        self, path: Path, rules: SubtitleRules, *, resume: bool = False, languages: Sequence[str] = ()
    ) -> None:
        """``languages``: those translated into; by default, the only one of the stream."""
        from ..subtitles.cues import CueBuilder  # as below: the server writes lines, and no file
        from .block_file import BlockFile

        self._file = BlockFile(path, _HEADER, resume=resume)
        self._resume, self._changes = resume, Changes()
        self._cues = [CueBuilder(rules, language) for language in languages or (None,)]

    def write(self, event: PipelineEvent) -> None:
        cues = [cue for builder in self._cues for cue in builder.push(event)]
        change = self._changes.push(event)
        if isinstance(change, EndOfInput):  # keep the end event last
            self._append_cues(cues)
            self._file.append(line(change))
            self._file.finish()
        else:
            self._file.append(line(change))
            self._append_cues(cues)

    def _append_cues(self, cues: list[Cue]) -> None:
        for cue in cues:
            self._file.append(line(cue))

    def close(self) -> None:
        try:
            if not self._resume:
                self._append_cues([cue for builder in self._cues for cue in builder.flush()])
        finally:
            self._file.close()


def _kind(event: type) -> str:
    return _CAPITAL.sub("_", event.__name__).lower()


_KINDS: dict[str, type[Text]] = {_kind(event): event for event in get_args(Text)}
_READ: dict[str, Callable[[Any], Any]] = {
    "words": lambda words: tuple(Word(**word) for word in words),
    "missing": lambda missing: tuple(MissingSpeech(**each) for each in missing),
    "confidence": lambda given: Confidence(**given) if given else given,
    "terms": tuple,
    "missed_terms": tuple,
    "turns": tuple,
}


def line(value: ChangeEvent | Cue, *, exact: bool = False) -> str:
    """The line of an event or a cue. Values equal to their defaults are left out.

    Unless ``exact``, numbers are rounded to four decimals: 0.1 ms, and enough for probabilities; and the words of a
    transcript are left out, because those of its sentences follow.
    """
    kind = "end" if isinstance(value, EndOfInput) else _kind(type(value))
    if isinstance(value, Transcript) and not exact:
        value = dataclasses.replace(value, words=(), turns=())
    record = {"type": kind, **_plain(value, exact)}
    return json.dumps(record, ensure_ascii=False).translate(_LINE_ENDS) + "\n"


def read_event(record: dict[str, Any]) -> Text | None:
    """The event of a line, if it is one of text; None for other lines. Its numbers are those of the line, rounded or exact."""
    if (kind := _KINDS.get(str(record.get("type")))) is None:
        return None
    return kind(**{key: _READ[key](value) if key in _READ else value for key, value in record.items() if key != "type"})


def _plain(value: Any, exact: bool) -> Any:
    if dataclasses.is_dataclass(value):
        fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        defaults = {field.name: field.default for field in dataclasses.fields(value)}
        return {key: _plain(inner, exact) for key, inner in fields.items() if inner != defaults[key]}
    if isinstance(value, list | tuple):
        return [_plain(inner, exact) for inner in value]
    return round(value, 4) if isinstance(value, float) and not exact else value
