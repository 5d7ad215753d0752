"""Finds calls of models that have had no answer for too long. The caller tells the time."""

from __future__ import annotations

from collections.abc import Hashable, Mapping

from ..core import Models, PipelineStats
from .scheduling import ScheduledRecognizer, Scheduler

# The longest time between two looks that counts: a process that was stopped, or has a slow machine, finds no model hung.
_LONGEST_LOOK_S = 1.0
# Whose calls those of a stage are.
_MODELS = {"asr": "recogniser", "nmt": "translator", "vad": "voice detector"}


class Unanswered:
    """Counts for how long each call of one session has been seen without an answer. Pure."""

    def __init__(self, limit_s: float, now_s: float) -> None:
        self.limit_s, self._looked_s = limit_s, now_s
        self._for_s: dict[Hashable, float] = {}

    def look(self, now_s: float, calls: Mapping[Hashable, str]) -> str | None:
        """The stage of a call that has been in progress for the limit; None: there is none.

        Args:
            calls: the stages of those in progress. One that may have had to wait for another has a new key after each answer.
        """
        passed_s, self._looked_s = min(now_s - self._looked_s, _LONGEST_LOOK_S), now_s
        self._for_s = {call: self._for_s[call] + passed_s if call in self._for_s else 0.0 for call in calls}
        return next((calls[call] for call, for_s in self._for_s.items() if for_s >= self.limit_s), None)


class ModelCalls:
    """The calls of one session's models."""

    def __init__(self, stats: PipelineStats, models: Models, scheduler: Scheduler, unanswered: Unanswered) -> None:
        self.given_up: frozenset[int] = frozenset()
        """Those of ``PipelineStats.calls`` in progress when the session was given up."""
        self._stats, self._scheduler, self._unanswered = stats, scheduler, unanswered
        speech = (models.recognizer, models.drafter)
        self._recognizers = [each for each in speech if isinstance(each, ScheduledRecognizer)]

    def hung(self, now_s: float) -> str | None:
        """Why the session has to be given up: a model does not answer; None: they do."""
        waits = any(each.waits for each in self._recognizers)
        stage = self._unanswered.look(now_s, self.in_progress(waits=waits))
        if stage is None and waits and self._scheduler.hung:  # another session has found it
            stage = "asr"
        if stage is None:
            return None
        self.given_up = frozenset(self._stats.calls)
        if stage == "asr":
            self._scheduler.give_up()
        return f"the {_MODELS[stage]} has not answered for {self._unanswered.limit_s:.0f} s"

    def in_progress(self, *, waits: bool) -> dict[Hashable, str]:
        """The stage of each call. One of the recogniser that ``waits`` for others' is another one after each answer."""
        answered = {"asr": self._scheduler.answered} if waits else {}
        return {(number, answered.get(stage)): stage for number, stage in dict(self._stats.calls).items()}
