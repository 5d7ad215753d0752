"""Measure how many hours of recordings an hour and a core take, compared with faster-whisper's ``BatchedInferencePipeline``.

Each row of the result is one way to do all recordings, in processes of its own that have loaded their models before the
time begins. What is said in NAME.wav is compared with NAME.txt if there is one.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import pickle
import signal
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass, replace
from functools import partial
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from ..apps.cli import some_path, whole_numbers
from ..apps.options import add_model_arguments, configured
from ..apps.recordings import find_recordings
from ..apps.translate import for_recordings
from ..audio.recording import Recording, read_audio
from ..config import PipelineConfig
from ..errors import PipelineError, UsageError, one_line
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
    paths = [path for path, _ in find_recordings(options.recordings) if isinstance(path, Path)]
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
    spawn = multiprocessing.get_context("spawn")
    with ExitStack() as stack:
        ours: list[Connection] = []
        for _ in range(way.processes):
            here, there = spawn.Pipe()
            process = spawn.Process(target=_work, args=(there, way), daemon=True)
            process.start()
            stack.push(partial(_end, process))
            stack.callback(here.close)  # ends the process
            there.close()
            ours.append(here)
        for each in ours:
            _received(each)  # its models are loaded
        waiting, busy = list(paths), set(ours)
        cpu_s, texts = 0.0, {}
        began = time.perf_counter()
        for each in ours:
            each.send(waiting.pop(0) if waiting else None)
        while busy:
            ready = wait(list(busy))
            for each in [one for one in busy if one in ready]:
                if (found := _received(each)) is None:
                    busy.remove(each)
                    continue
                path, spent_s, text = found
                cpu_s, texts[str(path)] = cpu_s + spent_s, text
                each.send(waiting.pop(0) if waiting else None)
        return time.perf_counter() - began, cpu_s, texts


def _end(process: BaseProcess, failure: type[BaseException] | None, *_: object) -> None:
    """Wait for a process to end. After a failure or Ctrl-C, stop the recording that is in progress there."""
    if failure is not None:
        process.terminate()
    process.join(10.0)


def _received(connection: Connection) -> Any:
    """The next message of a process; raises what failed there."""
    try:
        found = connection.recv()
    except EOFError:
        raise PipelineError("a process of the benchmark has died; is there enough memory?") from None
    if isinstance(found, Exception):
        raise found
    return found


def _work(connection: Connection, way: Way) -> None:
    """What a process does: load the models, then recognise each recording that it is sent. Failures are sent back."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches every process; this one ends with the benchmark
    if way.name != _PEER:
        keep_freed_memory()  # as pipeline.translate
    answer: object = "ready"
    try:
        recognise = _recogniser(way.name, way.in_each)
        while (path := _next_path(connection, answer)) is not None:
            began = time.process_time()
            text = recognise(path)
            answer = path, time.process_time() - began, text
        answer = None
    except Exception as error:
        answer = _portable(error)
    with suppress(OSError):  # the benchmark has ended
        connection.send(answer)


def _next_path(connection: Connection, answer: object) -> Path | None:
    """Send ``answer``; return the next recording, or None if there are no more or the benchmark has ended."""
    try:
        connection.send(answer)
        path: Path | None = connection.recv()
    except (EOFError, OSError):
        return None
    return path


def _portable(error: Exception) -> Exception:
    """An error to send to another process: itself, or a PipelineError with its message if it cannot be pickled."""
    if not isinstance(error, PipelineError):
        error.add_note("In a process of the benchmark:\n" + "".join(traceback.format_exception(error)))
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return PipelineError("\n".join([one_line(error), *getattr(error, "__notes__", [])]))
    return error


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
