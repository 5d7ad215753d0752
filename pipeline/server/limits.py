"""Limits of the server."""

from __future__ import annotations

from dataclasses import dataclass

MOST_SESSIONS = 1_000
"""The largest ``max_sessions`` that may be given, or is chosen."""

MOST_TARGETS = 8
"""Languages into which one session is translated."""

MOST_NAMED_TARGETS = 32
"""Languages that a client may name at once."""


@dataclass(frozen=True, kw_only=True)
class ServerLimits:
    """What one process serves. Times are in seconds, sizes in bytes."""

    max_sessions: int = 4
    """Speakers at the same time; a further one is refused."""
    max_viewers: int = 100
    """Readers of one session."""
    first_message_s: float = 10.0
    """A WebSocket that has not said what it wants by then is closed."""
    resume_s: float = 30.0
    """A session whose connection was lost waits this long for its speaker before it ends."""
    idle_s: float = 300.0
    """A session without audio for this long ends."""
    session_s: float = 8 * 3600.0
    """The longest session."""
    message_bytes: int = 1 << 20
    """The largest WebSocket message: 5 s of 16-bit audio at 96 kHz."""
    messages_a_second: float = 5.0
    """Messages beside audio that are read of one client, over 20 s."""
    backlog_s: float = 30.0
    """Audio that waits in the server for recognition; then the connection is not read until there is room."""
    waiting_events: int = 500
    """Events that may wait for a reader; if more come, it gets the whole text anew."""
    kept_sentences: int = 1000
    """Finished sentences that a reader gets who comes later."""
    corrections_a_minute: int = 60
    """Lines of one session that its speaker corrects."""
    correction_characters: int = 1000
    """The longest corrected line."""
    reader_targets: int = 2
    """Languages into which a session is translated because its readers ask for them."""
    model_s: float = 30.0
    """A recogniser or translator that answers nothing for this long is given up, with the sessions that wait for it."""
    drain_s: float = 30.0
    """How long sessions may take to end when the server is told to stop."""
    connections_a_minute: int = 120
    """New WebSockets, uploads, and requests with a token, of one address (one /64 network with IPv6)."""
    connections_of_address: int = 300
    """Connections of one address at the same time."""
    connections: int = 1000
    """Connections at the same time."""
    request_s: float = 10.0
    """A connection that has sent no complete request for this long is closed."""
    answer_s: float = 60.0
    """An HTTP answer that is not taken for this long ends the connection."""
    closing_s: float = 10.0
    """A connection whose last data are not taken for this long is cut."""
    max_recordings: int = 2
    """Uploaded recordings at the same time."""
    upload_bytes: int = 500 << 20
    """The largest file that is translated."""
    upload_s: float = 600.0
    """The longest time that an upload may take."""
    upload_pace: int = 8_000
    """Bytes a second with which an upload comes at least, after ``request_s``: speech has 3,000 to 32,000."""
    recording_s: float = 4 * 3600.0
    """The longest recording that is translated, in audio."""
    translating_s: float = 4 * 3600.0
    """The longest time that translating a recording may take."""
