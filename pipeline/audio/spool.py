"""Live audio that waits for stages which are behind: the oldest minute in memory, the rest in a temporary file."""

from __future__ import annotations

import errno
import os
import tempfile
import threading
from collections import deque
from collections.abc import Callable
from typing import IO

import numpy as np

from pipeline.audio.source import CHUNK_SAMPLES, LiveSource
from pipeline.events import SAMPLE_RATE, AudioLost, Samples, SourceNotice

MEMORY_SAMPLES = 60 * SAMPLE_RATE


def _unbuffered() -> IO[bytes]:
    return tempfile.TemporaryFile(buffering=0)


class Spool:
    """A first-in-first-out store of samples. Beyond ``memory_samples`` they go to an unnamed file, used as a ring.

    What does not fit is dropped and remembered as a gap of silence, so that what follows keeps its time. After a drop,
    half of what was waiting must be taken before it takes more: there are few gaps at a time.
    """

    def __init__(
        self,
        limit_samples: int,
        memory_samples: int = MEMORY_SAMPLES,
        make_file: Callable[[], IO[bytes]] = _unbuffered,
    ) -> None:
        """``make_file`` makes the file, which must keep nothing back of what could not be written: no buffer."""
        self._limit = limit_samples
        self._make_file = make_file
        self._memory_limit = memory_samples
        self._memory: deque[Samples] = deque()
        self._in_memory = 0
        self._file: IO[bytes] | None = None
        self._written = self._read = 0  # samples, since the ring was last empty
        self._appended = self._taken = 0  # samples, gaps not counted
        self._gaps: deque[list[int]] = deque()  # [position among the appended, samples missing there]
        self._dropping = False
        self._takes_more_at = 0  # samples that wait, once it has dropped some
        self.refused: str | None = None
        """Why the file did not take what was dropped last; None where the store was full."""

    def __len__(self) -> int:
        """Samples that wait."""
        return self._appended - self._taken

    def append(self, samples: Samples) -> int:
        """Add samples; returns how many were dropped for want of room."""
        if self._dropping and len(self) > self._takes_more_at:
            return self._drop(len(samples))
        self._dropping = False
        if len(self) + len(samples) > self._limit:
            return self._drop(len(samples))
        if self._written == self._read and self._in_memory + len(samples) <= self._memory_limit:
            self._memory.append(samples)
            self._in_memory += len(samples)
        else:
            try:
                self._store(samples)
            except OSError as error:  # the disk is full: as if this store were
                self.refused = error.strerror or str(error)
                return self._drop(len(samples))
            self.refused = None
        self._appended += len(samples)
        return 0

    def take(self) -> Samples:
        """The oldest samples, [0..CHUNK_SAMPLES]; none where nothing waits.

        Raises:
            OSError: the temporary file is gone.
        """
        if self._gaps and self._gaps[0][0] == self._taken:
            missing = min(self._gaps[0][1], CHUNK_SAMPLES)
            self._gaps[0][1] -= missing
            # A gap that still grows ends where the dropping does.
            if not self._gaps[0][1] and not (self._dropping and len(self._gaps) == 1):
                self._gaps.popleft()
            if missing:
                return np.zeros(missing, np.int16)
        if not self._memory and self._written > self._read:
            self._load()
        if not self._memory:
            return np.zeros(0, np.int16)
        chunk = self._memory.popleft()
        size = min(len(chunk), CHUNK_SAMPLES)
        if self._gaps:
            size = min(size, self._gaps[0][0] - self._taken)
        if size < len(chunk):
            self._memory.appendleft(chunk[size:])
        self._in_memory -= size
        self._taken += size
        return chunk[:size]

    def close(self) -> None:
        """Give the file back."""
        if self._file is not None:
            self._file.close()

    def _drop(self, count: int) -> int:
        if not self._dropping:
            self._dropping = True
            self._takes_more_at = len(self) // 2
            if not self._gaps or self._gaps[-1][0] != self._appended:
                self._gaps.append([self._appended, 0])
        self._gaps[-1][1] += count
        return count

    def _store(self, samples: Samples) -> None:
        if self._file is None:
            self._file = self._make_file()
        at = self._written % self._limit
        head = min(len(samples), self._limit - at)
        for offset, part in ((at, samples[:head]), (0, samples[head:])):
            self._file.seek(2 * offset)
            if self._file.write(part.tobytes()) < 2 * len(part):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self._written += len(samples)

    def _load(self) -> None:
        """Move the oldest of the file into memory, and give the disk back when that was all."""
        assert self._file is not None
        at = self._read % self._limit
        count = min(self._written - self._read, self._limit - at, max(self._memory_limit, CHUNK_SAMPLES))
        self._file.seek(2 * at)
        self._memory.append(np.frombuffer(self._file.read(2 * count), np.int16))
        self._in_memory += count
        self._read += count
        if self._read == self._written:
            self._read = self._written = 0
            self._file.truncate(0)


