"""The readers of a session, and the events that wait for each: the newest state counts, and a slow reader holds nobody back."""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass

from ..core import PipelineEvent, SourceSentence, State, Translation, key, place_of
from .history import History, concerns
from .limits import ServerLimits
from .protocol import ProtocolError
from .shares import DISPLACED, displaced


@dataclass(frozen=True)
class Snapshot:
    """All texts of the session as they are now: a reader that has any of these sentences replaces them."""

    events: tuple[PipelineEvent, ...]


@dataclass(frozen=True)
class Targets:
    """The languages into which the session is translated from now on."""

    languages: tuple[str, ...]


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
        while not self.waiting:
            self._changed.clear()
            await self._changed.wait()
        if self._targets:
            targets, self._targets = Targets(self._targets), ()
            return targets
        if self._anew:
            self._anew = False
            return Snapshot(tuple(self._history.events(self.language)))
        return self._waiting.popleft() if self._waiting else None

    async def news(self) -> AsyncIterator[PipelineEvent]:
        """All events for a reader that takes nothing back: a snapshot has texts that were final before it."""
        final: dict[str, int] = {}  # language, "" for the source → its last sentence whose text is final
        while (item := await self.take()) is not None:
            for event in item.events if isinstance(item, Snapshot) else () if isinstance(item, Targets) else (item,):
                if isinstance(event, State):
                    number, language = key(event)
                    if number <= final.get(language, -1):
                        continue
                    if isinstance(event, SourceSentence | Translation):
                        final[language] = number
                yield event


class Readers:
    """The feeds of one session. Each reader has one of a limited number of places; the speaker needs none."""

    def __init__(self, limits: ServerLimits, clock: Callable[[], float]) -> None:
        self.history = History(limits.kept_sentences)
        self._limits, self._clock = limits, clock
        self._feeds: set[Feed] = set()
        self._places: dict[Feed, str] = {}  # without the speaker; and the addresses of those who have one
        self._resets = self._confirming = 0  # of feeds that are gone; connections that have yet to confirm
        self._missed_s = -math.inf  # when a connection last went without the last text
        self._over = False
        self._all_gone, self._settled = asyncio.Event(), asyncio.Event()

    @property
    def count(self) -> int:
        """Readers, without the speaker."""
        return len(self._places)

    @property
    def resets(self) -> int:
        """How often a reader was too slow, so that it got the whole text anew."""
        return self._resets + sum(feed.resets for feed in self._feeds)

    def attach(self, target: str | None, address: str = "") -> Feed:
        """A feed for one more reader, beginning with all texts so far. ``target``: see ``Feed``.

        Raises:
            ProtocolError: there are too many readers.
        """
        if (loser := displaced(self._places, address, self._limits.max_viewers, "readers")) is not None:
            del self._places[loser]
            loser.displace()
        feed = self.attach_speaker(target=target)
        self._places[feed] = address
        return feed

    def attach_speaker(self, failure: ProtocolError | None = None, target: str | None = None) -> Feed:
        """A feed without a place among the readers. ``failure``: what is told at its end."""
        feed = Feed(self.history, target, self._limits.waiting_events)
        feed.failure = failure
        self._feeds.add(feed)
        if self._over:  # the last text is still being delivered to others
            feed.end()
        return feed

    def detach(self, feed: Feed, served: bool = True) -> None:
        """Whoever had the feed is gone. ``served``: it has all of the session's text, or will not come again."""
        self._places.pop(feed, None)
        if feed in self._feeds:
            self._feeds.remove(feed)
            self._resets += feed.resets
        if not served:
            self._missed_s = self._clock()
        if not self._feeds:
            self._all_gone.set()

    def push(self, event: PipelineEvent) -> None:
        """Tell all an event."""
        self.history.push(event)
        for feed in self._feeds:
            feed.push(event)

    def retarget(self, targets: tuple[str, ...]) -> None:
        """Tell all the languages into which the session is translated from now on."""
        for feed in self._feeds:
            feed.retarget(targets)

    def fail_speaker(self, failure: ProtocolError) -> None:
        """Tell the speaker alone why the session ends."""
        for feed in self._feeds - self._places.keys():
            feed.failure = feed.failure or failure  # a reader that lost its place has one

    def end(self) -> None:
        """No event follows."""
        self._over = True
        for feed in self._feeds:
            feed.end()

    async def delivered(self, limit_s: float) -> None:
        """Wait until all have taken what waits for them and gone, but at most ``limit_s`` seconds."""
        if self._feeds:
            self._all_gone.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(limit_s):
                    await self._all_gone.wait()

    async def confirm(self, answer: Awaitable[bool]) -> None:
        """Wait for the answer whether a reader, who is detached, has got everything; if not, it may come again."""
        self._confirming += 1
        confirmed = False
        try:
            confirmed = await answer
        finally:
            self._confirming -= 1
            if not confirmed:
                self._missed_s = self._clock()
            self._settled.set()

    @property
    def grace_s(self) -> float:
        """Seconds for which somebody may still come again for the last text."""
        if self._feeds or self._confirming:
            return self._limits.resume_s
        return self._missed_s + self._limits.resume_s - self._clock()

    async def settled(self) -> None:
        """Wait until nobody may come again."""
        while (seconds := self.grace_s) > 0:
            self._settled.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._settled.wait()
