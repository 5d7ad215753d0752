"""Load a server with speakers and readers at real pace; report lag, losses, CPU and memory.

The server is a process of its own, started with these models. First one speaker is alone, then all speak the same recording.
"""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..apps.cli import whole_number
from ..apps.options import add_model_arguments, configured
from ..errors import PipelineError, UsageError
from ..events import SAMPLE_RATE, Samples
from ..resources import DEMO_SPEECH
from .measures import WordErrors, word_errors
from .processes import Usage, machine_cpu_s, usage_of
from .words import units

if TYPE_CHECKING:
    from .serve_clients import Played

_MODEL_OPTIONS = ("config", "source", "asr", "nmt", "via", "glossary")
_SAMPLE_S = 0.5


@dataclass(frozen=True)
class Load:
    """What the server used during one part of the run."""

    cpu_share: float
    """Of all cores that it may use, 0 to 1."""
    peak_mb: float
    others_share: float
    """Of all cores of the machine, 0 to 1, used by all other processes, the clients among them. A measurement beside much
    else is worth little."""


def add_audio_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "audio",
        nargs="?",
        type=Path,
        metavar="FILE",
        help="a recording, repeated as needed (default: the demo's speech)",
    )


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_audio_argument(parser)
    add_model_arguments(parser)
    number = whole_number(1, 1_000)
    parser.add_argument("--speakers", type=number, default=4, metavar="N", help="default: %(default)s")
    parser.add_argument(
        "--readers", type=whole_number(0, 1_000), default=20, metavar="N", help="of all speakers (default: %(default)s)"
    )
    parser.add_argument("--seconds", type=whole_number(1, 86_400), default=60, metavar="S", help="default: %(default)s")
    parser.add_argument("--json", action="store_true", help="print the report as JSON")


def run(options: argparse.Namespace) -> int:
    from ..audio.recording import read_audio

    config = configured(options)  # reports what is wrong before the server does
    samples = repeated(read_audio(options.audio or DEMO_SPEECH), options.seconds)
    report = asyncio.run(_measured(options, model_arguments(options), samples, config.languages.spoken[0]))
    print(json.dumps(report.as_dict(), ensure_ascii=False, indent=1) if options.json else report.as_text())
    if lost := [loss for session in report.sessions for loss in session.losses]:
        raise PipelineError(f"the server lost audio or text: {'; '.join(lost)}")
    if options.speakers > 1 and not report.refusal:
        raise PipelineError("the server accepted more speakers than its --max-sessions allows")
    return 0


def model_arguments(options: argparse.Namespace) -> list[str]:
    """The options of ``add_model_arguments`` for the command of a server."""
    given = [(f"--{name}", str(value)) for name in _MODEL_OPTIONS if (value := getattr(options, name))]
    if options.target:
        given.append(("--target", ",".join(options.target)))
    return [text for option in given for text in option]


def repeated(samples: Samples, seconds: int) -> Samples:
    """The recording again and again, ``seconds`` long."""
    if not len(samples):
        raise UsageError("the recording is empty; give one with speech")
    return np.resize(samples, seconds * SAMPLE_RATE)


@dataclass(frozen=True)
class Report:
    """The figures of a run."""

    language: str
    """Of the recognised text."""
    alone: Played
    alone_load: Load
    sessions: list[Played]
    load: Load
    refusal: str
    """What the server said to one speaker too many."""

    def differences(self, session: Played) -> WordErrors:
        """The recognised words of a session against those of the speaker who was alone."""
        alone, found = (units(one.speaker.text(self.language), self.language) for one in (self.alone, session))
        return word_errors(alone, found)

    def as_dict(self) -> dict[str, Any]:
        def figures(session: Played) -> dict[str, Any]:
            return {
                "readers": len(session.readers),
                "shown_s": spread(session.speaker.shown_s),
                "committed_s": spread(session.speaker.committed_s),
                "readers_committed_s": spread([age for reader in session.readers for age in reader.committed_s]),
                "against_alone": dataclasses.asdict(self.differences(session)),
                "losses": session.losses,
            }

        return {
            "seconds": self.alone.seconds,
            "alone": figures(self.alone) | dataclasses.asdict(self.alone_load),
            "sessions": [figures(session) for session in self.sessions],
            **dataclasses.asdict(self.load),
            "refusal": self.refusal,
        }

    def as_text(self) -> str:
        lines = [
            f"{self.alone.seconds:.0f} s",
            f"{'':9} {'shown, s':>20}   {'committed, s':>20}   {'of its readers, s':>20}   {'words':>5} {'missing':>7} {'extra':>5} {'other':>5}  lost",
            f"{'':9} {'mean':>6} {'p90':>6} {'max':>6}   " + 2 * f"{'mean':>6} {'p90':>6} {'max':>6}   ",
        ]
        for name, session in [("alone", self.alone), *((f"speaker {n}", s) for n, s in enumerate(self.sessions, 1))]:
            readers = [age for reader in session.readers for age in reader.committed_s]
            ages = "".join(_cells(values) for values in (session.speaker.shown_s, session.speaker.committed_s, readers))
            errors = self.differences(session)
            lines.append(
                f"{name:9} {ages}{errors.units:5} {errors.missing:7} {errors.extra:5} {errors.substituted:5}  "
                f"{'; '.join(session.losses) or 'nothing'}"
            )
        return "\n".join(
            [
                *lines,
                "age of the newest audio in a change of the translation when it was received; recognised words against those of the",
                "speaker who was alone: a server that falls behind cuts speech in other places, which changes some words",
                f"server alone: {self.alone_load.cpu_share:.0%} of all cores, {self.alone_load.peak_mb:.0f} MB at most; "
                f"with all: {self.load.cpu_share:.0%}, {self.load.peak_mb:.0f} MB; "
                f"clients and other programs: {self.alone_load.others_share:.0%} and {self.load.others_share:.0%}",
                f"one speaker more: {self.refusal or 'was not refused'}",
            ]
        )


