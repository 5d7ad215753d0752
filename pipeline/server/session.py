"""A session: one speaker's audio through a chain of its own, to the speaker and any number of readers."""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ..core import PipelineEvent, PipelineStats, SourceSentence, SpeechTranslator, unspellable
from ..errors import PipelineError
from ..glossary import Glossary
from .chains import Chain
from .corrections import Corrections
from .feed import Feed, Readers
from .glossary import SessionGlossary
from .intake import Intake, Timing
from .languages.session_targets import SessionTargets
from .limits import ServerLimits
from .operator import Operator
from .protocol import ProtocolError
from .scheduling import Scheduler, scheduled
from .session_record import Record, new_name
from .session_state import Phase, SessionState
from .unanswered import ModelCalls, Unanswered, longest_call_s

if TYPE_CHECKING:
    from .pushes import Turn
    from .speaking import SessionVoices

log = logging.getLogger(__name__)

# How often a session looks at its limits, and whether its speaker still sends.
_WATCH_S = 0.25
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
        self.room, self.sample_rate = room, sample_rate
        self.config, self._models, self._clock = chain.config, chain.models, clock
        self.state = SessionState(limits, clock())
        self.sentences = 0
        self.glossary, masking = SessionGlossary(chain.glossary), chain.masking.fresh()
        self.targets = SessionTargets(self.config.languages, limits)
        models = self._models
        if scheduler is not None:
            models = scheduled(models, scheduler, lambda spoken_s: self._timing.age_s(spoken_s))
        self._translator = SpeechTranslator(
            self.config, models, live=True, glossary=self.glossary, masking=masking, late=self.targets.late
        )
        self.intake = Intake(sample_rate, limits.backlog_s)
        ending_s = self.config.sentences.long_pause_ms / 1000 + _WATCH_S
        self._timing = Timing(self.intake, self.stats, ending_s, clock())
        unanswered = Unanswered(longest_call_s(self.config, limits), clock())
        self.calls = ModelCalls(self.stats, models, scheduler or Scheduler(), unanswered)
        self.readers = Readers(limits, clock)
        self.voices = voices
        self.pushed: Turn | None = None
        """Sends the text elsewhere; None: nowhere."""
        targets = self.config.languages.targets
        self._record = Record(record, self.name, self.config.subtitles, targets) if record else None
        self._telling = asyncio.Lock()
        corrections = Corrections(limits, self.readers.history, masking, clock)
        self.operator = Operator(corrections, self.intake, self._telling, self._tell)
        self._no_more = asyncio.Event()

    @property
    def stats(self) -> PipelineStats:
        return self._translator.stats

    @property
    def recorded(self) -> bool:
        """Whether the session's text is being kept."""
        return self._record is not None and not self._record.failed

    async def run(self) -> None:
        """Translate until the end. Never raises but when cancelled; see ``SessionState.failure``."""
        state = self.state
        try:
            async with self._translator:
                feeding, watching = asyncio.create_task(self._feed()), asyncio.create_task(self._watch())
                try:
                    async for event in self._translator.events():
                        self.sentences += isinstance(event, SourceSentence)
                        async with self._telling:
                            await self._tell(self.operator.speakers.named(event))
                    if state.phase is Phase.DISCARDED:
                        await watching
                finally:
                    watching.cancel()
                    feeding.cancel()
                    await asyncio.gather(feeding, return_exceptions=True)
        except asyncio.CancelledError:
            state.failure = ProtocolError("stopping", "the server stopped before everything heard was translated")
            raise
        except Exception as error:  # let the readers know, and the other sessions go on
            log.error("session %s failed: %s", self.name, error, exc_info=not isinstance(error, PipelineError))
            state.failure = ProtocolError("failed", "the session failed; the server's log says why")
        finally:
            self.intake.end()
            state.over = True
            self._no_more.set()
            self.readers.end()
            if self.voices is not None:
                self.voices.end()
            if self._record is not None:
                await self._record.close()

    async def _tell(self, event: PipelineEvent) -> None:
        if self._record is not None:  # first: what a reader has is in the record
            await self._record.write(event)
        self.readers.push(event)
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
        self.readers.retarget(self.targets.languages.targets)
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
        return self.readers.attach(self.targets.read(language), address)

    def connect(self, connection: object) -> Feed:
        """The speaker is there, or there again, after the last whole sample that it has sent."""
        self.state.connect(connection)
        self.intake.resume()
        return self.readers.attach_speaker(self.state.gave_way)

    def disconnect(self, connection: object, feed: Feed, served: bool = True) -> None:
        """The connection of the speaker is gone. ``served``: see ``Readers.detach``."""
        self.readers.detach(feed, served)
        self.state.disconnect(connection, self._clock())

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
            if not self.state.takes_audio(connection):
                return
            part = data[begin : begin + _PART_BYTES]
            self.intake.push(bytes(len(part)) if self.operator.paused else part)
        if data:
            now_s = self._clock()
            self.state.heard_s = now_s
            self._timing.heard(now_s)
        await self.intake.room()

    def end(self) -> None:
        """The speaker has finished: what was heard is still translated. Idempotent."""
        self._end(Phase.SAID)

    def stop(self) -> None:
        """End the session although its speaker has not finished: what was heard is still translated. Idempotent."""
        self._end(Phase.STOPPED)

    def give_way(self, reason: str) -> None:
        """Another session has the room: end as if the speaker had finished, and tell the speaker why."""
        self.state.gave_way = ProtocolError("room-busy", reason)
        self.readers.fail_speaker(self.state.gave_way)
        self.stop()

    async def discard(self) -> None:
        """End without the text of what was heard and has none yet. Waits for the model's call in progress, which keeps the place."""
        self._end(Phase.DISCARDED)
        await self._no_more.wait()

    def _end(self, phase: Phase, failure: ProtocolError | None = None) -> None:
        self.state.end(phase, failure)
        self.intake.end()

    async def _feed(self) -> None:
        with suppress(PipelineError, ValueError):  # a failed stage, which ``run`` reports, or one that was cancelled
            while (samples := await self.intake.take()) is not None:
                await self._translator.feed(samples)
            await self._translator.end()

    async def _watch(self) -> None:
        while not self.state.over:
            await asyncio.sleep(_WATCH_S)
            now_s = self._clock()
            if not self.intake.ended:
                self._look(now_s)
            if self.state.phase is Phase.DISCARDED:
                await self._translator.cancel()
                self.state.over = not self.calls.leave()
            if (hung := self.calls.hung(now_s)) is not None:
                await self._give_up(*hung)
        await self._translator.cancel()

    def _look(self, now_s: float) -> None:
        """Fill the audio with silence where none comes, and end the session at its limits."""
        state = self.state
        self._timing.fill(now_s, expected=state.lost_s is None)
        if self.intake.holding or self.operator.paused:  # the speaker has to wait, or wants to
            state.heard_s = now_s
        if state.is_deserted(now_s):
            log.info("session %s: its speaker did not come back", self.name)
            self.stop()
        elif (failure := state.exceeded(now_s)) is not None:
            self._end(Phase.STOPPED, failure)

    async def _give_up(self, reason: str, target: str) -> None:
        """Go on without a translator that does not answer. End, as what was heard cannot be translated, if there is no other."""
        log.error("session %s: %s; restart the server", self.name, reason)
        if not target or not await self.targets.late.lose(target, reason):
            self._end(Phase.STOPPED, ProtocolError("failed", f"{reason}; the server has to be restarted"))
            self.state.over = True
