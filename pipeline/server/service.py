"""The sessions of a server, its capacity, and its end."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..config import PipelineConfig
from ..core import Models
from ..glossary import Glossary
from ..languages import nearest, normalized_code
from .capacity import calls_at_once
from .chains import Chain, chain_of
from .languages.offers import Offers, Preparation
from .languages.served import ServedLanguages
from .limits import ServerLimits
from .protocol import ProtocolError, Start, room_name
from .scheduling import Scheduler, scheduled
from .session import Session
from .session_index import ServerPlaces, SessionIndex

if TYPE_CHECKING:
    from ..core import AddSpeakers
    from ..glossary import Candidate
    from .directory import Directory
    from .pushes import Pushes
    from .speaking import SessionVoices

log = logging.getLogger(__name__)

# How long readers may take to receive the last text of a session.
_DELIVER_S = 10.0


@dataclass
class Totals:
    """What sessions have done, added up."""

    sessions: int = 0
    busy_s: Counter[str] = field(default_factory=Counter)
    """Working time of each stage, in seconds."""
    audio_s: float = 0.0
    """Seconds of audio taken."""
    resets: int = 0
    """How often a reader was too slow, so that it got the whole text anew."""

    def add(self, session: Session) -> None:
        """Count one more session."""
        self.sessions += 1
        self.busy_s.update(session.stats.busy_s)
        self.audio_s += session.stats.audio_s
        self.resets += session.readers.resets


class Service:
    """Starts sessions and ends them. Knows nothing of connections."""

    def __init__(
        self,
        config: PipelineConfig,
        models: Models,
        limits: ServerLimits | None = None,
        record: Path | None = None,
        others: Sequence[tuple[PipelineConfig, Models]] = (),
        offers: Offers | None = None,
        pushes: Pushes | None = None,
        voices: Callable[[Sequence[str]], SessionVoices] | None = None,
    ) -> None:
        """``models`` are shared by all sessions; a scheduler shares out recognition.

        Args:
            record: the folder for the sessions' records; None: nothing is kept of a session after it.
            others: further configurations that clients can choose by their languages; see ``load_shared``.
            offers: languages beyond these; None: there are none.
            pushes: where text is sent besides; None: nowhere.
            voices: those for a session's targets; None: there are none.

        Raises:
            UsageError: see ``ServedLanguages``.
            ConfigError: a glossary or a list of masked words has mistakes.
        """
        # Have the tables of languages read now; later, they would hold the loop for 0.2 s.
        nearest(normalized_code("English"), ("en-GB", "en-US"))
        self.languages = ServedLanguages((config.languages, *(other.languages for other, _ in others)))
        self.limits, self.record, self.offers = limits or ServerLimits(), record, offers
        self.index = SessionIndex()
        self.sessions, self.rooms = self.index.in_progress, self.index.rooms
        self.places = ServerPlaces(self.limits, self.sessions)
        self.ended = Totals()
        self.directory: Directory | None = None  # with which this server shares out rooms
        self.proposals: Sequence[Candidate] = ()  # terms for all speakers
        self.speakers: Callable[[], AddSpeakers | None] | None = None
        """Loads the model that tells voices apart in the sessions that ask for it; None: none may."""
        self._chains = [chain_of(*configured) for configured in ((config, models), *others)]
        self.scheduler = Scheduler(calls_at_once(chain.models.recognizer for chain in self._chains))
        self.subtitles = config.subtitles
        """The layout of what its pages let people download."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._keeping: set[asyncio.Task[None]] = set()
        self._pushes, self._voices = pushes, voices

    def totals(self) -> Totals:
        """What all sessions have done, those in progress too."""
        totals = replace(self.ended, busy_s=self.ended.busy_s.copy())
        for session in self.sessions.values():
            totals.add(session)
        return totals

    def start(self, wanted: Start, glossary: Glossary | None = None, voices: AddSpeakers | None = None) -> Session:
        """Begin a session. ``glossary``: that of the message, if it has one. ``voices``: tells its speakers apart.

        Raises:
            ProtocolError: the server is full or stopping, it does not know the languages, or its speaker speaks in another
                session in the same room.
        """
        try:
            self.places.check()
            chain = self.chosen(wanted.source, wanted.targets).narrowed(wanted.targets).telling_speakers(voices)
            room = self.index.enter(room_name(wanted.room_key)) if wanted.room_key else None
        except ProtocolError as error:
            self.places.refused[error.code] += 1
            raise
        spoken = self._voices(chain.config.languages.targets) if self._voices is not None else None
        rate, scheduler = wanted.sample_rate, self.scheduler
        session = Session(chain, self.limits, rate, self.record, room=room, scheduler=scheduler, voices=spoken)
        if glossary is not None:
            session.glossary.replace(glossary)
        self.index.begin(session)
        self._start_task(self._run(session), self._tasks)
        return session

    def _start_task(self, work: Coroutine[Any, Any, None], tasks: set[asyncio.Task[None]]) -> None:
        """Run ``work``, and have the task among ``tasks`` until it ends."""
        task = asyncio.create_task(work)
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    def chosen(self, source: str | None, targets: Sequence[str]) -> Chain:
        """The chain that recognises ``source`` and translates into ``targets``: configured, or prepared and still in use.

        Raises:
            ProtocolError: there is none; see ``ServedLanguages.find``.
        """
        try:
            return self._chains[self.languages.find(source, targets)]
        except ProtocolError:
            if self.offers is not None and (chain := self.offers.prepared(source, targets)) is not None:
                return chain
            raise

    def prepare(self, source: str | None, targets: Sequence[str], *, fetch: bool = True) -> Preparation | None:
        """Begin to prepare languages that no configuration has; None if one has them. Who asks holds the result's chain.

        Raises:
            ProtocolError: these languages are not offered, or too many are being prepared.
        """
        try:
            self.languages.find(source, targets)
        except ProtocolError as error:
            if self.offers is not None:
                return self.offers.prepare(source, targets, fetch=fetch)
            self.places.refused[error.code] += 1
            raise
        return None

    async def obtained(
        self,
        source: str | None,
        targets: Sequence[str],
        told: Callable[[str, float], Awaitable[None]] | None = None,
        *,
        fetch: bool = True,
    ) -> Chain:
        """The chain for these languages, which is prepared if no configuration has them.

        Args:
            told: is called with the steps of the preparation; see ``Preparation.steps``.
            fetch: whether who asks may have models fetched.

        Raises:
            ProtocolError: see ``prepare`` and ``Preparation.chain``.
        """
        preparation = self.prepare(source, targets, fetch=fetch)
        if preparation is None:
            return self.chosen(source, targets)
        async for step in preparation.steps():
            if told is not None:
                await told(*step)
        return await preparation.chain()

    async def add_target(
        self,
        session: Session,
        language: str,
        told: Callable[[str, float], Awaitable[None]] | None = None,
        *,
        by_reader: bool = False,
        fetch: bool = True,
    ) -> bool:
        """Translate a session into one more language, and what was said before; see ``obtained``. False: it has it already.

        Raises:
            ProtocolError: see ``obtained`` and ``SessionTargets.add``.
        """
        if (target := session.targets.wanted(language, by_reader=by_reader)) is None:
            return False
        chain = await self.obtained(session.config.languages.source, [target], told, fetch=fetch)
        session.add_target(target, chain, by_reader=by_reader)
        return True

    def for_recording(self, chain: Chain, targets: Sequence[str]) -> Chain:
        """``chain`` for a recording into some of its languages: sessions come first."""
        if not chain.config.languages.conversation:
            chain = chain.narrowed(targets)
        return replace(chain, models=scheduled(chain.models, self.scheduler))

    async def drain(self) -> None:
        """Start no more sessions, and end those in progress: what was heard is still translated and delivered.

        Recordings in progress are translated, too. What has not ended after ``drain_s`` is cancelled.
        """
        self.places.draining = True
        if self.offers is not None:
            self.offers.close()
        for session in self.sessions.values():
            session.stop()
        for task in self._keeping:
            task.cancel()
        if working := {*self._tasks, *self.places.recordings}:
            _, late = await asyncio.wait(working, timeout=self.limits.drain_s)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)

    async def _run(self, session: Session) -> None:
        try:
            async with self._pushes.turn(session) if self._pushes is not None else nullcontext() as session.pushed:
                await session.run()
            await session.readers.delivered(_DELIVER_S)
        finally:
            if self.index.end(session, keep=session.readers.grace_s > 0 and not self.places.draining):
                self._start_task(self._keep(session), self._keeping)
            if session.room is not None:  # readers in the room may not have noticed the session yet
                asyncio.get_running_loop().call_later(self.limits.resume_s, self.index.leave, session)
            self.ended.add(session)
            self.places.leave(session.calls)
            reason = f" ({session.state.failure.code})" if session.state.failure else ""
            audio_s, lag_s = session.stats.audio_s, session.stats.longest_lag_s
            log.info(
                "session %s ended%s: %.1f s of audio, %d sentences, lag at most %.1f s",
                session.name, reason, audio_s, session.sentences, lag_s,
            )  # fmt: skip

    async def _keep(self, session: Session) -> None:
        """Let readers whose connection was lost come again for the last text, for a short time."""
        try:
            await session.readers.settled()
        finally:
            self.index.forget(session)
