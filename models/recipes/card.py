"""Writes model cards from measurements."""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

SHIPPED = Path(__file__).resolve().parents[1] / "demo"


def refuse_other_files(folder: Path) -> None:
    """Exit if ``folder`` has files that are not a model made by a recipe. Only such a model may be replaced."""
    if folder.exists() and not folder.is_dir():
        sys.exit(f"--out {folder} is a file; expected a folder. Name another")
    if folder.exists() and any(folder.iterdir()) and not (folder / "training.json").is_file():
        sys.exit(
            f"--out {folder} has files but no training.json; expected an empty folder or a recipe's "
            "model, which would be replaced. Name another folder"
        )


def write_card(folder: Path, title: str, sections: dict[str, str]) -> None:
    """Write ``folder/README.md``: the sections, then the size and hash of every file."""
    lines = [f"# {title}", ""]
    for heading, text in sections.items():
        lines += [f"## {heading}", "", text.strip(), ""]
    lines += ["## Files", "", "| file | bytes | SHA-256 |", "|---|---:|---|"]
    for path in sorted(folder.iterdir()):
        if path.is_file() and path.name != "README.md":
            data = path.read_bytes()
            lines.append(f"| {path.name} | {len(data):,} | `{hashlib.sha256(data).hexdigest()}` |")
    (folder / "README.md").write_text("\n".join(lines) + "\n", "utf-8")


def table(header: tuple[str, ...], rows: list[tuple[object, ...]]) -> str:
    """A Markdown table."""
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    return "\n".join(lines + ["| " + " | ".join(map(str, row)) + " |" for row in rows])
