"""Backlog of live audio while the stages are behind: the oldest minute in memory, the rest in a temporary file."""

from __future__ import annotations

import errno
import os
import tempfile
import threading
from collections import deque
from collections.abc import Callable
from typing import IO

import numpy as np

from ...core import CHUNK_SAMPLES, SAMPLE_RATE, AudioLost, LiveSource, Samples, SourceNotice

MEMORY_SAMPLES = 60 * SAMPLE_RATE


def _unbuffered_file() -> IO[bytes]:
    return tempfile.TemporaryFile(buffering=0)


class Spool:
    """A FIFO of samples. Samples beyond ``memory_samples`` go to an unnamed file, used as a ring buffer.

    Samples that do not fit are dropped and replaced by silence, so that later samples keep their time. After a drop,
    half of the waiting samples must be taken before new ones are accepted, which keeps the number of gaps small.
    """

    def __init__(
        self,
        limit_samples: int,
        memory_samples: int = MEMORY_SAMPLES,
        make_file: Callable[[], IO[bytes]] = _unbuffered_file,
    ) -> None:
        """``make_file`` must return an unbuffered file, so that a failed write leaves no data to be written later."""
        self._limit = limit_samples
        self._make_file = make_file
        self._memory_limit = memory_samples
        self._memory: deque[Samples] = deque()
        self._in_memory = 0
        self._file: IO[bytes] | None = None
        self._written = self._read = 0  # samples since the ring buffer was last empty
        self._appended = self._taken = 0  # samples without gaps
        self._gaps: deque[list[int]] = deque()  # [position in appended samples, length of the gap]
        self._dropping = False
        self._accept_below = 0  # after a drop, accept samples when no more than this wait
        self.refused: str | None = None
        """The file error that caused the last drop; None if the spool was full."""

    def __len__(self) -> int:
        """Number of waiting samples."""
        return self._appended - self._taken

    def append(self, samples: Samples) -> int:
        """Add samples; return the number of samples dropped."""
        if self._dropping and len(self) > self._accept_below:
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
            except OSError as error:  # the disk is full: treat it like a full spool
                self.refused = error.strerror or str(error)
                return self._drop(len(samples))
            self.refused = None
        self._appended += len(samples)
        return 0

    def take(self) -> Samples:
        """Remove the oldest samples, [0..CHUNK_SAMPLES]; empty if none wait.

        Raises:
            OSError: the temporary file cannot be read.
        """
        if self._gaps and self._gaps[0][0] == self._taken:
            missing = min(self._gaps[0][1], CHUNK_SAMPLES)
            self._gaps[0][1] -= missing
            # Keep a gap that is still growing.
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
        """Close and delete the temporary file."""
        if self._file is not None:
            self._file.close()

    def _drop(self, count: int) -> int:
        if not self._dropping:
            self._dropping = True
            self._accept_below = len(self) // 2
            if not self._gaps or self._gaps[-1][0] != self._appended:
                self._gaps.append([self._appended, 0])
        self._gaps[-1][1] += count
        return count

    def _store(self, samples: Samples) -> None:
        if self._file is None:
            self._file = self._make_file()
        position = self._written % self._limit
        head = min(len(samples), self._limit - position)
        for offset, part in ((position, samples[:head]), (0, samples[head:])):
            self._file.seek(2 * offset)
            if self._file.write(part.tobytes()) < 2 * len(part):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self._written += len(samples)

    def _load(self) -> None:
        """Move the oldest samples of the file into memory. Truncate the file when it is empty."""
        assert self._file is not None
        position = self._read % self._limit
        count = min(self._written - self._read, self._limit - position, max(self._memory_limit, CHUNK_SAMPLES))
        self._file.seek(2 * position)
        self._memory.append(np.frombuffer(self._file.read(2 * count), np.int16))
        self._in_memory += count
        self._read += count
        if self._read == self._written:
            self._read = self._written = 0
            self._file.truncate(0)


class SpooledSource:
    """A live source read continuously by its own thread. Audio that the stages have not read yet is kept in a spool."""

    duration_s: float | None = None

    def __init__(self, source: LiveSource, limit_s: float) -> None:
        """Keep at most ``limit_s`` seconds of audio. Beyond it, new audio is lost; losses are reported and counted."""
        self.source = source
        self.limit_s = limit_s
        self._spool = Spool(round(limit_s * SAMPLE_RATE))
        self._changed = threading.Condition()
        self._notify: Callable[[SourceNotice], None] = lambda notice: None
        self._thread: threading.Thread | None = None
        self._ended = False
        self._error: BaseException | None = None
        self._received = 0  # samples
        self._losses = 0
        self._lost_samples = 0  # samples lost in the current loss

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
        """True if the reading thread has been started."""
        return self._thread is not None

    def start(self) -> None:
        """Begin reading the source, as the first ``read`` does. Later calls do nothing."""
        if self._thread is None:
            thread = threading.Thread(target=self._read_source, name="audio backlog", daemon=True)
            thread.start()  # raises if the system has no threads left
            self._thread = thread

    def read(self) -> Samples | None:
        """The oldest audio not yet read; None after the last audio of the source.

        Raises:
            BaseException: the exception of the source, after all audio received before it.
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
        """Close the source. Reads deliver the audio received before, then None."""
        self.source.close()

    def _read_source(self) -> None:
        try:
            while (samples := self.source.read()) is not None:
                self._add(samples)
            if self._lost_samples:
                self._report_loss("the audio has ended")
        except BaseException as error:  # raised again by read()
            self._error = error
        finally:
            self.end()

    def end(self) -> None:
        """Have reads end with the audio received so far."""
        with self._changed:
            self._ended = True
            self._changed.notify()

    def _add(self, samples: Samples) -> None:
        """Add samples to the spool. Report a loss when it begins and, with its length, when it ends."""
        self._received += len(samples)
        with self._changed:
            lost = self._spool.append(samples)
            self._changed.notify()
        if lost and not self._lost_samples:
            self._losses += 1
            full = f"the backlog of {self.limit_s:.0f} s is full"
            refused = self._spool.refused and f"the temporary file cannot be written ({self._spool.refused})"
            self._notify(AudioLost(self._received / SAMPLE_RATE, 0.0, refused or full))
        elif self._lost_samples and not lost:
            self._report_loss("there is room again")
        self._lost_samples += lost

    def _report_loss(self, reason: str) -> None:
        self._notify(AudioLost(self._received / SAMPLE_RATE, self._lost_samples / SAMPLE_RATE, reason))
        self._lost_samples = 0
