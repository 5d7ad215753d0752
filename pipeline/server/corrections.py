"""Which corrections of finished text a session takes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ..events import Correction
from .guard import Rate
from .history import History
from .limits import ServerLimits
from .protocol import ProtocolError, sendable, shown


class Corrections:
    """Checks the corrections of one session."""

    def __init__(self, limits: ServerLimits, clock: Callable[[], float]) -> None:
        self._limits, self._rate = limits, Rate(limits.corrections_a_minute, clock)

    def checked(self, wanted: Correction, history: History) -> Correction:
        """The correction with its text in one line.

        Raises:
            ProtocolError: there is no such text, or no longer; the new one is empty or too long; or there are too many.
        """
        text, most = " ".join(sendable(wanted.text).split()), self._limits.correction_characters
        if not 0 < len(text) <= most:
            raise ProtocolError("bad-correction", f"the line has {len(text)} characters; it must have 1 to {most}")
        if not history.takes(wanted):
            language = f" in {shown(wanted.language)}" if wanted.language else ""
            raise ProtocolError(
                "no-line",
                f"sentence {shown(wanted.sentence)} has no finished text{language} here; it may be among the older ones, of "
                f"which only the last {self._limits.kept_sentences} are kept",
            )
        if not self._rate.allows(""):
            a_minute = self._limits.corrections_a_minute
            raise ProtocolError("too-many", f"{a_minute} lines were corrected in a minute; wait before the next")
        return replace(wanted, text=text)
