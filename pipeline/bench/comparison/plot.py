"""Plot ms per further token with spread and floor, one bar per engine and number of threads."""

from __future__ import annotations

from pathlib import Path

from matplotlib.figure import Figure

from pipeline.bench.comparison.results import Results


def write_plot(results: Results, path: Path) -> None:
    """Write the plot to ``path``; its suffix determines the format."""
    names = list(dict.fromkeys(row.name for row in results.rows))
    threads = sorted({row.threads for row in results.rows})
    height = 0.8 / max(1, len(threads))
    figure = Figure(figsize=(9, 1.5 + 0.3 * len(results.rows)), layout="constrained")
    axes = figure.add_subplot()
    for index, count in enumerate(threads):
        rows = [row for row in results.rows if row.threads == count]
        places = [names.index(row.name) + (index - (len(threads) - 1) / 2) * height for row in rows]
        medians = [row.further_ms.median for row in rows]
        errors = [
            [row.further_ms.median - row.further_ms.low for row in rows],
            [row.further_ms.high - row.further_ms.median for row in rows],
        ]
        label = f"{count} thread{'s' * (count > 1)}"
        bars = axes.barh(places, medians, height * 0.9, xerr=errors, label=label, error_kw={"lw": 0.8, "capsize": 2})
        axes.bar_label(bars, fmt="%.2f", padding=4, fontsize="small")
        floors = [row.floor_ms for row in rows]
        axes.scatter(floors, places, marker="|", s=120, color="black", zorder=3, label="floor" if not index else None)
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    axes.set_xlabel("ms per further token: median, lowest and highest of the rounds")
    axes.set_title(f"{results.model}, on {results.machine.processor}", fontsize="medium", loc="left")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    figure.savefig(path)
