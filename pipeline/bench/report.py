"""Format the results of played recordings: as tables, and as JSON."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .measures import LiveMeasures, Spread, TextMeasures, WordErrors
from .play import PlayedRun


@dataclass(frozen=True)
class LiveResult:
    """A recording played with one policy, and its figures."""

    policy: str
    run: PlayedRun
    measures: LiveMeasures
    has_reference: bool
    """False: the translation is scored against itself, sentence by sentence."""


def as_json(results: Sequence[LiveResult]) -> str:
    return json.dumps([_record(result) for result in results], ensure_ascii=False, indent=1)


def _record(result: LiveResult) -> dict[str, Any]:
    run, measures = result.run, dataclasses.asdict(result.measures)
    fields = {name: getattr(run, name) for name in (field.name for field in dataclasses.fields(run))}
    del fields["received"]
    for name in ("against_offline", "against_text"):
        errors: WordErrors | None = getattr(result.measures, name)
        if errors is not None:
            measures[name]["rate"] = errors.rate
    return {
        "policy": result.policy,
        "has_reference": result.has_reference,
        **fields,
        "real_time_factor": run.real_time_factor,
        **measures,
    }


def as_text(results: Sequence[LiveResult], *, compared: bool) -> str:
    """Format the results; ``compared``: only the tables, with the policies of each recording side by side."""
    if not compared:
        return "\n\n".join("\n".join([_title(played), *_totals(played.run), *tables([played])]) for played in results)
    by_recording: dict[str, list[LiveResult]] = {}
    for result in results:
        by_recording.setdefault(result.run.recording, []).append(result)
    return "\n\n".join("\n".join([_title(some[0]), *tables(some)]) for some in by_recording.values())


def _title(result: LiveResult) -> str:
    return f"{result.run.recording}: {result.run.duration_s:.1f} s"


def tables(results: Sequence[LiveResult]) -> list[str]:
    """Format the figures of runs of one recording, a line for each run and text."""
    several = len(results) > 1
    width = max(len("the run"), *(len(result.policy) for result in results)) + 2
    name_width = 13 + width * several
    rows = [
        (f"{result.policy:{width}}" * several + f"{name:13}", text)
        for result in results
        for name, text in (("source", result.measures.source), ("translation", result.measures.target))
    ]
    spread = f"{'mean':>6} {'p50':>6} {'p90':>6}"
    lines = [
        "",
        f"{'':{name_width}} {'units':>6}   {'shown after, s':^20}   {'settled after, s':^20}   {'final after, s':^20}   {'steady after, s':^20}   kept  erasure  changed   late",
        f"{'':{name_width}} {'':6}   {spread}   {spread}   {spread}   {spread}",
    ]
    for name, text in rows:
        lines.append(
            f"{name} {text.units:6}   {_spread(text.first_shown)}   {_spread(text.settled)}   {_spread(text.final)}   {_spread(text.steady)}  "
            f"{text.kept:5.1%}  {text.erasure:7.2f}  {text.changed:7.1%}  {text.changed_late:5.1%}"
        )
    lines += [
        "",
        f"{'':{name_width}}   {'lagging as displayed, s':^27}   {'lagging as final, s':^27}",
        f"{'':{name_width}}   {'LAAL':>6} {'YAAL':>6} {'LAAL+':>6} {'YAAL+':>6}   {'LAAL':>6} {'YAAL':>6} {'LAAL+':>6} {'YAAL+':>6}",
    ]
    lines += [f"{name}   {_lagging(text)}" for name, text in rows]
    lines += [
        "",
        f"{'the run':{width}} {'translation':>11}  {'wrong':>6} {'missing':>7} {'extra':>5}  {'of text':>7}  {'CPU':>5}  "
        f"{'MB':>5}  {'backlog':>7}  {'drained':>7}",
    ]
    lines += [_run_line(result, width) for result in results]
    return [*lines, *_LEGEND]


_LEGEND = (
    "after: the end of the word; settled: stands unchanged from then on; late: changed more than 3 s after it was shown; kept: of what was called steady, in the final text; YAAL: LongYAAL; +: by the clock; translation: first text after the first source text of a sentence, mean, s;",
    "wrong: word error rate of the source against the recording recognised at once; of text: against NAME.txt; CPU: of all",
    "cores; backlog: lag when the audio ended, s; drained: from then until all was translated, s",
)


def _spread(spread: Spread | None) -> str:
    if spread is None:
        return f"{'–':>6} {'–':>6} {'–':>6}"
    return f"{spread.mean_s:6.2f} {spread.p50_s:6.2f} {spread.p90_s:6.2f}"


def _lagging(text: TextMeasures) -> str:
    parts = []
    for scores in (text.displayed_lagging, text.final_lagging):
        if scores is None:
            parts.append(" ".join([f"{'–':>6}"] * 4))
            continue
        values = (scores.laal_ms, scores.yaal_ms, scores.computation_aware_laal_ms, scores.computation_aware_yaal_ms)
        parts.append(" ".join(f"{'–':>6}" if value is None else f"{value / 1000:6.2f}" for value in values))
    return "   ".join(parts)


def _run_line(result: LiveResult, width: int) -> str:
    run, measures = result.run, result.measures
    after = measures.target_after_source
    offline, text = measures.against_offline, measures.against_text
    errors = f"{offline.rate:6.1%} {offline.missing:7} {offline.extra:5}" if offline else f"{'–':>6} {'–':>7} {'–':>5}"
    return (
        f"{result.policy:{width}} {f'{after.mean_s:.2f}' if after else '–':>11}  {errors}  {f'{text.rate:.1%}' if text else '–':>7}  "
        f"{run.cpu_share:5.0%}  {run.memory_mb:5.0f}  {run.backlog_s:7.2f}  {run.drained_s:7.2f}"
    )


def _totals(run: PlayedRun) -> list[str]:
    work = ", ".join(f"{stage} {spent / run.duration_s:.3f}" for stage, spent in run.busy_s.items())
    return [
        f"longest lag {run.longest_lag_s:.2f} s; real-time factor {run.real_time_factor:.3f} ({work})",
        f"memory {run.memory_mb:.0f} MB, {run.memory_growth_mb:+.0f} MB in this run, peak {run.memory_peak_mb:.0f} MB",
    ]