class Spooled:
    """A live source read by a thread of its own, so that it never waits for the stages: what they are behind is kept."""

    duration_s: float | None = None

    def __init__(self, source: LiveSource, limit_s: float) -> None:
        """Keep ``limit_s`` seconds of audio at most; beyond it the newest is lost, told and counted."""
        self.source = source
        self.limit_s = limit_s
        self._spool = Spool(round(limit_s * SAMPLE_RATE))
        self._changed = threading.Condition()
        self._notify: Callable[[SourceNotice], None] = lambda notice: None
        self._thread: threading.Thread | None = None
        self._ended = False
        self._error: BaseException | None = None
        self._heard = 0  # samples
        self._losses = 0
        self._losing = 0  # samples lost in the present loss

    @property
    def overflows(self) -> int:
        return self.source.overflows + self._losses

    @property
    def backlog_s(self) -> float:
        return len(self._spool) / SAMPLE_RATE + self.source.backlog_s

    def listen(self, notify: Callable[[SourceNotice], None]) -> None:
        self._notify = notify
        self.source.listen(notify)

    @property
    def started(self) -> bool:
        """True once the source is read."""
        return self._thread is not None

    def start(self) -> None:
        """Begin to read the source; the first ``read`` does that, too. Later calls do nothing."""
        if self._thread is None:
            thread = threading.Thread(target=self._work, name="audio backlog", daemon=True)
            thread.start()  # raises where the system has no more
            self._thread = thread

    def read(self) -> Samples | None:
        """The oldest audio not yet read; None when all that was heard before the source ended has been.

        Raises:
            BaseException: what the source raised, after what it had heard.
        """
        self.start()
        with self._changed:
            while True:
                samples = self._spool.take()
                if len(samples):
                    return samples
                if self._ended:
                    self._spool.close()
                    if self._error is not None:
                        raise self._error
                    return None
                self._changed.wait()

    def close(self) -> None:
        """End the source: reads deliver what was heard before, then None."""
        self.source.close()

    def _work(self) -> None:
        try:
            while (samples := self.source.read()) is not None:
                self._hear(samples)
            if self._losing:
                self._tell_lost("the audio has ended")
        except BaseException as error:  # handed to whoever reads, whatever it is
            self._error = error
        finally:
            with self._changed:
                self._ended = True
                self._changed.notify()

    def _hear(self, samples: Samples) -> None:
        """Keep what was heard. A loss is told when it begins, and how much it was when it ends."""
        self._heard += len(samples)
        with self._changed:
            lost = self._spool.append(samples)
            self._changed.notify()
        if lost and not self._losing:
            self._losses += 1
            full = f"the {self.limit_s:.0f} s that are kept for the translation are full"
            refused = self._spool.refused and f"the temporary file cannot keep it ({self._spool.refused})"
            self._notify(AudioLost(self._heard / SAMPLE_RATE, 0.0, refused or full))
        elif self._losing and not lost:
            self._tell_lost("there is room again")
        self._losing += lost

    def _tell_lost(self, now: str) -> None:
        self._notify(AudioLost(self._heard / SAMPLE_RATE, self._losing / SAMPLE_RATE, now))
        self._losing = 0
