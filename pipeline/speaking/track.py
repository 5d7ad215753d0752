"""Writes speech to a WAV file, at the times of the stream: a track for a recording, or for a machine without a device."""

from __future__ import annotations

import math
import os
import wave
from collections.abc import Sequence
from pathlib import Path

from ..core import PipelineEvent, Translation
from ..errors import SinkError
from ..media import open_locked
from .speaker import UtteranceQueue, log, said_of_skipped, spoken
from .voice import Voice


class SpokenTrack:
    """Each sentence begins when all of it had been heard, or after the one before; see ``Waiting``.

    The clock is the stream's, so that a file is the same at whatever speed it was made. It is valid after each sentence.
    """

    def __init__(self, voice: Voice, path: Path, languages: Sequence[str]) -> None:
        """``languages``: the one that is spoken. Raises UsageError: the file cannot be written."""
        self.path, self._voice, (self._language,) = path, voice, languages
        descriptor, self._created = open_locked(path, os.O_WRONLY)
        self._file = os.fdopen(descriptor, "wb")
        self._wav: wave.Wave_write | None = None
        self._waiting = UtteranceQueue(self._language)

    @property
    def _end_s(self) -> float:
        return self._wav.tell() / self._voice.rate if self._wav is not None else 0.0

    def write(self, event: PipelineEvent) -> None:
        if isinstance(event, Translation) and event.language == self._language and event.text:
            self._speak(event.heard_s)
            self._waiting.add(event.text, event.heard_s)

    def close(self) -> None:
        """Speak what waits, and close the file; remove it if it was created and nothing was spoken. Idempotent."""
        if self._file.closed:
            return
        with self._file:
            try:
                self._speak(math.inf)
            finally:
                if self._wav is not None:
                    self._wav.close()
                elif self._created:
                    self.path.unlink(missing_ok=True)

    def _speak(self, now_s: float) -> None:
        """Speak what begins before ``now_s``."""
        while self._waiting and (start_s := max(self._end_s, self._waiting.since)) < now_s:
            utterance, speed, skipped = self._waiting.take()
            if skipped:
                log.warning("%s", said_of_skipped(skipped))
            samples = spoken(self._voice, utterance, speed)
            try:
                if self._wav is None:
                    os.ftruncate(self._file.fileno(), 0)
                    self._wav = wave.Wave_write(self._file)
                    self._wav.setparams((1, 2, self._voice.rate, 0, "NONE", ""))
                silence = round((max(start_s, utterance.since) - self._end_s) * self._voice.rate)
                for begin in range(0, silence, self._voice.rate):  # of hours, perhaps: one second at a time
                    self._wav.writeframesraw(bytes(2 * min(self._voice.rate, silence - begin)))
                self._wav.writeframes(samples.tobytes())
                self._file.flush()
            except OSError as error:
                raise SinkError(
                    f"cannot write {self.path} ({error.strerror}); it ends with the last whole sentence"
                ) from error
