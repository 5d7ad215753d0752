"""The graphs of a model that run together, and the sizes of what they pass."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ...onnx_header import OnnxHeader

PAST = re.compile(r"past_key_values\.(\d{1,4})\.(decoder|encoder)\.(key|value)")
COMPILE_HINT = "compile it again with: python -m pipeline.models compile CHECKPOINT DIRECTORY"


class Kind(Enum):
    """How a model's files work together, best first. The best kind that a directory allows is used."""

    STREAMING = "streaming"
    RECURRENT = "recurrent"
    """A Marian file with a recurrent decoder, which is no ONNX; its graphs are built when it is loaded."""
    MERGED = "merged"
    SPLIT = "split"
    OWN_PAST = "own-past"
    NO_PAST = "no-past"
    ONE_FILE = "one-file"


@dataclass(frozen=True)
class Layout:
    """The files to run and the sizes of their graphs."""

    kind: Kind
    encoder: OnnxHeader | None
    """None if one file holds encoder and decoder."""
    first: OnnxHeader
    """The graph of the first step."""
    later: OnnxHeader
    """The graph of all later steps; the same as ``first`` except for split models."""
    layers: int
    """Decoder layers. ``layers``, ``heads`` and ``head_dim`` are 0 if no KV is passed."""
    heads: int
    head_dim: int
    vocabulary: int | None
    """Number of scores per step; None if the graph does not declare it or leaves out ids that never occur."""
