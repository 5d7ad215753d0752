"""What WhisperLiveKit's server sends on its WebSocket ``/asr``, as changes of a text in this project's form. Pure.

Each message has the whole text so far: ``lines``, which the server has committed, and ``buffer_transcription``, a draft
after them. Version 0.2.26 sends these types of message; the last one comes when all audio is recognised::

    {"type": "config", "useAudioWorklet": true, "mode": "full"}
    {"status": "active_transcription", "lines": [{"speaker": 1, "text": " Welcome.", …}], "buffer_transcription": " Please", …}
    {"type": "ready_to_stop"}

A line with the speaker -2 stands for silence. After an error, ``error`` has its text.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from pipeline.bench.shown import Received
from pipeline.errors import PipelineError
from pipeline.events import SourceDelta
from pipeline.sentences.growing import common_length, edit

_SILENCE = -2
_QUOTED = 80  # characters of a message in an error


class PeerError(PipelineError):
    """The peer's server cannot be reached, failed, or sent something else than its protocol has."""


@dataclass(frozen=True)
class Settings:
    """The first message."""

    raw_audio: bool
    """Whether the server takes 16-bit PCM; otherwise it decodes a compressed stream with FFmpeg."""


@dataclass(frozen=True)
class PeerText:
    """The text that the server shows, with single spaces."""

    text: str
    committed: int
    """Length in characters of the beginning that the server has committed."""


@dataclass(frozen=True)
class Finished:
    """All audio is recognised."""


def read_message(raw: str | bytes) -> Settings | PeerText | Finished | None:
    """Read a message; None for one of another type, which has no text.

    Raises:
        PeerError: the server reports an error, or the message is not one of WhisperLiveKit's.
    """
    try:
        message = json.loads(raw)
    except ValueError:  # not JSON, or not UTF-8
        raise _unknown(raw) from None
    if not isinstance(message, dict):
        raise _unknown(raw)
    if message.get("error"):
        raise PeerError(f"the server reports an error: {message['error']}; see its own messages")
    kind = message.get("type")
    if kind == "config":
        return Settings(message.get("useAudioWorklet") is True)
    if kind == "ready_to_stop":
        return Finished()
    if kind is not None:
        return None
    lines, draft = message.get("lines"), message.get("buffer_transcription", "")
    if not isinstance(lines, list) or not isinstance(draft, str):
        raise _unknown(raw)
    # Joined with blanks, as the client for tests that comes with WhisperLiveKit does.
    committed = _single_spaced(" ".join(_line_text(line, raw) for line in lines))
    return PeerText(_single_spaced(f"{committed} {draft}"), len(committed))


def _line_text(line: Any, raw: str | bytes) -> str:
    text = line.get("text") if isinstance(line, dict) else None
    if text is None and isinstance(line, dict) and line.get("speaker") == _SILENCE:
        return ""
    if not isinstance(text, str):
        raise _unknown(raw)
    return text


def _single_spaced(text: str) -> str:
    return " ".join(text.split())


def _unknown(raw: str | bytes) -> PeerError:
    start = raw[:_QUOTED]
    return PeerError(
        f"the server sent {start!r}{'…' if len(raw) > _QUOTED else ''}, which is not a message of WhisperLiveKit 0.2; give "
        "the address of its /asr"
    )


@dataclass(frozen=True)
class PeerState:
    """What the server showed, and the seconds from the first sample until it was received."""

    shown: PeerText
    elapsed_s: float


def as_received(states: Sequence[PeerState], language: str, duration_s: float) -> list[Received]:
    """The changes from state to state, as those of one sentence that covers the whole recording.

    Text counts as committed from when it never changes again, because a server could change its lines. The audio that the
    server had heard is not known: ``heard_s`` is all that had been sent.
    """
    stable = [state.shown.committed for state in states]
    for at in range(len(states) - 2, -1, -1):
        first, second = (state.shown.text[: state.shown.committed] for state in states[at : at + 2])
        kept = len(first) if second.startswith(first) else common_length(first, second)
        stable[at] = min(kept, stable[at + 1])
    found: list[Received] = []
    before, was_committed = "", 0
    for state, committed in zip(states, stable, strict=True):
        withdrawn, text = edit(before, state.shown.text)
        if text or withdrawn or committed != was_committed:
            heard_s = min(state.elapsed_s, duration_s)
            delta = SourceDelta(0, language, text, withdrawn, committed, end_s=heard_s, heard_s=heard_s)
            found.append(Received(delta, state.elapsed_s))
        before, was_committed = state.shown.text, committed
    return found


def taken_back(states: Sequence[PeerState]) -> int:
    """Characters that were committed and changed later."""
    committed = [state.shown.text[: state.shown.committed] for state in states]
    return sum(len(first) - common_length(first, second) for first, second in pairwise(committed) if first != second)
