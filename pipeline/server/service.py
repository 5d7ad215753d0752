"""The sessions of a server, its capacity, and its end."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
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
from .session_index import SessionIndex
from .unanswered import ModelCalls

if TYPE_CHECKING:
    from ..core import AddSpeakers
    from ..glossary import Candidate
    from .directory import Directory
    from .pushes import Pushes
    from .speaking import SessionVoices

log = logging.getLogger(__name__)

# How long readers may take to receive the last text of a session.
_DELIVER_S = 10.0


class Service:
    """Starts sessions, finds them again, and ends them. Knows nothing of connections."""

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
        self._index = SessionIndex()
        self.sessions = self._index.in_progress
        """The sessions in progress, by their ids."""
        self.rooms = self._index.rooms
        """The newest session of each room, by the rooms' names; for ``resume_s`` after its end, too."""
        self._keeping: set[asyncio.Task[None]] = set()
        self.directory: Directory | None = None  # with which this server shares out rooms
        self.proposals: Sequence[Candidate] = ()  # terms for all speakers
        self.speakers: Callable[[], AddSpeakers | None] | None = None
        """Loads the model that tells voices apart in the sessions that ask for it; None: none may."""
        self.draining = False
        """Whether no session is started any more."""
        self.refused: Counter[str] = Counter()
        """Sessions that were refused, by the code of the reason."""
        self.served = 0
        """Sessions that have ended."""
        self.scheduler = Scheduler(calls_at_once(each.recognizer for each in (models, *(other for _, other in others))))
        self.texts_hung: Callable[[], bool] = lambda: False
        """Whether a translator of texts gives no answer."""
        self.recordings = 0  # in progress
        self._recording_tasks: set[asyncio.Task[Any]] = set()
        self.subtitles = config.subtitles
        """The layout of what its pages let people download."""
        self._chains = [chain_of(*each) for each in ((config, models), *others)]
        self._tasks: set[asyncio.Task[None]] = set()
        self._busy_s: Counter[str] = Counter()  # of sessions that have ended
        self._audio_s = 0.0
        self._lost: list[ModelCalls] = []  # of sessions that have ended
        self._pushes, self._voices, self._resets = pushes, voices, 0

    @property
    def ready(self) -> bool:
        """Whether another session could be started."""
        return not self.draining and not self.hung and self.taken < self.limits.max_sessions

    @property
    def taken(self) -> int:
        """How many places for sessions are taken. One whose text is final needs none, but closes its record and waits for readers:
        of these, there may be as many again.
        """
        return max(sum(not session.over for session in self.sessions.values()), len(self.sessions) // 2)

    @property
    def hung(self) -> bool:
        """Whether a model still gives no answer for which sessions, a language of one, or texts were given up."""
        self._lost = [calls for calls in self._lost if calls.lost]
        return self.texts_hung() or bool(self._lost) or any(session.calls.lost for session in self.sessions.values())

    def busy_s(self) -> Counter[str]:
        """Working time of each stage, in seconds, over all sessions."""
        total = Counter(self._busy_s)
        for session in self.sessions.values():
            total.update(session.stats.busy_s)
        return total

    def audio_s(self) -> float:
        """Seconds of audio taken, over all sessions."""
        return self._audio_s + sum(session.stats.audio_s for session in self.sessions.values())

    def resets(self) -> int:
        """How often a reader was too slow, so that it got the whole text anew, over all sessions."""
        return self._resets + sum(session.resets for session in self.sessions.values())

    def start(self, wanted: Start, glossary: Glossary | None = None, voices: AddSpeakers | None = None) -> Session:
        """Begin a session. ``glossary``: that of the message, if it has one. ``voices``: tells its speakers apart.

        Raises:
            ProtocolError: the server is full or stopping, it does not know the languages, or its speaker speaks in another
                session in the same room.
        """
        try:
            self._check_room()
            chain = self.chosen(wanted.source, wanted.targets).narrowed(wanted.targets).telling_speakers(voices)
            room = self._index.enter(room_name(wanted.room_key)) if wanted.room_key else None
        except ProtocolError as error:
            self.refused[error.code] += 1
            raise
        session = Session(
            chain,
            self.limits,
            wanted.sample_rate,
            self.record,
            room=room,
            scheduler=self.scheduler,
            voices=self._voices(chain.config.languages.targets) if self._voices is not None else None,
        )
        if glossary is not None:
            session.glossary.replace(glossary)
        self._index.begin(session)
        self._start_task(self._run(session), self._tasks)
        return session

    def _start_task(self, work: Coroutine[Any, Any, None], tasks: set[asyncio.Task[None]]) -> None:
        """Run ``work``, and have the task among ``tasks`` until it ends."""
        task = asyncio.create_task(work)
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    @contextmanager
    def recording(self) -> Iterator[None]:
        """Make room for a recording for the time of the block.

        Raises:
            ProtocolError: the server translates as many as it may, or it is stopping.
        """
        if self.draining or self.hung or self.recordings >= self.limits.max_recordings:
            self.refused["busy"] += 1
            reason = "the server is stopping" if self.draining else f"it is translating {self.recordings} recordings"
            reason = "a model of the server does not answer" if self.hung else reason
            raise ProtocolError("busy", f"{reason}; try again later")
        self.recordings += 1
        task = asyncio.current_task()
        assert task is not None
        self._recording_tasks.add(task)
        try:
            yield
        finally:
            self._recording_tasks.discard(task)
            self.recordings -= 1

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
            self.refused[error.code] += 1
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

    def with_id(self, session_id: str) -> Session:
        """A session in progress, or one that has just ended and whose last text its speaker may have missed.

        Raises:
            ProtocolError: there is none.
        """
        return self._index.with_id(session_id)

    def find(self, name: str) -> Session:
        """The session that a reader names by its id or its room; see ``with_id``."""
        return self._index.find(name)

    def check_place(self, *asked: Any) -> None:
        """See ``Directory.check``."""
        if self.directory is not None:
            self.directory.check(*asked)

    async def drain(self) -> None:
        """Start no more sessions, and end those in progress: what was heard is still translated and delivered.

        Recordings in progress are translated, too. What has not ended after ``drain_s`` is cancelled.
        """
        self.draining = True
        if self.offers is not None:
            self.offers.close()
        for session in self.sessions.values():
            session.stop()
        for task in self._keeping:
            task.cancel()
        if working := self._tasks | self._recording_tasks:
            _, late = await asyncio.wait(working, timeout=self.limits.drain_s)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)

    def _check_room(self) -> None:
        if self.draining:
            raise ProtocolError("stopping", "the server is stopping; try again later")
        if self.hung:
            raise ProtocolError("busy", "a model of the server does not answer; the server has to be restarted")
        if (taken := self.taken) >= self.limits.max_sessions:
            raise ProtocolError(
                "busy", f"the server has {taken} sessions, which is as many as it can serve in time; try again later"
            )

    async def _run(self, session: Session) -> None:
        try:
            async with self._pushes.turn(session) if self._pushes is not None else nullcontext() as session.pushed:
                await session.run()
            await session.delivered(_DELIVER_S)
        finally:
            if self._index.end(session, keep=session.grace_s > 0 and not self.draining):
                self._start_task(self._keep(session), self._keeping)
            if session.room is not None:  # readers in the room may not have noticed the session yet
                asyncio.get_running_loop().call_later(self.limits.resume_s, self._index.leave, session)
            self.served += 1
            stats = session.stats
            self._lost.append(session.calls)
            self._busy_s.update(stats.busy_s)
            self._audio_s += stats.audio_s
            self._resets += session.resets
            log.info(
                "session %s ended%s: %.1f s of audio, %d sentences, lag at most %.1f s",
                session.name,
                f" ({session.failure.code})" if session.failure else "",
                stats.audio_s,
                session.sentences,
                stats.longest_lag_s,
            )

    async def _keep(self, session: Session) -> None:
        """Let readers whose connection was lost come again for the last text, for a short time."""
        try:
            await session.settled()
        finally:
            self._index.forget(session)
