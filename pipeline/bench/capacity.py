"""Find out how many live sessions this machine carries: more and more speakers at real pace, until text comes too late.

The number of speakers is doubled until a server does not carry them, and then narrowed down. Each trial has a server of its own.
"""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import json
import math
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..apps import add_model_arguments, configured
from ..config import DEMO_SPEECH
from ..console import whole_number
from ..core import SAMPLE_RATE, Samples
from ..errors import PipelineError, UsageError
from .processes import Load, Sampler

_LAG_S = 3.0
# Speakers begin one after the other within this share of a trial, so that they do not pause together.
_APART = 0.25
_MOST_APART_S = 1.0
# The most sessions: with one reader, fewer WebSockets than a server lets one address open in a minute
# (``ServerLimits.connections_a_minute``).
_MOST = 100
_MODEL_OPTIONS = ("config", "source", "asr", "nmt", "via", "glossary", "masked")
_SILENT = "a session showed no text; give a longer recording, with speech"


@dataclass(frozen=True)
class Trial:
    """A server with some sessions. Lags are in seconds: the age of the newest audio in a change of a translation."""

    sessions: int
    shown_s: float
    """Mean over all changes that were shown."""
    shown_p90_s: float
    """90th percentile of the session in which it is highest, as for the others."""
    steady_s: float
    """Since what is steady was shown first; see ``Reception``."""
    steady_p90_s: float
    final_s: float
    final_p90_s: float
    load: Load
    losses: Sequence[str] = ()

    @classmethod
    def of(
        cls,
        sessions: Sequence[tuple[Sequence[float], Sequence[float], Sequence[float]]],
        load: Load,
        losses: Sequence[str],
    ) -> Trial:
        """The figures of sessions with these lags of shown, of steady and of final text."""
        shown, steady, final = zip(*sessions, strict=True)
        return cls(
            len(sessions), _mean(shown), _worst(shown), _mean(steady), _worst(steady), _mean(final), _worst(final),
            load, tuple(losses),
        )  # fmt: skip

    @classmethod
    def failed(cls, sessions: int, load: Load, losses: Sequence[str]) -> Trial:
        """Sessions that the server, or the network, did not serve to their end."""
        late = math.inf
        return cls(sessions, late, late, late, late, late, late, load, tuple(losses))

    @property
    def silent(self) -> bool:
        """Whether nothing was lost, and yet a session showed no text."""
        return not self.losses and math.isinf(self.final_p90_s)

    def carried(self, lag_s: float) -> bool:
        """Whether nothing was lost, and in each session nine of ten changes were shown, and steady, within ``lag_s``."""
        return not self.losses and not self.silent and max(self.shown_p90_s, self.steady_p90_s) <= lag_s


def _mean(lags_s: Sequence[Sequence[float]]) -> float:
    every = [lag for lags in lags_s for lag in lags]
    return float(np.mean(every)) if every else math.inf


def _worst(lags_s: Sequence[Sequence[float]]) -> float:
    """The highest 90th percentile; infinite if a session has no text."""
    return max(float(np.percentile(lags, 90)) if lags else math.inf for lags in lags_s)


async def most_carried(carries: Callable[[int], Awaitable[bool]], most: int) -> int:
    """The largest number up to ``most`` that is carried, found by doubling and bisection; 0 if one is too many.

    Whoever carries a number carries any smaller one.
    """
    carried, refused = 0, most + 1
    while refused - carried > 1:
        number = min(max(1, 2 * carried), most) if refused > most else (carried + refused) // 2
        if await carries(number):
            carried = number
        else:
            refused = number
    return carried


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "audio",
        nargs="?",
        type=Path,
        metavar="FILE",
        help="a recording, repeated as needed (default: the demo's speech)",
    )
    add_model_arguments(parser)
    parser.add_argument(
        "--lag",
        type=some_lag,
        default=_LAG_S,
        metavar="SECONDS",
        help="nine of ten changes must be shown, and steady, within this time after their audio was sent (default: %(default)g)",
    )
    parser.add_argument(
        "--most",
        type=whole_number(1, _MOST),
        default=64,
        metavar="N",
        help=f"try no more sessions, {_MOST} at most (default: %(default)s)",
    )
    parser.add_argument("--sessions", type=whole_number(1, _MOST), metavar="N", help="try this number alone")
    parser.add_argument(
        "--readers", type=whole_number(0, 1_000), default=1, metavar="N", help="of all sessions (default: %(default)s)"
    )
    parser.add_argument(
        "--seconds", type=whole_number(1, 86_400), default=30, metavar="S", help="of each trial (default: %(default)s)"
    )
    parser.add_argument("--json", action="store_true", help="print the report as JSON")


def some_lag(text: str) -> float:
    """Argument type: a time in seconds, from 0.1 to 3600."""
    try:
        lag_s = float(text)
    except ValueError:
        lag_s = math.nan
    if not 0.1 <= lag_s <= 3_600:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds from 0.1 to 3600")
    return lag_s


