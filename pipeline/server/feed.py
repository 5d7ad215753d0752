"""The events that wait for one reader of a session: the newest state counts, and a slow reader holds nobody back."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

from ..core import PipelineEvent, SourceSentence, State, Translation, key, place_of
from .history import History, concerns
from .protocol import ProtocolError
from .shares import DISPLACED


@dataclass(frozen=True)
class Snapshot:
    """All texts of the session as they are now: a reader that has any of these sentences replaces them."""

    events: tuple[PipelineEvent, ...]


@dataclass(frozen=True)
class Targets:
    """The languages into which the session is translated from now on."""

    languages: tuple[str, ...]


class News:
    """What a reader that takes nothing back is told of a feed: a snapshot has texts that were final before it."""

    def __init__(self) -> None:
        self._final: dict[str, int] = {}
        """The last sentence whose text is final, by language, "" for the source."""

    def of(self, item: PipelineEvent | Snapshot | Targets) -> Iterator[PipelineEvent]:
        """The events of an item, without final texts and what came before them."""
        for event in item.events if isinstance(item, Snapshot) else () if isinstance(item, Targets) else (item,):
            if isinstance(event, State):
                number, language = key(event)
                if number <= self._final.get(language, -1):
                    continue
                if isinstance(event, SourceSentence | Translation):
                    self._final[language] = number
            yield event


class Feed:
    """What a reader is to be told next. A newer state of a text takes the place of one that waits.

    If too many events wait, or if the reader is new, it gets a ``Snapshot`` instead.
    """

    def __init__(self, history: History, language: str | None, capacity: int) -> None:
        """``language``: the only one whose translations the reader wants; None: all."""
        self.language = language
        self.resets = 0
        """How often the reader was too slow, so that it gets the whole text anew."""
        self._history, self._capacity = history, capacity
        self._waiting: deque[PipelineEvent] = deque()
        self._targets: tuple[str, ...] = ()
        self._anew = True
        self._ended = False
        self.failure: ProtocolError | None = None
        """Why this reader gets nothing more, while others go on."""
        self._changed = asyncio.Event()
        self._changed.set()

    def push(self, event: PipelineEvent) -> None:
        """Take an event that ``history`` has too."""
        if self._anew or self._ended or not concerns(event, self.language):
            return
        if (at := place_of(event, reversed(self._waiting))) is not None:
            self._waiting[at] = event
            return
        self._waiting.append(event)
        if len(self._waiting) > self._capacity:
            self.resets += 1
            self.begin_anew()
        self._changed.set()

    def retarget(self, languages: tuple[str, ...]) -> None:
        """Tell the reader the session's targets before the next event."""
        self._targets = languages
        self._changed.set()

    def begin_anew(self) -> None:
        """Tell the reader all texts as they are when it next takes something."""
        self._waiting.clear()
        self._anew = True
        self._changed.set()

    def end(self) -> None:
        """No event follows."""
        self._ended = True
        self._changed.set()

    def displace(self) -> None:
        """Tell the reader nothing more: another one has its place."""
        self._waiting.clear()
        self._anew, self._targets, self.failure = False, (), ProtocolError("busy", DISPLACED)
        self.end()

    @property
    def waiting(self) -> bool:
        """Whether ``take`` returns at once."""
        return self._anew or bool(self._waiting) or bool(self._targets) or self._ended

    async def take(self) -> PipelineEvent | Snapshot | Targets | None:
        """The next event, as soon as there is one; None after the last."""
        while True:
            if self._targets:
                found, self._targets = Targets(self._targets), ()
                return found
            if self._anew:
                self._anew = False
                return Snapshot(tuple(self._history.events(self.language)))
            if self._waiting:
                return self._waiting.popleft()
            if self._ended:
                return None
            self._changed.clear()
            await self._changed.wait()
