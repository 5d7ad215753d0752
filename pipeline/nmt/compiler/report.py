"""Formats a compile report as a table with one row per precision."""

from __future__ import annotations

from rich.table import Table
from rich.text import Text

from pipeline.names import escaped
from pipeline.nmt.compiler.build import CompileReport


def as_table(report: CompileReport) -> Table:
    """The size, agreement with fp32 and speed of each measured precision."""
    text = "made-up sentences" if report.sample_is_made_up else "sentences"
    head = report.alignment
    aligned = (
        "" if head is None else f"; best alignment head {head.layer}:{head.head}, {100 * head.agreement:.0f} % right"
    )
    title = Text(f"from {escaped(report.origin)}; {report.sample_sentences} {text}, beside fp32{aligned}")
    table = Table(title=title, title_justify="left")
    for heading in ("weights", "MB", "rows", "same tokens", "same sentences", "chrF", "ms a token"):
        table.add_column(heading, justify="left" if heading == "weights" else "right")
    for candidate in report.candidates:
        compared = candidate.comparison
        table.add_row(
            candidate.weights + (" ← taken" if candidate.weights == report.weights else ""),
            f"{candidate.megabytes:.1f}",
            f"{candidate.rows}",
            f"{compared.same_tokens:.1f} %",
            f"{compared.same_sentences:.1f} %",
            f"{-compared.chrf_loss:+.2f}",
            f"{compared.token_ms:.2f}",
        )
    return table
