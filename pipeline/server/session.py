"""A session: one speaker's audio through a chain of its own, to the speaker and any number of readers."""

from __future__ import annotations

import asyncio
import logging
import math
import secrets
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ..core import SAMPLE_RATE, PipelineEvent, PipelineStats, SourceSentence, SpeechTranslator, unspellable
from ..errors import PipelineError
from ..glossary import Glossary
from .access import same_secret
from .chains import Chain
from .corrections import Corrections
from .feed import Feed
from .glossary import SessionGlossary
from .history import History
from .intake import BufferedSpeech, Intake, SilentSender
from .languages.session_targets import SessionTargets
from .limits import ServerLimits
from .operator import Operator
from .protocol import ProtocolError
from .scheduling import Scheduler, scheduled
from .session_record import Record, new_name
from .shares import displaced
from .unanswered import ModelCalls, Unanswered

if TYPE_CHECKING:
    from .pushes import Turn
    from .speaking import SessionVoices

log = logging.getLogger(__name__)

# How often a session looks at its limits, and whether its speaker still sends.
_WATCH_S = 0.25
# A stream that is further ahead of real time is a recording. As much may wait (``ServerLimits.backlog_s``), and speech
# that a client buffered is ahead for a few seconds only (``BufferedSpeech``).
_AHEAD_S = 30.0
# What of a message is taken at once: resampling 1 MiB of 8 kHz takes 18 ms of the loop.
_PART_BYTES = 1 << 18