def run(options: argparse.Namespace) -> int:
    from ..media import read_audio

    configured(options)  # reports what is wrong before the server does
    samples = repeated(read_audio(options.audio or DEMO_SPEECH), options.seconds)
    trials: list[Trial] = []

    async def carries(number: int) -> bool:
        print(f"{_sessions(number)}, {options.seconds} s …", file=sys.stderr, flush=True)
        trials.append(await _tried(model_arguments(options), samples, number, options.readers))
        return trials[-1].carried(options.lag)

    if options.sessions is None:
        carried = asyncio.run(most_carried(carries, options.most))
    else:
        carried = options.sessions * asyncio.run(carries(options.sessions))
    trials.sort(key=lambda trial: trial.sessions)
    if options.json:
        records = [finite(dataclasses.asdict(trial)) | {"carried": trial.carried(options.lag)} for trial in trials]
        print(json.dumps({"lag_s": options.lag, "sessions": carried, "trials": records}, indent=1, allow_nan=False))
    else:
        print(trials_table(trials, options.lag))
        if carried:
            least = " or more, as many as were tried" if carried == (options.sessions or options.most) else ""
            print(f"this machine carries {carried}{least}")
    if not carried and trials[0].silent:
        raise PipelineError(_SILENT)
    if not carried:
        raise PipelineError(
            f"this machine does not carry {_sessions(options.sessions or 1)} within {options.lag:g} s; choose a smaller model "
            "(--asr) or a higher --lag"
        )
    return 0


def _sessions(number: int) -> str:
    return f"{number} sessions" if number > 1 else "one session"


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


def finite(values: dict[str, Any]) -> dict[str, Any]:
    """The values with None for infinity and NaN, which JSON does not have; also in dictionaries among them."""

    def one(value: Any) -> Any:
        if isinstance(value, dict):
            return finite(value)
        return None if isinstance(value, float) and not math.isfinite(value) else value

    return {name: one(value) for name, value in values.items()}


def trials_table(trials: Sequence[Trial], lag_s: float) -> str:
    """The trials in lines."""
    lines = [
        f"{'':8} {'shown, s':>13}   {'steady, s':>13}   {'final, s':>13}",
        f"{'sessions':>8} {'mean':>6} {'p90':>6}   {'mean':>6} {'p90':>6}   {'mean':>6} {'p90':>6}   {'CPU':>4} {'others':>6} "
        f"{'memory':>9}   within {lag_s:g} s",
    ]
    for trial in trials:
        verdict = "yes" if trial.carried(lag_s) else "; ".join(trial.losses) or (_SILENT if trial.silent else "no")
        lines.append(
            f"{trial.sessions:8} {trial.shown_s:6.2f} {trial.shown_p90_s:6.2f}   {trial.steady_s:6.2f} {trial.steady_p90_s:6.2f}   "
            f"{trial.final_s:6.2f} {trial.final_p90_s:6.2f}   "
            f"{trial.load.cpu_share:4.0%} {trial.load.others_share:6.0%} {trial.load.peak_mb:6.0f} MB   {verdict}"
        )
    notes = (
        "age of the newest audio in a change of the translation when it was received (steady: in the change that showed it first); "
        "p90: of the worst session; the lag is that of shown and of steady text",
        "CPU: of the server; others: of the clients and all other programs, which should have little",
    )
    return "\n".join([*lines, *notes])


@asynccontextmanager
async def started_server(arguments: list[str]) -> AsyncIterator[tuple[str, int]]:
    """A server in a process of its own: the address of its WebSocket, and the process."""
    command = [sys.executable, "-m", f"{__package__.partition('.')[0]}.serve", "--port", "0", *arguments]
    process = await asyncio.create_subprocess_exec(*command, stderr=subprocess.PIPE)
    assert process.stderr is not None
    said = b""
    try:
        while (match := re.search(rb"serving on http://([^/]+)/", said)) is None:
            if not (line := await process.stderr.readline()):
                raise PipelineError(f"the server did not start: {said.decode(errors='replace').strip()}")
            said += line
        reading = asyncio.create_task(process.stderr.read())  # a full pipe would stop the server
        try:
            yield f"ws://{match[1].decode()}/v1/session", process.pid
        finally:
            process.terminate()
            await reading
    finally:
        await process.wait()


async def _tried(models: Sequence[str], samples: Samples, number: int, readers: int) -> Trial:
    async with started_server([*models, "--max-sessions", str(number)]) as (url, process):
        # The server has the same packages, and says which are missing.
        from . import serve_clients as clients

        apart_s = min(_MOST_APART_S, _APART * len(samples) / SAMPLE_RATE / number)
        failures: list[str] = []
        async with Sampler(process) as sampler:
            try:
                sessions = await clients.played(url, samples, number, readers, apart_s)
            except* (clients.ServerError, *clients.LOST) as group:
                failures = _reasons(group)
    if failures:
        return Trial.failed(number, sampler.load(), failures)
    lags = [(session.speaker.shown_s, session.speaker.steady_s, session.speaker.final_s) for session in sessions]
    return Trial.of(lags, sampler.load(), [loss for session in sessions for loss in session.losses])


def _reasons(group: BaseExceptionGroup[Any]) -> list[str]:
    """The messages of a group's failures, each once."""
    reasons: list[str] = []
    for error in group.exceptions:
        reasons += _reasons(error) if isinstance(error, BaseExceptionGroup) else [str(error) or type(error).__name__]
    return list(dict.fromkeys(reasons))
