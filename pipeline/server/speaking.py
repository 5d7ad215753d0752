"""The speech of a session's translations, made once for all who listen in a language, and only while somebody does."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from ..core import PipelineEvent, Samples, TranslationLost
from ..languages import nearest
from ..speaking import Speaker, Voice, at_rate
from .protocol import ProtocolError, shown
from .shares import DISPLACED, displaced

# An utterance is given out so long before the one before it is over.
_AHEAD_S = 0.5
# Utterances that wait for a listener whose network is slow. Older ones are left out: they would be late for ever.
_MOST_WAITING = 3


class Listener:
    """What one listener is to hear next."""

    def __init__(self) -> None:
        self._waiting: deque[bytes] = deque()
        self._skipped = 0
        self._ended = False
        self.failure: ProtocolError | None = None
        """Why this listener hears nothing more, while others go on."""
        self._changed = asyncio.Event()

    def push(self, item: bytes | int | None) -> None:
        """An utterance, a number of sentences that are skipped, or None: nothing follows."""
        if isinstance(item, bytes):
            self._waiting.append(item)
            if len(self._waiting) > _MOST_WAITING:
                self._waiting.popleft()
                self._skipped += 1
        else:
            self._skipped += item or 0
            self._ended |= item is None
        self._changed.set()

    def displace(self) -> None:
        """Give the listener nothing more: another one has its place."""
        self._waiting.clear()
        self._skipped, self.failure = 0, ProtocolError("busy", DISPLACED)
        self.push(None)

    async def take(self) -> bytes | int | None:
        """16-bit mono PCM of one utterance, or how many were skipped before it; None after the last."""
        while not (self._skipped or self._waiting):
            if self._ended:
                return None
            self._changed.clear()
            await self._changed.wait()
        skipped, self._skipped = self._skipped, 0
        return skipped or self._waiting.popleft()


class _Listeners:
    """An ``Output`` that gives speech to listeners, at the pace at which they hear it."""

    def __init__(self, rate: int) -> None:
        self._rate, self._loop = rate, asyncio.get_running_loop()
        self.listeners: dict[Listener, str] = {}  # and their addresses
        self._silent_at = 0.0
        self._closed = threading.Event()

    def play(self, samples: Samples) -> None:
        self.give(at_rate(samples, self._rate, SessionVoices.rate).astype("<i2").tobytes())
        self._silent_at = max(time.monotonic(), self._silent_at) + len(samples) / self._rate
        self._closed.wait(max(0.0, self._silent_at - time.monotonic() - _AHEAD_S))

    def finish(self) -> None:
        self.give(None)

    def close(self) -> None:
        self._closed.set()

    def give(self, item: bytes | int | None) -> None:
        """Called on the speaker's thread."""
        try:
            self._loop.call_soon_threadsafe(self._push, item)
        except RuntimeError:  # the loop has ended
            self._closed.set()

    def _push(self, item: bytes | int | None) -> None:
        for listener in self.listeners:
            listener.push(item)


class SessionVoices:
    """The voices of one session's languages."""

    rate = 24_000
    """Sample rate in Hz of all speech that is sent."""

    def __init__(self, voices: Sequence[Voice], targets: Sequence[str], most: int) -> None:
        """``most``: listeners in each language."""
        self._by_language = {voice.language: voice for voice in voices}
        self._voices: dict[str, Voice] = {}
        for target in targets:
            self.add(target)
        self._speaking: dict[str, tuple[Speaker, _Listeners]] = {}
        self._most, self._ended = most, False

    def add(self, target: str) -> None:
        """The session is translated into this language."""
        if tags := nearest(target, self._by_language):
            self._voices[target] = self._by_language[tags[0]]

    @property
    def languages(self) -> list[str]:
        """Targets that have a voice."""
        return list(self._voices)

    def write(self, event: PipelineEvent) -> None:
        """Speak an event to those who listen. Never waits."""
        for language, (speaker, outputs) in self._speaking.items():
            speaker.write(event)
            if isinstance(event, TranslationLost) and event.language == language:
                for listener in outputs.listeners:
                    reason = f"the translation into {language} has stopped: {event.reason}"
                    listener.failure = ProtocolError("failed", reason)
                speaker.end()  # what waits is still spoken
        if isinstance(event, TranslationLost):
            self._voices.pop(event.language, None)

    def end(self) -> None:
        """No event follows: what waits is still spoken."""
        self._ended = True
        for speaker, _ in self._speaking.values():
            speaker.end()

    @asynccontextmanager
    async def listener(self, language: str, address: str = "") -> AsyncIterator[Listener]:
        """Hears a language from the next finished sentence on.

        Raises:
            ProtocolError: no voice speaks the language in this session, or there are too many listeners.
        """
        if not (tags := nearest(language, self._voices)):
            raise ProtocolError(
                "unknown-target",
                f"no voice speaks {shown(language)} in this session; there is {', '.join(self._voices) or 'none'}",
            )
        target, listener = tags[0], Listener()
        if target not in self._speaking:
            outputs = _Listeners(self._voices[target].rate)
            speaker = Speaker(self._voices[target], target, outputs, lambda texts: outputs.give(len(texts)))
            self._speaking[target] = speaker, outputs
        speaker, outputs = self._speaking[target]
        if (other := displaced(outputs.listeners, address, self._most, "listeners")) is not None:
            del outputs.listeners[other]
            other.displace()
        outputs.listeners[listener] = address
        if self._ended:
            listener.push(None)
        try:
            yield listener
        finally:
            outputs.listeners.pop(listener, None)
            if not outputs.listeners and self._speaking.pop(target, None) is not None:
                await asyncio.to_thread(speaker.close)
