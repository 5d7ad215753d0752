"""Read a source on a thread, pass its chunks on to the event loop, and stop."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable
from functools import partial

from ..errors import StageError
from .events import Samples
from .run.worker import Worker
from .source import AudioSource, RecordedSource

CHUNKS_AT_ONCE = 10
"""Chunks of a local recording, 1 s, that change threads together. Each change costs about as much as the detection of speech
in one chunk (0.6 ms of CPU time on a virtual machine)."""

# No chunk waits longer for the next ones to be read, from a slow disk for example.
_LONGEST_READ_S = 0.05


def is_local(source: AudioSource) -> bool:
    """Whether a source is a recording on this machine. Reads of others may stall: of pipes, servers and apps' own sources.
    Then no chunk may wait for the next one, nor other work for the thread that reads.
    """
    return isinstance(source, RecordedSource) and not source.read_once


async def chunks_of(
    source: AudioSource, worker: Worker, at_once: int, overflows: Callable[[int], None] = lambda _: None
) -> AsyncGenerator[Samples, None]:
    """The chunks of a source, of which the worker's thread reads ``at_once`` per call.

    ``overflows`` is called with those of the source after each call.
    """
    more, failure = True, None
    while more:
        read: list[Samples] = []
        try:
            more, lost = await worker.run(partial(_read, source, read, at_once))
            overflows(lost)
        except Exception as error:
            more, failure = False, error
        for chunk in read:
            yield chunk
    if failure is not None:
        raise failure


async def stop_reading(pump: asyncio.Task[None], source: AudioSource) -> StageError | None:
    """Close the source and end the task that reads it; the failure to close, or None."""
    failure: StageError | None = None
    try:
        source.close()
    except (KeyboardInterrupt, SystemExit):
        raise  # raised by a signal handler
    except BaseException as error:
        failure = StageError("audio", error)
    finally:
        pump.cancel()
        await asyncio.gather(pump, return_exceptions=True)
    return failure


def _read(source: AudioSource, chunks: list[Samples], most: int) -> tuple[bool, int]:
    """Append up to ``most`` chunks, fewer from a source that is slow.

    Returns:
        False at the end of the source, and its overflows.
    """
    began, overflows = time.monotonic(), 0
    for _ in range(most):
        chunk, overflows = source.read(), source.overflows
        if chunk is None:
            return False, overflows
        chunks.append(chunk)
        if time.monotonic() - began > _LONGEST_READ_S:
            break
    return True, overflows
