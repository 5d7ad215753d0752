"""The sessions of a server, its capacity, and its end."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from pipeline.config import PipelineConfig
from pipeline.loading import Models
from pipeline.server.options import ServerLimits
from pipeline.server.protocol import ProtocolError, Start
from pipeline.server.session import Session
from pipeline.server.sharing import RECORDING, SharedDrafter, Turns, shared

log = logging.getLogger(__name__)

# How long readers may take to receive the last text of a session.
_DELIVER_S = 10.0
# Sessions that have ended and are kept for readers who come again.
_MOST_ENDED = 100


class Service:
    """Starts sessions, finds them again, and ends them. Knows nothing of connections."""

    def __init__(
        self, config: PipelineConfig, models: Models, limits: ServerLimits | None = None, record: Path | None = None
    ) -> None:
        """``models`` are shared by all sessions; recognition is shared out in turns.

        ``record``: the folder for the sessions' records; None: nothing is kept of a session after it.
        """
        self.config, self.limits, self.record = config, limits or ServerLimits(), record
        self.sessions: dict[str, Session] = {}
        """The sessions in progress."""
        self._ended: dict[str, Session] = {}  # whose last text not every reader has confirmed
        self._keeping: set[asyncio.Task[None]] = set()
        self.draining = False
        """Whether no session is started any more."""
        self.refused: Counter[str] = Counter()
        """Sessions that were refused, by the code of the reason."""
        self.served = 0
        """Sessions that have ended."""
        self.turns = Turns()
        self.recordings = 0
        """Recordings in progress."""
        self._recording_tasks: set[asyncio.Task[Any]] = set()
        self._recognizer = models.recognizer
        drafter = SharedDrafter(models.drafter, self.turns) if models.drafter is not None else None
        self._models = replace(models, recognizer=shared(models.recognizer, self.turns), drafter=drafter)
        self._tasks: set[asyncio.Task[None]] = set()
        self._busy_s: Counter[str] = Counter()  # of sessions that have ended
        self._audio_s = 0.0
        self._resets = 0

    @property
    def ready(self) -> bool:
        """Whether another session could be started."""
        return not self.draining and len(self.sessions) < self.limits.max_sessions

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

    def start(self, wanted: Start) -> Session:
        """Begin a session.

        Raises:
            ProtocolError: the server is full or stopping, or it does not know the languages.
        """
        try:
            config = self._configured(wanted)
        except ProtocolError as error:
            self.refused[error.code] += 1
            raise
        translations = {target: self._models.translations[target] for target in config.languages.targets}
        models = replace(self._models, translations=translations)
        session = Session(config, models, self.limits, wanted.sample_rate, self.record)
        self.sessions[session.id] = session
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
        if self.draining or self.recordings >= self.limits.max_recordings:
            self.refused["busy"] += 1
            reason = "the server is stopping" if self.draining else f"it is translating {self.recordings} recordings"
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

    def for_recording(self, targets: tuple[str, ...]) -> tuple[PipelineConfig, Models]:
        """The configuration and the models for a recording into some of the languages."""
        config = replace(self.config, languages=replace(self.config.languages, targets=targets))
        if self.config.languages.only_spoken is None:
            config = self.config
        translations = {target: self._models.translations[target] for target in config.languages.targets}
        recognizer = shared(self._recognizer, self.turns, RECORDING)
        return config, replace(self._models, recognizer=recognizer, translations=translations)

    def find(self, session_id: str) -> Session:
        """A session in progress, or one that has just ended and whose last text a reader may have missed.

        Raises:
            ProtocolError: there is none of that id.
        """
        if (session := self.sessions.get(session_id) or self._ended.get(session_id)) is None:
            raise ProtocolError("no-session", "there is no such session; it may have ended")
        return session

    async def drain(self) -> None:
        """Start no more sessions, and end those in progress: what was heard is still translated and delivered.

        Recordings in progress are translated, too. What has not ended after ``drain_s`` is cancelled.
        """
        self.draining = True
        for session in self.sessions.values():
            session.stop()
        for task in self._keeping:
            task.cancel()
        if working := self._tasks | self._recording_tasks:
            _, late = await asyncio.wait(working, timeout=self.limits.drain_s)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)

    def _configured(self, wanted: Start) -> PipelineConfig:
        if self.draining:
            raise ProtocolError("stopping", "the server is stopping; try again later")
        if len(self.sessions) >= self.limits.max_sessions:
            raise ProtocolError(
                "busy",
                f"the server has {len(self.sessions)} sessions, which is as many as it can serve in time; try again later",
            )
        languages = self.config.languages
        if wanted.source not in (None, languages.source):
            raise ProtocolError(
                "unknown-source", f"this server does not recognise {wanted.source!r}; it recognises {languages.source}"
            )
        for target in wanted.targets:
            if target not in languages.targets:
                raise ProtocolError(
                    "unknown-target",
                    f"this server does not translate into {target!r}; choose from {', '.join(languages.targets)}",
                )
        targets = tuple(target for target in languages.targets if target in wanted.targets) or languages.targets
        if languages.only_spoken is None and targets != languages.targets:
            raise ProtocolError(
                "unknown-target", f"this conversation needs both languages, {', '.join(languages.targets)}"
            )
        return replace(self.config, languages=replace(languages, targets=targets))

    async def _run(self, session: Session) -> None:
        try:
            await session.run()
            await session.delivered(_DELIVER_S)
        finally:
            del self.sessions[session.id]
            if session.grace_s > 0 and not self.draining:
                self._ended[session.id] = session
                self._start_task(self._keep(session), self._keeping)
            self.served += 1
            stats = session.stats
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
        while len(self._ended) > _MOST_ENDED:
            del self._ended[next(iter(self._ended))]
        try:
            await session.settled()
        finally:
            self._ended.pop(session.id, None)