def spread(values_s: Sequence[float]) -> dict[str, float] | None:
    """Mean, 90th percentile and maximum; None without values."""
    if not values_s:
        return None
    mean, p90, most = np.mean(values_s), np.percentile(values_s, 90), np.max(values_s)
    return {"mean": round(float(mean), 3), "p90": round(float(p90), 3), "max": round(float(most), 3)}


def _cells(values_s: Sequence[float]) -> str:
    found = spread(values_s)
    return "".join(f"{found[name]:6.2f} " if found else f"{'–':>6} " for name in ("mean", "p90", "max")) + "  "


async def _measured(options: argparse.Namespace, models: list[str], samples: Samples, language: str) -> Report:
    async with started_server([*models, "--max-sessions", str(options.speakers)]) as (url, process):
        from .serve_clients import played  # the server has the same packages, and says which are missing

        say(f"one speaker alone, {options.seconds} s …")
        async with Sampler(process) as before:
            (alone,), _ = await played(url, samples, 1, min(1, options.readers))
        say(f"{options.speakers} speakers and {options.readers} readers, {options.seconds} s …")
        async with Sampler(process) as during:
            sessions, refusal = await played(url, samples, options.speakers, options.readers)
    return Report(language, alone, before.load(), sessions, during.load(), refusal)


@asynccontextmanager
async def started_server(arguments: list[str]) -> AsyncIterator[tuple[str, int]]:
    """A server in a process of its own: the address of its WebSocket, and the process."""
    command = [sys.executable, "-m", f"{__package__.partition('.')[0]}.serve", "--port", "0", *arguments]
    process = await asyncio.create_subprocess_exec(*command, stderr=subprocess.PIPE)
    assert process.stderr is not None
    said = b""
    try:
        while (found := re.search(rb"serving on http://([^/]+)/", said)) is None:
            if not (line := await process.stderr.readline()):
                raise PipelineError(f"the server did not start: {said.decode(errors='replace').strip()}")
            said += line
        reading = asyncio.create_task(process.stderr.read())  # a full pipe would stop the server
        try:
            yield f"ws://{found[1].decode()}/v1/session", process.pid
        finally:
            process.terminate()
            await reading
    finally:
        await process.wait()


class Sampler:
    """Looks at a process again and again while the block runs."""

    def __init__(self, process: int) -> None:
        self._process, self._found = process, list[tuple[float, float, Usage]]()

    async def __aenter__(self) -> Sampler:
        self._look()
        self._task = asyncio.create_task(self._looking())
        return self

    async def __aexit__(self, *failure: object) -> None:
        self._task.cancel()
        self._look()

    async def _looking(self) -> None:
        while True:
            await asyncio.sleep(_SAMPLE_S)
            self._look()

    def _look(self) -> None:
        if (usage := usage_of(self._process)) is not None:
            self._found.append((time.monotonic(), machine_cpu_s(), usage))

    def load(self) -> Load:
        if len(self._found) < 2:
            return Load(float("nan"), float("nan"), float("nan"))  # no /proc
        (began_s, all_before_s, first), *_, (ended_s, all_after_s, last) = self._found
        length_s, used_s = ended_s - began_s, last.cpu_s - first.cpu_s
        others_s = max(0.0, all_after_s - all_before_s - used_s)
        return Load(
            used_s / (length_s * last.cores),
            max(usage.resident_mb for *_, usage in self._found),
            others_s / (length_s * (os.cpu_count() or 1)),
        )


def say(text: str) -> None:
    """Print a line of progress on standard error."""
    print(text, file=sys.stderr, flush=True)
