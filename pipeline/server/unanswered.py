"""Finds calls of models that have had no answer for too long. Pure: the caller tells the time."""

from __future__ import annotations

from collections.abc import Hashable, Mapping

# The longest time between two looks that counts: a process that was stopped, or has a slow machine, finds no model hung.
_LONGEST_LOOK_S = 1.0


class Unanswered:
    """Counts for how long each call of one session has been seen without an answer."""

    def __init__(self, limit_s: float, now_s: float) -> None:
        self._limit_s, self._looked_s = limit_s, now_s
        self._for_s: dict[Hashable, float] = {}

    def look(self, now_s: float, calls: Mapping[Hashable, str]) -> str | None:
        """The stage of a call that has been in progress for the limit; None: there is none.

        Args:
            calls: the stages of those in progress. One that may have had to wait for another has a new key after each answer.
        """
        passed_s, self._looked_s = min(now_s - self._looked_s, _LONGEST_LOOK_S), now_s
        self._for_s = {call: self._for_s[call] + passed_s if call in self._for_s else 0.0 for call in calls}
        return next((calls[call] for call, for_s in self._for_s.items() if for_s >= self._limit_s), None)
