"""Latency logs: sinks whose files other latency scorers read.

A log has either the displayed text, drafts included, or only the final text. Displayed text is timed by its last
display: text that was withdrawn and shown again counts from then, as simulstream counts it. The formats can only change the
end of the text, so what a draft says of the next sentence is logged when the sentence before is finished.

``.jsonl`` is simulstream's format, one line per change as it comes; OmniSTEval reads it too. Tokens are logged as
appended, with "▁" for a space, so simulstream's readers need ``detokenizer_type: simuleval`` and ``latency_unit: spm``.
``.log`` is SimulEval's ``instances.log``, one line per recording, written at its end.
(https://github.com/hlt-mt/simulstream, https://github.com/facebookresearch/SimulEval, https://github.com/pe-trik/OmniSTEval)
"""

from __future__ import annotations

import json
import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ...core import EndOfInput, PipelineEvent, SourceSentence, SourceText, TargetText, Translation, TranslationLost
from ...errors import UsageError
from ...languages import same_language
from ..latency.emissions import AppliedState, Emission, TextSoFar, Unit
from .block_file import BlockFile

log = logging.getLogger(__name__)

Clock = Callable[[], float]
"""Returns wall-clock seconds since the stream began."""
# Text this much earlier than its audio did not come from a live stream. A chunk is 0.1 s.
_EARLY_S = 0.2


class LatencyLog(ABC):
    """A sink that logs when each piece of text came. ``start`` names the stream of the following events."""

    at_end = False
    """Whether a stream is logged at its end, and its text kept until then."""

    def __init__(self, path: Path, unit: Unit, language: str | None = None, *, final: bool = False) -> None:
        """Open the file.

        Args:
            language: whose translations are logged; None: the only one of the stream.
            final: log only final text.
        """
        self._file = BlockFile(path)
        self._unit, self._language = unit, language
        self._only_final = final
        self._streams = -1
        self._early = False

    def start(self, name: str, clock: Clock, reference: str = "") -> None:
        """Begin the stream ``name``, whose reference translation is ``reference``."""
        self._streams += 1
        self._name, self._clock, self._reference = name, clock, reference
        self._text = TextSoFar(self._unit)
        self._unfinished: set[int] = set()  # sentences of which a translation is expected
        self._untranslated: set[int] = set()  # those of them that ended in the language translated into
        self._heard_s = 0.0  # the audio heard for the newest text
        self._over = False
        self._lost = False  # whether the translation has failed
        self._waiting: dict[int, TargetText] = {}  # drafts of the sentence after an unfinished one, by sentence

    def write(self, event: PipelineEvent) -> None:
        if isinstance(event, TargetText | Translation) and self._language not in (None, event.language):
            return
        match event:
            case SourceText() if not self._lost:
                self._unfinished.add(event.sentence)
            case SourceSentence(language=spoken) if self._language and same_language(spoken, self._language):
                self._untranslated.add(event.sentence)
                self._settle(event.sentence)
            case TargetText() if any(number < event.sentence for number in self._unfinished):
                self._waiting[event.sentence] = event
            case TargetText():
                if not self._only_final:
                    self._log(event)
                self._settle(event.sentence)
            case Translation():
                # What is final comes in order: a sentence before that is unfinished has been dropped.
                self._unfinished = {number for number in self._unfinished if number >= event.sentence}
                self._log_waiting(event.sentence)
                if self._only_final:
                    self._log(TargetText(event.sentence, event.language, event.text, heard_s=event.heard_s))
                if not self.at_end:
                    self._text.forget(event.sentence)
                self._untranslated.discard(event.sentence)
                self._finish(event.sentence)
            case TranslationLost(language=lost) if self._language in (None, lost):
                self._lost = True
                self._unfinished.clear()
                self._log_waiting()
            case EndOfInput():
                self._log_waiting()
                self._ended(event.duration_s)
                self._over = True

    def _settle(self, sentence: int) -> None:
        """Finish a sentence in the language translated into, once what a draft said of its translation is withdrawn."""
        if sentence in self._untranslated and not self._text.has(sentence):
            self._untranslated.discard(sentence)
            self._finish(sentence)

    def _finish(self, sentence: int) -> None:
        self._unfinished.discard(sentence)
        self._log_waiting(min(self._unfinished, default=None))

    def _log_waiting(self, last: int | None = None) -> None:
        """Log what waits, of the sentences up to ``last``."""
        for number in sorted(self._waiting):
            if last is None or number <= last:
                text = self._waiting.pop(number)
                if not self._only_final:
                    self._log(text)

    def _log(self, text: TargetText) -> None:
        elapsed_s, self._heard_s = self._clock(), text.heard_s
        self._early |= elapsed_s < text.heard_s - _EARLY_S
        self._received(text, self._text.push(text, elapsed_s), elapsed_s)

    @abstractmethod
    def _received(self, newest: TargetText, change: AppliedState, elapsed_s: float) -> None:
        """Log how the newest text of a sentence changes it."""

    @abstractmethod
    def _ended(self, duration_s: float) -> None:
        """Log the end of the stream."""

    def _line(self, record: dict[str, Any]) -> None:
        self._file.append(json.dumps(record, ensure_ascii=False) + "\n")

    def close(self) -> None:
        """Close the file. A stream that was stopped early is logged up to that point."""
        try:
            if self._streams >= 0:
                self._log_waiting()
                if self.at_end and not self._over and not self._text.empty:
                    self._ended(self._heard_s)
                    self._over = True
        finally:
            self._file.close()
        if self._early:
            log.warning(
                "the audio came faster than real time: wall-clock times in %s are not those of a live stream",
                self._file.path,
            )
            self._early = False


