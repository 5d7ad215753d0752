"""Speaks the sentences of one language, on a thread of its own, and never far behind them."""

from __future__ import annotations

import logging
import re
import statistics
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np

from ..core import AppendOnlySentences, PipelineEvent, Samples, TargetText, Translation
from ..errors import DeviceError, PipelineError, one_line
from ..languages import sets_sentences_apart
from ..media import Converter
from .voice import Voice

log = logging.getLogger(__name__)

# Speed while more waits. Faster speech is tiring to follow.
_FASTER = 1.35
# Sentences that wait are spoken as one if they are so short together: some four seconds.
_SHORT, _SHORT_UNSPACED = 60, 20
_MEASURED = 1_000
# A caption of a sound; see ``pipeline.languages.sounds``.
_SOUND = re.compile(r"\[[^\]]*\]")
# A word that is not shown; see ``pipeline.core.captions.masking``.
_MASKED = re.compile(r"\w?\*+")


class Utterance(NamedTuple):
    """Sentences that are spoken together."""

    texts: tuple[str, ...]
    since: float
    """When the first of them was known, in seconds."""


class UtteranceQueue:
    """Sentences that wait to be spoken. Pure.

    When an utterance begins, at most one other waits, and then it is spoken faster: older ones are skipped.
    """

    def __init__(self, language: str) -> None:
        self._short = _SHORT if sets_sentences_apart(language) else _SHORT_UNSPACED
        self._utterances: deque[Utterance] = deque()

    def __bool__(self) -> bool:
        return bool(self._utterances)

    @property
    def since(self) -> float:
        """When the oldest sentence in the queue was known, in seconds."""
        return self._utterances[0].since

    def add(self, text: str, now: float) -> None:
        """Captions of sounds are left out."""
        if _SOUND.fullmatch(text):
            return
        last = self._utterances[-1] if self._utterances else None
        if last is not None and len(text) + sum(map(len, last.texts)) <= self._short:
            self._utterances[-1] = last._replace(texts=(*last.texts, text))
        else:
            self._utterances.append(Utterance((text,), now))

    def take(self) -> tuple[Utterance, float, list[str]]:
        """The utterance that is spoken now, its speed, and the sentences that are skipped before it."""
        skipped: list[str] = []
        while len(self._utterances) > 2:
            skipped += self._utterances.popleft().texts
        return self._utterances.popleft(), _FASTER if self._utterances else 1.0, skipped


def spoken(voice: Voice, utterance: Utterance, speed: float) -> Samples:
    """int16 samples [n] at the voice's rate."""
    return np.concatenate([voice.say(_MASKED.sub("", text), speed) for text in utterance.texts])


def at_rate(samples: Samples, rate: int, wanted_rate: int) -> Samples:
    """Samples [n] of ``rate`` Hz at another rate."""
    converter = Converter(1, rate, wanted_rate)
    return np.concatenate([converter.push(samples.tobytes()), converter.flush()])


def said_of_skipped(texts: list[str]) -> str:
    """The log line for sentences that are skipped."""
    return f"the voice is behind, and does not speak: {' '.join(texts)}"


class Output(Protocol):
    """A device or file that speech goes to. Called on the speaker's thread, but for ``close``."""

    def play(self, samples: Samples) -> None:
        """Play int16 samples [n] at the voice's rate; wait until they are nearly over, or the output is closed.

        Raises:
            DeviceError: they are not heard, or not to their end.
        """

    def finish(self) -> None:
        """Wait until everything is over, or the output is closed."""

    def close(self) -> None:
        """Stop the output at once. Later calls do nothing."""


class Speaker:
    """A sink. Sentences that an output does not take are lost and counted, and the run goes on."""

    def __init__(
        self,
        voice: Voice,
        language: str,
        output: Output,
        skipping: Callable[[list[str]], None] = lambda texts: log.warning("%s", said_of_skipped(texts)),
    ) -> None:
        """``language``: of the translations that are spoken. ``skipping`` is told of sentences that are not."""
        self._voice, self._language, self._output, self._skipping = voice, language, output, skipping
        self.spoken = self.skipped = self.lost = 0
        """Sentences that were spoken, that were left out to keep up, and that the output or the voice failed for."""
        self.lags_s: deque[float] = deque(maxlen=_MEASURED)
        """Seconds from when a sentence is known until its speech is given to the output, for the newest ones."""
        self._sentences, self._waiting = AppendOnlySentences(), UtteranceQueue(language)
        self._failing = self._closing = self._finishing = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._work, name="voice", daemon=True)
        self._thread.start()

    def write(self, event: PipelineEvent) -> None:
        if isinstance(event, TargetText | Translation) and event.language == self._language:
            with self._changed:
                for sentence in self._sentences.push(event):
                    self._waiting.add(sentence.text, time.monotonic())
                self._changed.notify_all()

    def end(self) -> None:
        """Nothing follows: what waits is still spoken, and the output finished."""
        with self._changed:
            self._finishing = True
            self._changed.notify_all()

    def finish(self) -> None:
        """Wait until everything has been spoken."""
        self.end()
        self._thread.join()

    def close(self) -> None:
        """Fall silent at once. Idempotent."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        self._output.close()
        self._thread.join()

    def summary(self) -> str:
        """A line for people; empty if nothing was to be spoken."""
        if not (total := self.spoken + self.skipped + self.lost):
            return ""
        lag = f", {statistics.median(self.lags_s):.2f} s after their text (median)" if self.lags_s else ""
        left_out = f"; {self.skipped} skipped to keep up" if self.skipped else ""
        lost = f"; {self.lost} lost" if self.lost else ""
        differing = self._sentences.differing
        otherwise = f"; {differing} words otherwise than in the final text" if differing else ""
        return f"{self.spoken} of {total} sentences spoken{lag}{left_out}{lost}{otherwise}"

    def _work(self) -> None:
        while (taken := self._next()) is not None:
            utterance, speed, skipped = taken
            if skipped:
                self.skipped += len(skipped)
                self._skipping(skipped)
            try:
                if len(samples := spoken(self._voice, utterance, speed)):
                    self.lags_s.append(time.monotonic() - utterance.since)
                    self._output.play(samples)
                self.spoken += len(utterance.texts)
                if self._failing:
                    log.warning("the voice is heard again; %d sentences were lost", self.lost)
                self._failing = False
            except Exception as error:
                self.lost += len(utterance.texts)
                if not self._failing:
                    log.warning(
                        "a sentence is not heard: %s", one_line(error), exc_info=not isinstance(error, PipelineError)
                    )
                self._failing = True
        if not self._closing:
            try:
                self._output.finish()
            except DeviceError as error:
                log.warning("%s", error)

    def _next(self) -> tuple[Utterance, float, list[str]] | None:
        """Wait for something to speak; None at the end."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._closing or self._finishing)
            return self._waiting.take() if self._waiting and not self._closing else None
