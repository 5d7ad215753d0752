"""Model cards, written from measurements."""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

SHIPPED = Path(__file__).resolve().parents[1] / "demo"


def refuse_other_files(folder: Path) -> None:
    """Exit if what is in ``folder`` is no recipe's model, which a new one may replace."""
    if folder.exists() and not folder.is_dir():
        sys.exit(f"--out {folder} is a file: name a folder")
    if folder.exists() and any(folder.iterdir()) and not (folder / "training.json").is_file():
        sys.exit(
            f"--out {folder} has files but no training.json, so that it is no model of a recipe's, which a new one would "
            "replace: name another folder"
        )


def write_card(folder: Path, title: str, sections: dict[str, str]) -> None:
    """Write ``folder/README.md``: the sections, then every file with its size and hash."""
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