class SimulstreamLog(LatencyLog):
    """One line per change: audio heard, time since then, tokens appended and withdrawn. Memory is bounded.

    ``computation_time`` is the time from hearing the audio to receiving the text, including waiting, so that audio and
    computation add up to the real delay of the text. These times overlap within a segment, so simulstream's real-time
    factor, which adds them up, is meaningless here.
    """

    def start(self, name: str, clock: Clock, reference: str = "") -> None:
        super().start(name, clock, reference)
        self._header: dict[str, Any] | None = {"id": self._streams, "metadata": {"wav_name": name}}

    def _received(self, newest: TargetText, change: AppliedState, elapsed_s: float) -> None:
        appended, withdrawn = ([p for p in pieces if p.text] for pieces in (change.appended, change.withdrawn))
        if withdrawn or appended:
            self._output(newest.heard_s, max(0.0, elapsed_s - newest.heard_s), appended, withdrawn)

    def _ended(self, duration_s: float) -> None:
        self._output(duration_s, 0.0)

    def _output(
        self,
        heard_s: float,
        computation_s: float,
        appended: Sequence[Emission] = (),
        withdrawn: Sequence[Emission] = (),
    ) -> None:
        if self._header:
            self._line(self._header)
            self._header = None
        self._line(
            {
                "id": self._streams,
                "total_audio_processed": round(heard_s, 4),
                "computation_time": round(computation_s, 4),
                "generated_tokens": [_token(piece) for piece in appended],
                "deleted_tokens": [_token(piece) for piece in withdrawn],
            }
        )


def _token(piece: Emission) -> str:
    return f"{piece.gap}{piece.text}".replace(" ", "▁")


class SimulEvalLog(LatencyLog):
    """One line per recording, written at its end. The recording's text is kept in memory until then."""

    at_end = True

    def _received(self, newest: TargetText, change: AppliedState, elapsed_s: float) -> None:
        """Do nothing: the line is written at the end."""

    def _ended(self, duration_s: float) -> None:
        emissions = self._text.emissions()
        self._line(
            {
                "index": self._streams,
                "prediction": (" " if self._unit == "word" else "").join(emission.text for emission in emissions),
                "delays": [round(emission.delay_ms, 1) for emission in emissions],
                "elapsed": [round(emission.elapsed_ms, 1) for emission in emissions],
                "prediction_length": len(emissions),
                "reference": self._reference,
                "source": [self._name],
                "source_length": round(duration_s * 1000, 1),
            }
        )


_FORMATS: dict[str, type[LatencyLog]] = {".jsonl": SimulstreamLog, ".log": SimulEvalLog}


def open_latency_log(path: Path, unit: Unit, language: str | None = None, *, final: bool = False) -> LatencyLog:
    """Open a latency log in the format given by the file's suffix; see ``LatencyLog``."""
    if path.suffix not in _FORMATS:
        raise UsageError(
            f"{path} has no known latency log format; name it ….jsonl for simulstream's format, or instances.log for "
            "SimulEval's"
        )
    return _FORMATS[path.suffix](path, unit, language, final=final)