class Session:
    """One speaker and its readers. ``run`` works until the speaker has ended and everything heard is translated.

    A lost connection leaves the session waiting for ``ServerLimits.resume_s``; then it ends as if the speaker had.
    """

    def __init__(
        self,
        chain: Chain,
        limits: ServerLimits,
        sample_rate: int,
        record: Path | None = None,
        clock: Callable[[], float] = time.monotonic,
        room: str | None = None,
        scheduler: Scheduler | None = None,
        voices: SessionVoices | None = None,
    ) -> None:
        """``record``: the folder for the session's record; None: nothing is kept. ``room``: the name of the speaker's room.

        ``scheduler``: of all sessions that use the models.
        """
        self.name = new_name()
        """For the log and the record."""
        self.id = secrets.token_urlsafe(12)
        """Who knows it may read the session's text."""
        self.key = secrets.token_urlsafe(24)
        """Who knows it may go on speaking."""
        self.room = room
        config, models = chain.config, chain.models
        self.config, self.sample_rate = config, sample_rate
        self.intake = Intake(sample_rate, limits.backlog_s)
        self.failure: ProtocolError | None = None
        """Why the session ended early."""
        self.sentences = 0
        self.pushed: Turn | None = None
        """Sends the text elsewhere; None: nowhere."""
        self.voices = voices
        self._limits, self._clock, self._models = limits, clock, models
        self.glossary = SessionGlossary(chain.glossary)
        if scheduler is not None:
            models = scheduled(models, scheduler, self._age_s)
        masking = chain.masking.fresh()
        self.targets = SessionTargets(config.languages, limits)
        self._translator = SpeechTranslator(
            config, models, live=True, glossary=self.glossary, masking=masking, late=self.targets.late
        )
        self._translator.stats.backlog_s = self._backlog_s
        # A call of ``nmt.url`` may take its own time, before the local translator is asked.
        model_s = limits.model_s + (config.nmt.url_timeout_s if config.nmt.url else 0.0)
        self.calls = ModelCalls(self.stats, models, scheduler or Scheduler(), Unanswered(model_s, clock()))
        self._buffered = BufferedSpeech()
        self._silent = SilentSender(config.sentences.long_pause_ms / 1000 + _WATCH_S, clock())
        self._record = Record(record, self.name, config.subtitles, config.languages.targets) if record else None
        self._history = History(limits.kept_sentences)
        self._feeds: set[Feed] = set()
        self._readers: dict[Feed, str] = {}  # without the speaker; and their addresses
        self._telling = asyncio.Lock()
        corrections = Corrections(limits, self._history, masking, clock)
        self.operator = Operator(corrections, self.intake, self._telling, self._tell)
        self._resets = self._confirming = 0  # of readers who have gone; connections that have yet to confirm
        self._all_gone, self._settled, self._no_more = (asyncio.Event() for _ in range(3))
        self._began_s = self._heard_s = clock()
        self._lost_s: float | None = None
        self._missed_s = -math.inf  # when a connection last went without the last text
        self._said = self._stopped = self._discarded = self.over = False  # over: there is no more text
        self._speaker: object | None = None
        self._gave_way: ProtocolError | None = None  # why, as its speaker is told

    @property
    def stats(self) -> PipelineStats:
        return self._translator.stats

    def _backlog_s(self) -> float:
        """Seconds of audio that wait, or were taken and are not fed yet."""
        return max(0.0, self.intake.arrived_s - self.stats.received_samples / SAMPLE_RATE)

    def _age_s(self, spoken_s: float) -> float | None:
        """See ``pipeline.server.scheduling.Age``. Called on the threads of the stages."""
        return None if self.stats.ahead_s - self._silent.ahead_s > _AHEAD_S else self.stats.age_s(spoken_s)

    @property
    def recorded(self) -> bool:
        """Whether the session's text is being kept."""
        return self._record is not None and not self._record.failed

    @property
    def has_speaker(self) -> bool:
        """Whether a speaker is connected who has not finished."""
        return self._speaker is not None and not self.ending

    @property
    def ending(self) -> bool:
        """Whether no more is said: what was heard is being finished."""
        return self._said or self._stopped or self.over

    @property
    def viewers(self) -> int:
        """Readers, without the speaker."""
        return len(self._readers)

    @property
    def resets(self) -> int:
        """How often a reader was too slow, so that it got the whole text anew."""
        return self._resets + sum(feed.resets for feed in self._feeds)

    async def run(self) -> None:
        """Translate until the end. Never raises but when cancelled; see ``failure``."""
        try:
            async with self._translator:
                feeding, watching = asyncio.create_task(self._feed()), asyncio.create_task(self._watch())
                try:
                    async for event in self._translator.events():
                        self.sentences += isinstance(event, SourceSentence)
                        async with self._telling:
                            await self._tell(event)
                    if self._discarded:
                        await watching
                finally:
                    watching.cancel()
                    feeding.cancel()
                    await asyncio.gather(feeding, return_exceptions=True)
        except asyncio.CancelledError:
            self.failure = ProtocolError("stopping", "the server stopped before everything heard was translated")
            raise
        except Exception as error:  # let the readers know, and the other sessions go on
            log.error("session %s failed: %s", self.name, error, exc_info=not isinstance(error, PipelineError))
            self.failure = ProtocolError("failed", "the session failed; the server's log says why")
        finally:
            self.intake.end()
            self.over = True
            self._no_more.set()
            for feed in self._feeds:
                feed.end()
            if self.voices is not None:
                self.voices.end()
            if self._record is not None:
                await self._record.close()

    async def _tell(self, event: PipelineEvent) -> None:
        event = self.operator.speakers.named(event)
        if self._record is not None:  # first: what a reader has is in the record
            await self._record.write(event)
        self._history.push(event)
        for feed in self._feeds:
            feed.push(event)
        if self.voices is not None:
            self.voices.write(event)
        if self.pushed is not None:
            self.pushed.write(event)

    def add_target(self, target: str, chain: Chain, *, by_reader: bool) -> None:
        """Translate into one more language, with the model of ``chain``. Raises ProtocolError: see ``SessionTargets.add``."""
        model = chain.narrowed([target]).models.translations[target]
        if not self.targets.add(target, model, by_reader=by_reader):
            return
        self.config = replace(self.config, languages=self.targets.languages)
        self._models = replace(self._models, translations={**self._models.translations, target: model})
        if self.voices is not None:
            self.voices.add(target)
        for feed in self._feeds:
            feed.retarget(self.targets.languages.targets)
        if self._record is not None:
            self._record.add(target)

    def unspellable(self, glossary: Glossary) -> dict[str, tuple[str, ...]]:
        """The terms that the session's translators cannot write, by target. Takes some milliseconds."""
        return unspellable(glossary, self.config.languages, self._models.translations)

    def attach(self, language: str | None = None, address: str = "") -> Feed:
        """The events for one more reader, beginning with all texts so far. ``language``: see ``Feed``.

        Raises:
            ProtocolError: there are too many readers, or the session does not translate into the language.
        """
        target = self.targets.read(language)
        if (other := displaced(self._readers, address, self._limits.max_viewers, "readers")) is not None:
            del self._readers[other]
            other.displace()
        feed = self._fed(target)
        self._readers[feed] = address
        return feed

    def detach(self, feed: Feed, served: bool = True) -> None:
        """A reader has gone. ``served``: it has all of the session's text, or will not come again."""
        self._readers.pop(feed, None)
        if feed in self._feeds:
            self._feeds.remove(feed)
            self._resets += feed.resets
        if not served:
            self._missed_s = self._clock()
        if not self._feeds:
            self._all_gone.set()

    async def delivered(self, limit_s: float) -> None:
        """Wait until every reader has taken what waits for it and gone, but at most ``limit_s`` seconds."""
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
        """Seconds for which a reader may still come again for the last text."""
        if self._feeds or self._confirming:
            return self._limits.resume_s
        return self._missed_s + self._limits.resume_s - self._clock()

    async def settled(self) -> None:
        """Wait until no reader may come again."""
        while (seconds := self.grace_s) > 0:
            self._settled.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._settled.wait()

    def is_speaker(self, key: str) -> bool:
        """Whether the key is the speaker's. Takes the same time for any wrong key."""
        return same_secret(self.key, key)

    def connect(self, connection: object) -> Feed:
        """The speaker is there, or there again; an earlier connection of it counts as lost."""
        self._speaker, self._lost_s = connection, None
        self.intake.resume()
        return self._fed(None, self._gave_way)

    def _fed(self, language: str | None, failure: ProtocolError | None = None) -> Feed:
        feed = Feed(self._history, language, self._limits.waiting_events)
        feed.failure = failure
        self._feeds.add(feed)
        if self.over:  # the session's last text is still being delivered to others
            feed.end()
        return feed

    def disconnect(self, connection: object, feed: Feed, served: bool = True) -> None:
        """The connection of the speaker is gone. ``served``: see ``detach``."""
        self.detach(feed, served)
        if self._speaker is connection:
            self._speaker, self._lost_s = None, self._clock()

    def is_connected(self, connection: object) -> bool:
        """Whether the speaker uses this connection, and no later one."""
        return self._speaker is connection

    async def hear(self, data: bytes, connection: object | None = None) -> None:
        """Take audio of the speaker: 16-bit little-endian mono PCM. Waits while too much of it waits.

        Audio that comes after ``stop`` or a failure is left out: a speaker goes on until it is told.

        Args:
            connection: that by which it came; if another one takes its place, the speaker sends what is left of it again.

        Raises:
            ProtocolError: see ``Intake.push``.
        """
        for begin in range(0, len(data) or 1, _PART_BYTES):
            if begin:
                await asyncio.sleep(0)
            if self._stopped or self.failure is not None or (connection and not self.is_connected(connection)):
                return
            part = data[begin : begin + _PART_BYTES]
            self.intake.push(bytes(len(part)) if self.operator.paused else part)
        if data:
            self._heard_s = self._clock()
            self._silent.heard(self._heard_s)
            now_s, heard_s = self.stats.clock(), self.intake.arrived_s
            if (spoken_at_s := self._buffered.heard(now_s, heard_s, self.intake.full)) is not None:
                self.stats.spoken_from(spoken_at_s)
        await self.intake.room()

    def end(self) -> None:
        """The speaker has finished: what was heard is still translated. Idempotent."""
        self._said = True
        self.intake.end()

    def stop(self) -> None:
        """End the session although its speaker has not finished: what was heard is still translated. Idempotent."""
        self._stopped = True
        self.intake.end()

    def give_way(self, reason: str) -> None:
        """Another session has the room: end as if the speaker had finished, and tell the speaker why."""
        self._gave_way = ProtocolError("room-busy", reason)
        for feed in self._feeds - self._readers.keys():
            feed.failure = feed.failure or self._gave_way  # a reader's, whose place another one has
        self.stop()

    async def discard(self) -> None:
        """End without the text of what was heard and has none yet. Waits for the model's call in progress, which keeps the place."""
        self.stop()
        self._discarded = True
        await self._no_more.wait()

    async def _feed(self) -> None:
        with suppress(PipelineError, ValueError):  # a failed stage, which ``run`` reports, or one that was cancelled
            while (samples := await self.intake.take()) is not None:
                await self._translator.feed(samples)
            await self._translator.end()

    async def _watch(self) -> None:
        while not self.over:
            await asyncio.sleep(_WATCH_S)
            now_s = self._clock()
            if not self.intake.ended:
                self._look(now_s)
            if self._discarded:
                await self._translator.cancel()
                self.over = not self.calls.leave()
            if (hung := self.calls.hung(now_s)) is not None:
                await self._give_up(*hung)
        await self._translator.cancel()

    async def _give_up(self, reason: str, target: str) -> None:
        """Go on without a translator that does not answer. End, as what was heard cannot be translated, if there is no other."""
        log.error("session %s: %s; restart the server", self.name, reason)
        if not target or not await self.targets.late.lose(target, reason):
            self._stop("failed", f"{reason}; the server has to be restarted")
            self.over = True

    def _look(self, now_s: float) -> None:
        """Fill the audio with silence where none comes, and end the session at its limits."""
        limits = self._limits
        if self._lost_s is not None or self.intake.full or not self.intake.arrived_s:
            self._silent.heard(now_s)
        self.intake.fill(self._silent.due_s(now_s, self.stats.stream_s - self.intake.arrived_s))
        if self.intake.holding or self.operator.paused:  # the speaker has to wait, or wants to
            self._heard_s = now_s
        if self._lost_s is not None and now_s - self._lost_s > limits.resume_s:
            log.info("session %s: its speaker did not come back", self.name)
            self.stop()
        elif now_s - self._heard_s > limits.idle_s:
            self._stop("idle", f"no audio came for {limits.idle_s:.0f} s")
        elif now_s - self._began_s > limits.session_s:
            self._stop("too-long", f"a session may last {limits.session_s / 3600:g} hours")

    def _stop(self, code: str, message: str) -> None:
        if self.failure is None:
            self.failure = ProtocolError(code, message)
        self.stop()
