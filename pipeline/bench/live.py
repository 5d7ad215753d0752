"""Play recordings in real time and report the latency of endpoint, recognition, first token and last token.

Times are taken where an embedding program would receive the events.
"""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import json
import statistics
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from pipeline.apps.options import add_model_arguments, configured
from pipeline.audio.recording import Recording
from pipeline.bench.play import PlayedRun, load_for_long_run, play
from pipeline.bench.probe import LATE_MS, LoopTimes
from pipeline.bench.reference import read_reference
from pipeline.bench.target import only_target
from pipeline.bench.timeline import timeline
from pipeline.config import PipelineConfig
from pipeline.errors import UsageError
from pipeline.latency.emissions import unit_of
from pipeline.latency.metrics import Reference
from pipeline.names import escaped
from pipeline.sinks.latency_log import LatencyLog, open_latency_log
from pipeline.sinks.sink import BlockFile


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("audio", nargs="+", type=Path, metavar="FILE", help="recordings, played one after the other")
    add_model_arguments(parser)
    parser.add_argument(
        "--reference", action="append", type=Path, default=[], metavar="FILE",
        help="reference translation, once for each recording: .srt or .vtt with times, or .txt for the whole recording",
    )  # fmt: skip
    parser.add_argument(
        "--latency-log", type=Path, metavar="FILE",
        help="also log the time of each delta: .jsonl for simulstream, .log for SimulEval",
    )  # fmt: skip
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw the timeline of a single recording, as SVG")
    parser.add_argument("--json", action="store_true", help="print the report as JSON")


def run(options: argparse.Namespace) -> int:
    config = configured(options)
    unit = unit_of(only_target(config))
    if options.reference and len(options.reference) != len(options.audio):
        raise UsageError(
            f"{len(options.reference)} references for {len(options.audio)} recordings; give --reference once for each"
        )
    if options.plot and len(options.audio) > 1:
        raise UsageError(f"--plot draws one run, but {len(options.audio)} recordings were given; give one")
    if options.plot and options.plot.suffix.lower() != ".svg":
        raise UsageError(f"--plot {options.plot}: its name must end with .svg")
    inputs = {path.resolve() for path in (*options.audio, *options.reference)}
    for kind, path in (("plot", options.plot), ("latency-log", options.latency_log)):
        if path and path.resolve() in inputs:
            raise UsageError(f"{path} is also a recording or a reference; give --{kind} another file")
    for path in options.audio:
        Recording(path).close()
    references = [read_reference(path, unit) for path in options.reference] or [[] for _ in options.audio]
    runs: list[PlayedRun] = []
    with ExitStack() as stack:
        log = open_latency_log(options.latency_log, unit) if options.latency_log else None
        if log:
            stack.callback(log.close)
        plot = BlockFile(options.plot) if options.plot else None
        if plot:
            stack.callback(plot.close)
        try:
            asyncio.run(_play_all(options.audio, references, config, log, runs))
        finally:  # show what was measured before a failure or an interrupt
            if runs:
                print(_json(runs) if options.json else _text(runs))
        if plot:
            plot.append(_timeline_of(runs[0]))
    return 0


async def _play_all(
    paths: list[Path],
    references: list[list[Reference]],
    config: PipelineConfig,
    log: LatencyLog | None,
    runs: list[PlayedRun],
) -> None:
    """Play the recordings one after the other; append each result to ``runs`` when it is complete."""
    models = await load_for_long_run(config)
    for path, reference in zip(paths, references, strict=True):
        print(f"playing {escaped(str(path))} …", file=sys.stderr)
        runs.append(await play(path, config, models, reference, log))


def _timeline_of(run: PlayedRun) -> str:
    end_s = max([run.duration_s, *run.shown_s])
    return timeline(Path(run.recording).name, run.segments, run.spans, run.shown_s, end_s)


def _json(runs: list[PlayedRun]) -> str:
    return json.dumps([_record(run) for run in runs], ensure_ascii=False, indent=1)


def _record(run: PlayedRun) -> dict[str, Any]:
    record = dataclasses.asdict(run) | {"real_time_factor": run.real_time_factor}
    # The voice activity detection works ten times a second; its sum says enough.
    record["spans"] = {stage: spans for stage, spans in run.spans.items() if stage != "vad"}
    return record


def _text(runs: list[PlayedRun]) -> str:
    return "\n\n".join("\n".join([*_segments(run), *_totals(run)]) for run in runs)


def _segments(run: PlayedRun) -> list[str]:
    """Format one line per segment; all delays count from the end of its speech."""
    lines = [
        f"{run.recording}: {run.duration_s:.1f} s; seconds after the end of speech",
        f"{'segment':>7}  {'speech':>13}  {'endpoint':>8}  {'ASR took':>8}  {'first token':>11}  {'last token':>10}",
    ]
    for one in run.segments:
        asr = f"{one.asr.end_s - one.asr.begin_s:8.2f}" if one.asr else f"{'–':>8}"
        shown = (
            f"{one.first_token_s - one.speech_end_s:11.2f}  {one.last_token_s - one.speech_end_s:10.2f}"
            if one.first_token_s is not None and one.last_token_s is not None
            else f"{one.rejected or 'no text':>23}"
        )
        lines.append(
            f"{one.id:7}  {one.start_s:6.2f}–{one.speech_end_s:6.2f}  {one.endpoint_s:8.2f}  {asr}  {shown}  {one.target}"
        )
    return lines


def _totals(run: PlayedRun) -> list[str]:
    def median(values: list[float]) -> str:
        return f"{statistics.median(values):.2f} s (longest {max(values):.2f})" if values else "none"

    shown = [one for one in run.segments if one.first_token_s is not None]
    first = [one.first_token_s - one.speech_end_s for one in shown if one.first_token_s is not None]
    after = [one.first_token_s - one.closed_s for one in shown if one.first_token_s is not None]
    work = ", ".join(f"{stage} {spent / run.duration_s:.3f}" for stage, spent in run.busy_s.items())
    lines = [
        f"median endpoint {median([one.endpoint_s for one in run.segments])}; first token {median(first)}, "
        f"which is {median(after)} after the endpoint",
    ]
    if run.scores:
        source = "of the reference" if run.has_reference else "of the run itself"
        s = run.scores
        lines.append(
            f"AL {s.al_ms / 1000:.2f} s, LAAL {s.laal_ms / 1000:.2f} s; with the clock AL {s.computation_aware_al_ms / 1000:.2f} s, "
            f"LAAL {s.computation_aware_laal_ms / 1000:.2f} s; in {run.unit}s, over {s.sentences} sentences {source}"
            + (f"; {s.empty} more without text" if s.empty else "")
        )
    return [
        *lines,
        f"normalised erasure {run.normalized_erasure:.2f}; longest lag {run.longest_lag_s:.2f} s",
        f"real-time factor {run.real_time_factor:.3f} ({work})",
        f"memory {run.memory_mb:.0f} MB, {run.memory_growth_mb:+.0f} MB in this run, peak {run.memory_peak_mb:.0f} MB",
        f"event loop: at most {run.loop.longest_work_ms:.1f} ms of CPU at a stretch; {_lateness(run.loop)}",
        f"idle process for comparison: {_lateness(run.idle_loop)}",
    ]


def _lateness(loop: LoopTimes) -> str:
    return (
        f"late by {loop.longest_ms:.1f} ms at most, 99 % within {loop.p99_ms:.1f} ms, "
        f"{loop.late} of {loop.asked} times more than {LATE_MS} ms"
    )
