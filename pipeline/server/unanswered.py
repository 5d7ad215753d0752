"""Finds calls of models that have had no answer for too long. The caller tells the time."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import TypeVar

from ..config import PipelineConfig
from ..core import Models, PipelineStats
from .limits import ServerLimits
from .scheduling import ScheduledRecognizer, Scheduler

# The longest time between two looks that counts: a process that was stopped, or has a slow machine, finds no model hung.
_LONGEST_LOOK_S = 1.0
# Whose calls those of a stage are.
_MODELS = {"asr": "recogniser", "nmt": "translator", "vad": "voice detector"}

Call = TypeVar("Call")


class Unanswered:
    """Counts for how long each call of one session has been seen without an answer. Pure."""

    def __init__(self, limit_s: float, now_s: float) -> None:
        self.limit_s, self._looked_s = limit_s, now_s
        self._for_s: dict[Hashable, float] = {}

    def look(self, now_s: float, calls: Mapping[Hashable, Call]) -> Call | None:
        """A call that has been in progress for the limit; None: there is none.

        Args:
            calls: those in progress, by keys. One that may have had to wait for another has a new key after each answer.
        """
        passed_s, self._looked_s = min(now_s - self._looked_s, _LONGEST_LOOK_S), now_s
        self._for_s = {call: self._for_s[call] + passed_s if call in self._for_s else 0.0 for call in calls}
        return next((calls[call] for call, for_s in self._for_s.items() if for_s >= self.limit_s), None)


def longest_call_s(config: PipelineConfig, limits: ServerLimits) -> float:
    """How long a call of a model may take. One of ``nmt.url`` may take its own time, before the local translator is asked."""
    return limits.model_s + (config.nmt.url_timeout_s if config.nmt.url else 0.0)


class ModelCalls:
    """The calls of the models of one session or recording."""

    def __init__(self, stats: PipelineStats, models: Models, scheduler: Scheduler, unanswered: Unanswered) -> None:
        self._given_up: set[int] = set()  # of ``PipelineStats.calls``
        self._stats, self._scheduler, self._unanswered = stats, scheduler, unanswered
        speech = (models.recognizer, models.drafter)
        self._recognizers = [recognizer for recognizer in speech if isinstance(recognizer, ScheduledRecognizer)]

    @property
    def lost(self) -> bool:
        """Whether a call that was given up still has no answer."""
        return not self._given_up.isdisjoint(self._stats.calls)

    def hung(self, now_s: float) -> tuple[str, str] | None:
        """Give up a model that does not answer: why, and the target if it is a translator, else ""; None: they answer."""
        waits = any(recognizer.waits for recognizer in self._recognizers)
        call = self._unanswered.look(now_s, self.in_progress(waits=waits))
        if call is None and waits and self._scheduler.hung:  # another session has found it
            call = "asr", ""
        if call is None:
            return None
        self._given_up |= {number for number, running in dict(self._stats.calls).items() if running == call}
        stage, target = call
        if stage == "asr":
            self._scheduler.give_up()
        into = f" into {target}" if target else ""
        return f"the {_MODELS[stage]}{into} has not answered for {self._unanswered.limit_s:.0f} s", target

    def leave(self) -> bool:
        """Have the recogniser take no more calls; those that wait for it give up. Returns whether any call is in progress."""
        for recognizer in self._recognizers:
            recognizer.left = True
        return bool(self.in_progress(waits=False))

    def in_progress(self, *, waits: bool) -> dict[Hashable, tuple[str, str]]:
        """Each call, without those given up. One of the recogniser that ``waits`` for others' is another one after each answer."""
        answered = {"asr": self._scheduler.answered} if waits else {}
        calls = dict(self._stats.calls).items()
        return {(number, answered.get(call[0])): call for number, call in calls if number not in self._given_up}
