"""``serve --terms-from``: terms of documents, which speakers are offered."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ..config import PipelineConfig
from ..console import some_path, tell
from ..errors import UsageError

if TYPE_CHECKING:
    from ..core import Models
    from ..glossary import Candidate


def add_terms_argument(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--terms-from",
        type=some_path,
        nargs="+",
        default=[],
        metavar="FILE",
        help="documents (PDF, DOCX, PPTX, HTML, text) whose names and rare words speakers are offered as terms",
    )


def proposals_of(paths: Sequence[Path], config: PipelineConfig, models: Models) -> Sequence[Candidate]:
    """The terms of all documents together. Raises UsageError: one cannot be read."""
    if not paths:
        return ()
    from ..glossary import text_of_document
    from ..server import proposed

    texts = []
    for path in paths:
        try:
            texts.append(text_of_document(path))
        except UsageError as error:
            raise UsageError(f"--terms-from {path}: {error}") from None
    terms = proposed("\n".join(texts), config.languages.spoken[0], models)
    tell(f"terms proposed to speakers: {len(terms)}")
    return terms
