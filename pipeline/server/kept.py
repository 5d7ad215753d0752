"""Speech that a client kept until its session existed, and sent at once: when the first of it was spoken."""

from __future__ import annotations

# What was kept comes within this time after the first of it, in seconds, unless it has to wait.
_BURST_S = 2.0
# Then the pace is measured over this time, in seconds of audio a second. Real pace is 1; messages come irregularly.
_PACE_S = 3.0
_SLOWEST, _FASTEST = 0.5, 1.5
# The most that a client keeps: the page gives up after some 50 s.
_MOST_S = 60.0


class KeptSpeech:
    """Tells speech that was kept from a recording that is sent faster than it plays. Pure: the caller tells the time.

    Both begin with more audio than there was time to speak it in. Then speech comes at real pace. A recording comes
    faster, until its sender has to wait; from then on, its pace is that of the recogniser.
    """

    def __init__(self) -> None:
        self._began_s: float | None = None
        self._kept_s = 0.0
        self._window: tuple[float, float] | None = None  # when the measurement of the pace began, and heard_s then
        self._known = False

    def heard(self, now_s: float, heard_s: float, waits: bool) -> float | None:
        """Audio has come, ``heard_s`` seconds in all. ``waits``: too much waits here, so that its sender has to wait.

        Returns:
            When the first of it was spoken, as soon as that is known, and only once; otherwise None.
        """
        if self._known:
            return None
        if self._began_s is None:
            self._began_s = now_s
        self._kept_s = max(self._kept_s, heard_s - (now_s - self._began_s))
        if waits or now_s - self._began_s <= _BURST_S:
            self._window = None
            return None
        since_s, before_s = self._window = self._window or (now_s, heard_s)
        if now_s - since_s < _PACE_S:
            return None
        self._window = now_s, heard_s
        self._known = _SLOWEST <= (heard_s - before_s) / (now_s - since_s) <= _FASTEST and self._kept_s <= _MOST_S
        return self._began_s - self._kept_s if self._known else None
