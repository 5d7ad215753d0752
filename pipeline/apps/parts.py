"""Recognise a long recording in parts, which different processes take, with the result of one process.

Recognition is most of the work. Every process cuts the recording up to the end of its part into the same windows of speech
and recognises those that begin in its part; one process then does the rest with the transcripts of all. Windows are
independent of each other, so there are no joints: each transcript is that of a single run. For that, single runs, resumed
runs and parts group the windows by four from the first one on, also those that they do not recognise, and recognise all
others by ``transcribe_packs``, however few of a group they are; see ``AsrStage``.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Iterable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from itertools import chain, compress

from pipeline.asr.recognizer import Recognizer
from pipeline.asr.stage import AsrStage
from pipeline.asr.wrapper import PacksWrapper, Recognise, Windows
from pipeline.audio.reading import CHUNKS_AT_ONCE, chunks_of, is_local
from pipeline.audio.source import AudioSource
from pipeline.config import PipelineConfig
from pipeline.events import EndOfInput, Pause, Samples, SegmentSoFar, SpeechSegment, Transcript, TranscriptSoFar
from pipeline.run.worker import Worker
from pipeline.vad.stage import VadStage

# Audio chunks of 100 ms that wait for the stage before it.
_QUEUED = 50


@dataclass(frozen=True)
class Part:
    """A stretch of a recording, in seconds. The last part ends at infinity, because a stored duration may be wrong."""

    begin_s: float
    end_s: float

    def has(self, segments: Sequence[SpeechSegment]) -> bool:
        """Whether a window of speech begins in it."""
        return self.begin_s <= segments[0].start_s < self.end_s


def can_be_split(config: PipelineConfig) -> bool:
    """Whether windows are independent: not if each is recognised after the one before, with its language, or with terms
    of the glossary that were said before."""
    return bool(config.asr.join_ms) and config.languages.only_spoken is not None and config.glossary.file is None


def most_parts(workers: int, recordings: int) -> int:
    """How many parts of a recording pay: as many as there are workers for the last one, one if enough others wait.

    Each part detects the speech before it again, which takes a tenth to a third of the time of recognising it.
    """
    return max(1, math.ceil(2 * workers / (recordings + 1)))


def parts_of(duration_s: float, longest_s: float, most: float = math.inf) -> list[Part]:
    """Equal parts of at most ``longest_s`` seconds, but not more than ``most``; a single one for a shorter recording."""
    count = max(1, int(min(most, math.ceil(duration_s / longest_s))))
    bounds = [duration_s * number / count for number in range(count)]
    return [Part(begin, end) for begin, end in zip(bounds, [*bounds[1:], math.inf], strict=True)]


async def transcribe_part(
    source: AudioSource,
    config: PipelineConfig,
    recognizer: Recognizer,
    part: Part,
    stopped: Callable[[], bool] = lambda: False,
) -> list[Transcript]:
    """The transcripts of the windows that begin in a part. ``source`` is read up to the part's end, and closed.

    Once ``stopped`` returns True, no more windows are recognised.

    Raises:
        StageError, AudioError: a stage or the source failed.
    """
    audio: asyncio.Queue[Samples | EndOfInput] = asyncio.Queue(_QUEUED)
    segments: asyncio.Queue[SpeechSegment | SegmentSoFar | Pause | EndOfInput] = asyncio.Queue(_QUEUED)
    found: asyncio.Queue[Transcript | TranscriptSoFar | Pause | EndOfInput] = asyncio.Queue()
    of_part = _PartRecognizer(recognizer, part, stopped)
    reader, local = Worker("audio"), is_local(source)

    async def read() -> None:
        async with aclosing(chunks_of(source, reader, CHUNKS_AT_ONCE if local else 1)) as chunks:
            async for chunk in chunks:
                await audio.put(chunk)
                if of_part.done:
                    break
        await audio.put(EndOfInput())

    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(read())
            group.create_task(VadStage(config.vad, audio, segments, reader=lambda: reader if local else None).run())
            group.create_task(AsrStage(of_part, segments, found, join_ms=lambda: config.asr.join_ms or 0).run())
    except BaseExceptionGroup as failures:
        raise failures.exceptions[0] from None
    finally:
        source.close()
        reader.close()
    return of_part.transcripts


class _PartRecognizer(PacksWrapper):
    """Recognises the windows of a part. Other windows have no words."""

    def __init__(self, recognizer: Recognizer, part: Part, stopped: Callable[[], bool]) -> None:
        super().__init__(recognizer)
        self._part, self._stopped = part, stopped
        self.transcripts: list[Transcript] = []
        self.done = False
        """Whether a window after the part was seen, or the run is stopped."""

    def _recognised(self, windows: Windows, recognise: Recognise) -> list[list[Transcript]]:
        ended = self.done or self._stopped()
        own = [not ended and self._part.has(window) for window in windows]
        known = [[] if mine else _without_words(window) for window, mine in zip(windows, own, strict=True)]
        found = self._with_others(windows, known, recognise)
        self.done = ended or windows[-1][0].start_s >= self._part.end_s
        self.transcripts += chain.from_iterable(compress(found, own))
        return found


def _without_words(segments: Sequence[SpeechSegment]) -> list[Transcript]:
    return [Transcript(each.id, each.start_s, each.end_s, "", "", rejected="empty") for each in segments]


class KnownParts(PacksWrapper):
    """A recogniser that returns the transcripts of parts and delegates what they do not have to another recogniser."""

    def __init__(self, recognizer: Recognizer, transcripts: Iterable[Transcript]) -> None:
        super().__init__(recognizer)
        self._known = {transcript.segment_id: transcript for transcript in transcripts}

    def _recognised(self, windows: Windows, recognise: Recognise) -> list[list[Transcript]]:
        return self._with_others(windows, [self._known_of(window) for window in windows], recognise)

    def _known_of(self, segments: Sequence[SpeechSegment]) -> list[Transcript]:
        """The transcripts of a window; empty unless all are known, with these times."""
        found = [self._known.get(segment.id) for segment in segments]
        times = [(known.start_s, known.end_s) for known in found if known is not None]
        if times != [(segment.start_s, segment.end_s) for segment in segments]:
            return []
        return [known for known in found if known is not None]
