"""The pages of the documentation, and what is set as code in them."""

from __future__ import annotations

import re
from pathlib import Path

from tests.conftest import ROOT

PAGES = {
    path.relative_to(ROOT).as_posix(): path for path in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
}
"""Name, relative to the repository → path."""


def blocks(page: Path, language: str) -> list[str]:
    """The blocks of code in a language, in order."""
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text("utf-8"), re.DOTALL | re.MULTILINE)


def commands(page: Path) -> list[str]:
    """The commands of a page, one line each, without comments."""
    lines = "".join(blocks(page, "sh")).replace("\\\n", " ").splitlines()
    return [re.sub(r"\s+", " ", re.split(r"\s+# ", line)[0]).strip() for line in lines]
