"""Measure how many hours of recordings an hour and a core take, compared with faster-whisper's ``BatchedInferencePipeline``.

Each row of the result is one way to do all recordings, in processes of its own that have loaded their models before the
time begins. What is said in NAME.wav is compared with NAME.txt if there is one.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from ..apps.cli import some_path, whole_numbers
from ..apps.options import add_model_arguments, configured
from ..apps.pool import Ended, share_out
from ..apps.recordings import find_recordings
from ..apps.translate import for_recordings
from ..audio.recording import Recording, read_audio
from ..config import PipelineConfig
from ..errors import PipelineError, UsageError
from ..events import SAMPLE_RATE, Transcript
from ..loading import load_models
from ..run.machine import keep_freed_memory, usable_cores
from ..translator import SpeechTranslator
from .asr import faster_whisper
from .words import edits, units

_BATCH = 8
"""Windows that the peer recognises at once: its default."""
_PEER = "faster-whisper, batches of 8"


@dataclass(frozen=True)
class Row:
    """One way to do all recordings, and what it took without the loading of models."""

    name: str
    processes: int
    threads: int
    """Of each recogniser."""
    audio_s: float
    wall_s: float
    cpu_s: float
    """Of all processes and threads."""
    wrong: int
    """Edit distance in words, or characters; of the recordings with a text."""
    words: int
    texts: dict[str, str]
    """Recording → what was recognised in it."""

    @property
    def per_hour(self) -> float:
        """Hours of audio an hour."""
        return self.audio_s / self.wall_s

    @property
    def per_cpu_hour(self) -> float:
        """Hours of audio an hour of CPU time."""
        return self.audio_s / self.cpu_s


@dataclass(frozen=True)
class Way:
    """A way to recognise recordings, in a number of processes."""

    name: str
    config: PipelineConfig
    processes: int = 1

    @property
    def in_each(self) -> PipelineConfig:
        """The configuration of each process. The peer's processes share the cores; others do unless it gives a number."""
        asr = self.config.asr
        threads = (asr.threads if self.name != _PEER else 0) or max(1, usable_cores() // self.processes)
        return replace(self.config, asr=replace(asr, threads=threads))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "recordings", nargs="+", type=some_path, metavar="RECORDING", help="recordings, or folders that hold some"
    )
    parser.add_argument(
        "--processes", type=whole_numbers(1, 256), default=[1], metavar="N,…", help="numbers of processes (default: 1)"
    )
    add_model_arguments(parser)
    parser.add_argument("--json", type=some_path, metavar="FILE", help="also write all results and texts as JSON")


def run(options: argparse.Namespace) -> int:
    config = for_recordings(configured(options))
    language = config.languages.only_spoken
    if language is None:
        raise UsageError("the languages spoken are several, and faster-whisper recognises one: name it with --source")
    paths = [path for path, _ in find_recordings(options.recordings)]
    lengths_s = {path: len(read_audio(path)) / SAMPLE_RATE for path in paths}
    paths.sort(key=lambda path: -lengths_s[path])  # so that no process ends long after the others
    ways = ways_of(config, options.processes)
    rows = [_measured(way, paths, sum(lengths_s.values()), language) for way in ways]
    print(as_text(rows, len(paths)))
    if options.json:
        records = [{**asdict(row), "per_hour": row.per_hour, "per_cpu_hour": row.per_cpu_hour} for row in rows]
        options.json.write_text(json.dumps(records, ensure_ascii=False, indent=1), "utf-8")
    return 0


def ways_of(config: PipelineConfig, processes: Sequence[int]) -> list[Way]:
    """The ways to measure, each in each number of processes: the peer first."""
    return [Way(name, config, count) for name in (_PEER, "recognised", "translated") for count in processes]


def _measured(way: Way, paths: Sequence[Path], audio_s: float, language: str) -> Row:
    """Do all recordings in one way."""
    wall_s, cpu_s, texts = _in_processes(way, paths)
    wrong = words = 0
    for path in paths:
        beside = path.with_suffix(".txt")
        if beside.is_file():
            said = units(beside.read_text("utf-8"), language)
            words += len(said)
            wrong += edits(said, units(texts[str(path)], language))
    threads = way.in_each.asr.threads
    return Row(way.name, way.processes, threads, audio_s, wall_s, cpu_s, wrong, words, texts)


