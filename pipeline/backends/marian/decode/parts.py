"""The parts of a translation model, ready to decode; a family of models is a file with a function that makes them."""

from __future__ import annotations

from dataclasses import dataclass

from .decoder import Decoder
from .generation import GenerationOptions
from .tokenizer import MarianTokenizer


@dataclass(frozen=True)
class ModelParts:
    """What a family makes of a directory with its files, in ``load(directory, options)``; None if these are of another family."""

    tokenizer: MarianTokenizer
    decoder: Decoder
    """Checked with a first run."""
    generation: GenerationOptions
    languages: tuple[str | None, str | None]
    """(source, target) as two-letter codes; None if the files do not name one."""
    max_source_tokens: int
    """Longer sentences are translated in parts."""
    scripts: tuple[str | None, str | None] = (None, None)
    """(source, target) in ISO 15924; None if the files do not name one."""
    knows_print_only: bool = False
    """Whether sentences are translated as they would be printed."""
