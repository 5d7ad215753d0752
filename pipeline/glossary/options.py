"""Options: the glossary of a run."""

from __future__ import annotations

from dataclasses import dataclass

from pipeline.bounds import Checked, within


@dataclass(frozen=True)
class GlossaryOptions(Checked):
    """Names and terms to recognise and translate as they are given."""

    # A TSV or CSV file of terms; None: no glossary. It is read again when it changes.
    file: str | None = None
    # Terms that the recogniser is told to expect in a stretch of speech: those said lately, then the first of the file.
    prompt_terms: int = within(10, 0, 50)
    # Correct words that sound and look like a term to it.
    correct: bool = True