def _in_processes(way: Way, paths: Sequence[Path]) -> tuple[float, float, dict[str, str]]:
    """Wall-clock and CPU time in seconds, and the texts. A process takes the next recording when it has done one."""
    began_s, ended_s, cpu_s, texts = math.inf, 0.0, 0.0, {}
    with closing(share_out(paths, way.processes, _work, way)) as told:
        for path, message in told:
            if isinstance(message, Ended):
                raise PipelineError(f"the process of {path} ended (status {message.status}); is there enough memory?")
            began_s, ended_s = min(began_s, message.began_s), max(ended_s, message.ended_s)
            cpu_s, texts[str(path)] = cpu_s + message.cpu_s, message.text
    return ended_s - began_s, cpu_s, texts


@dataclass(frozen=True)
class _Done:
    """What a process recognised in a recording, when, and in how much CPU time."""

    began_s: float
    ended_s: float
    cpu_s: float
    text: str


def _work(paths: Iterator[Path], tell: Callable[[_Done], None], way: Way) -> None:
    """What a process does: load the models, then recognise each recording that it is given."""
    if way.name != _PEER:
        keep_freed_memory()  # as pipeline.translate
    recognise = _recogniser(way.name, way.in_each)
    for path in paths:
        began_s, cpu_s = time.monotonic(), time.process_time()  # of the machine, and of this process
        text = recognise(path)
        tell(_Done(began_s, time.monotonic(), time.process_time() - cpu_s, text))


def _recogniser(name: str, config: PipelineConfig) -> Callable[[Path], str]:
    """What recognises, or translates, a recording, and returns what was said."""
    if name == _PEER:
        return _peer(config)
    if name == "recognised":  # captions in the language spoken need no translator
        language = config.languages.only_spoken or config.languages.source
        config = replace(config, languages=replace(config.languages, targets=(language,)))
    models = load_models(config)

    async def text_of(path: Path) -> str:
        async with SpeechTranslator(config, models) as translator:
            source = Recording(path, language=config.languages.only_spoken)
            events = [event async for event in translator.run(source)]
        return " ".join(each.text for each in events if isinstance(each, Transcript) and each.rejected is None)

    return lambda path: asyncio.run(text_of(path))


def _peer(config: PipelineConfig) -> Callable[[Path], str]:
    """faster-whisper with the same weights and beam size, the other settings being its defaults."""
    from faster_whisper import BatchedInferencePipeline

    asr, language = config.asr, config.languages.only_spoken
    model = BatchedInferencePipeline(faster_whisper(asr))

    def recognised(path: Path) -> str:
        segments, _ = model.transcribe(
            read_audio(path).astype("float32") / 32768.0,
            language=language,
            beam_size=asr.beam_size,
            batch_size=_BATCH,
            word_timestamps=asr.word_timestamps,
        )
        return " ".join(segment.text.strip() for segment in segments)

    return recognised


def as_text(rows: Sequence[Row], recordings: int) -> str:
    """Format the results, one line per row. Hours are compared with the first row."""
    width = max(len(row.name) for row in rows)
    lines = [
        f"{recordings} recordings, {rows[0].audio_s / 3600:.2f} h, {rows[0].words} words, {usable_cores()} cores",
        f"{'':{width}}  {'processes':>9}  {'threads':>7}  {'hours an hour':>13}  {'':>5}  "
        f"{'hours a CPU hour':>16}  {'':>5}  {'wrong':>6}",
    ]
    for row in rows:
        wrong = f"{row.wrong / row.words:.1%}" if row.words else ""
        faster = f"×{row.per_hour / rows[0].per_hour:.2f}"
        cheaper = f"×{row.per_cpu_hour / rows[0].per_cpu_hour:.2f}"
        lines.append(
            f"{row.name:{width}}  {row.processes:9}  {row.threads:7}  {row.per_hour:13.1f}  {faster:>5}  "
            f"{row.per_cpu_hour:16.1f}  {cheaper:>5}  {wrong:>6}"
        )
    return "\n".join(lines)
