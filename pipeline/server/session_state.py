"""The state of a session: who speaks, what becomes of audio, when the session ends, and why. Pure: the caller tells the time."""

from __future__ import annotations

from enum import IntEnum

from .limits import ServerLimits
from .protocol import ProtocolError


class Phase(IntEnum):
    """What becomes of audio that comes. A session only goes on to a later phase."""

    OPEN = 0  # it is heard
    SAID = 1  # the speaker has finished: it is refused, and what was heard is still translated
    STOPPED = 2  # the session ends without its speaker, who goes on until it is told: it is left out
    DISCARDED = 3  # it is left out, and what was heard and has no text yet gets none


class SessionState:
    """The state of one session."""

    def __init__(self, limits: ServerLimits, now_s: float) -> None:
        self.phase = Phase.OPEN
        self.over = False  # True: there is no more text
        self.failure: ProtocolError | None = None
        """Why the session ended early."""
        self.gave_way: ProtocolError | None = None
        """Why its speaker alone is told that it ended; readers see an end like any other."""
        self.speaker: object | None = None  # its connection; None while it is away
        self.lost_s: float | None = None  # when the connection was lost; None: it was not, or the speaker has come back
        self.heard_s = now_s  # when audio came last, or none could come
        self._limits, self._began_s = limits, now_s

    @property
    def ending(self) -> bool:
        """Whether no more is said: what was heard is being finished."""
        return self.phase > Phase.OPEN or self.over

    @property
    def has_speaker(self) -> bool:
        """Whether a speaker is connected who has not finished."""
        return self.speaker is not None and not self.ending

    def takes_audio(self, connection: object | None) -> bool:
        """Whether audio is taken that comes by this connection; None: by whichever the client has."""
        is_speakers = connection is None or connection is self.speaker
        return is_speakers and self.phase < Phase.STOPPED and self.failure is None

    def connect(self, connection: object) -> None:
        """The speaker is there, or there again; an earlier connection of it counts as lost."""
        self.speaker, self.lost_s = connection, None

    def disconnect(self, connection: object, now_s: float) -> None:
        """A connection is gone, perhaps an earlier one of the speaker."""
        if self.speaker is connection:
            self.speaker, self.lost_s = None, now_s

    def end(self, phase: Phase, failure: ProtocolError | None = None) -> None:
        """Go on to a phase. Of several failures, the first is told."""
        self.phase, self.failure = max(self.phase, phase), self.failure or failure

    def is_deserted(self, now_s: float) -> bool:
        """Whether the speaker has been away for longer than the session waits for it."""
        return self.lost_s is not None and now_s - self.lost_s > self._limits.resume_s

    def exceeded(self, now_s: float) -> ProtocolError | None:
        """The limit that the session has reached."""
        limits = self._limits
        if now_s - self.heard_s > limits.idle_s:
            return ProtocolError("idle", f"no audio came for {limits.idle_s:.0f} s")
        if now_s - self._began_s > limits.session_s:
            return ProtocolError("too-long", f"a session may last {limits.session_s / 3600:g} hours")
        return None
