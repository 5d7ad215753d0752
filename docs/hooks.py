"""MkDocs hooks: files of the repository that a page links to become files of the site.

A link such as ../examples/embed_chain.py works where the repository is browsed. On the site the file has the same path below
``repository/``, and the link is rewritten. Markdown files become pages, and their links are followed in turn.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files, InclusionLevel

ROOT = Path(__file__).resolve().parents[1]
_MIRROR = "repository"
_LINK = re.compile(r"(\]\()([^)#\s:]+)(#[^)\s]*)?(\))")
"""(start, path, anchor, end) of a link to a relative path."""


def on_files(files: Files, *, config: Any) -> Files:
    """Add every file outside docs/ that a page, or a page added here, links to."""
    pages = [ROOT / "docs" / file.src_uri for file in files.documentation_pages()]
    added: set[Path] = set()
    while pages:
        page = pages.pop()
        for _, path, _, _ in _LINK.findall(page.read_text("utf-8")):
            target = _target(page, path)
            if target.is_file() and not target.is_relative_to(ROOT / "docs") and target not in added:
                added.add(target)
                uri = f"{_MIRROR}/{target.relative_to(ROOT).as_posix()}"
                files.append(File.generated(config, uri, abs_src_path=str(target), inclusion=InclusionLevel.NOT_IN_NAV))
                if target.suffix == ".md":
                    pages.append(target)
    return files


def on_page_markdown(markdown: str, *, page: Any, config: Any, files: Files) -> str:
    """Rewrite the links to such files."""
    uri: str = page.file.src_uri
    mirrored = uri.startswith(f"{_MIRROR}/")
    source = ROOT / uri.removeprefix(f"{_MIRROR}/") if mirrored else ROOT / "docs" / uri

    def rewritten(link: re.Match[str]) -> str:
        start, path, anchor, end = link.groups(default="")
        target = _target(source, path)
        if target.is_relative_to(ROOT / "docs"):
            found = target.relative_to(ROOT / "docs").as_posix()
        elif target.is_relative_to(ROOT):
            found = f"{_MIRROR}/{target.relative_to(ROOT).as_posix()}"
        else:
            return link[0]
        return f"{start}{posixpath.relpath(found, posixpath.dirname(uri))}{anchor}{end}"

    return _LINK.sub(rewritten, markdown)


def _target(page: Path, path: str) -> Path:
    """The file that a link on ``page`` names. A folder stands for its README.md."""
    target = (page.parent / path).resolve()
    return target / "README.md" if target.is_dir() else target
