"""Print the results as tables, one line per engine, with speed relative to CTranslate2 int8."""

from __future__ import annotations

from collections.abc import Iterator

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from pipeline.bench.comparison.results import REFERENCE, Profile, Results, Spread

_WIDTH = 180
"""Minimum width in columns. A narrower terminal wraps the lines; a narrower table would truncate its cells."""


def print_results(results: Results, console: Console | None = None) -> None:
    """Print the machine, the tables and the engines that were left out."""
    console = console or Console(highlight=False)
    console.width = max(console.width, _WIDTH)
    console.print(Text("\n".join(heading(results))))
    for threads in dict.fromkeys(row.threads for row in results.rows):
        console.print()
        console.print(_speed(results, threads))
    if results.profiles:
        console.print()
        console.print(_profiles(results))
    for engine, reason in results.left_out.items():
        console.print(Text(f"left out: {engine}: {reason}"))
    console.print(Text("\n" + _NOTES.format(tokens=results.target_tokens)))


def heading(results: Results) -> Iterator[str]:
    machine = results.machine
    yield f"{machine.processor}, {machine.cores} cores ({', '.join(machine.features) or 'features unknown'}); {machine.system}"
    yield ", ".join(f"{name} {version}" for name, version in machine.versions.items())
    speeds = ", ".join(
        f"{gb_s:.1f} GB/s with {threads} thread{'s' * (threads > 1)}"
        for threads, gb_s in results.bandwidth_gb_s.items()
    )
    yield f"memory read speed: {speeds}"
    yield (
        f"{results.model}; {results.sentences} sentences of {results.source_tokens:.0f} tokens on average, "
        f"each translated into {results.target_tokens} tokens; batch 1, greedy; {results.rounds} rounds, all engines in turns"
    )


_NOTES = """Times are medians of the rounds, lowest and highest in brackets. First token: time of a sentence of one
token. Further token: (sentence of {tokens} tokens - first token) / ({tokens} - 1). Floor: time to read the weights of
one further token on this machine, from its caches if they fit. Load, memory: fresh process, minus bare interpreter."""


def _speed(results: Results, threads: int) -> Table:
    table = Table(box=box.MARKDOWN)
    table.add_column(f"{threads} thread{'s' * (threads > 1)}")
    columns = (
        "first token, ms",
        "further token, ms",
        "floor, ms",
        "tokens/s",
        f"times {REFERENCE}",
        "sentence, ms",
        "times",
    )
    for name in columns:
        table.add_column(name, justify="right", no_wrap=True)
    for row in results.rows:
        if row.threads == threads:
            table.add_row(
                row.name,
                _spread(row.first_ms, 1),
                _spread(row.further_ms, 2),
                f"{row.floor_ms:.2f}" if row.floor_ms else "-",
                f"{1000 / row.further_ms.median:.0f}",
                _spread(row.ratio, 2) if row.ratio else "-",
                f"{row.sentence_ms.median:.0f}",
                f"{row.sentence_ratio.median:.2f}" if row.sentence_ratio else "-",
            )
    return table


def _profiles(results: Results) -> Table:
    reference = next((p.agreement.reference for p in results.profiles if p.agreement), None)
    table = Table(box=box.MARKDOWN)
    table.add_column("Loaded")
    names = ["load, s", "memory, MB", "peak, MB", "weights per token, MB"]
    for name in [*names, f"ids as {reference}"] if reference else names:
        table.add_column(name, justify="right", no_wrap=True)
    for profile in results.profiles:
        cells = [
            profile.name,
            f"{profile.fresh.load_s:.2f}",
            _megabytes(profile.fresh.resident_mb),
            _megabytes(profile.fresh.peak_mb),
            _megabytes(profile.weight_mb or None),
        ]
        table.add_row(*cells, *([_agreement(profile)] if reference else []))
    return table


def _spread(spread: Spread, digits: int) -> str:
    return f"{spread.median:.{digits}f} ({spread.low:.{digits}f}–{spread.high:.{digits}f})"


def _megabytes(value: float | None) -> str:
    return "-" if value is None else f"{value:.0f}"


def _agreement(profile: Profile) -> str:
    found = profile.agreement
    if found is None:
        return "-"
    return f"{100 * found.same_tokens / max(1, found.tokens):.0f} % ({found.same_sentences} of {found.sentences} sentences)"
