"""What the ONNX files of a model directory are, found from their inputs and outputs, never from their names alone."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from pipeline.errors import ModelError
from pipeline.nmt.onnx_header import OnnxHeader, read_header

PAST = re.compile(r"past_key_values\.(\d+)\.(decoder|encoder)\.(key|value)")
EXPORT_HINT = "export it with: optimum-cli export onnx --model MODEL --task text2text-generation-with-past DIRECTORY"


class Role(Enum):
    """What one ONNX file does."""

    ENCODER = "encoder"
    MERGED = "merged decoder"
    """First and later steps in one graph, chosen by use_cache_branch."""
    FIRST_STEP = "first-step decoder"
    """No past; returns decoder and encoder KV."""
    WITH_PAST = "decoder with past"
    """Takes decoder and encoder KV."""


@dataclass(frozen=True)
class Layout:
    """The files to run and the sizes that their graphs have."""

    encoder: OnnxHeader
    merged: OnnxHeader | None
    first_step: OnnxHeader | None
    with_past: OnnxHeader | None
    layers: int
    heads: int
    head_dim: int
    vocabulary: int

    @property
    def name(self) -> str:
        return "merged" if self.merged else "split"


def classify(header: OnnxHeader) -> Role | str:
    """The role of a graph, or, as a sentence, why it has none that can be used here."""
    inputs, outputs = set(header.inputs), set(header.outputs)
    past = {match.group(2) for name in inputs if (match := PAST.fullmatch(name))}
    if "last_hidden_state" in outputs and "logits" not in outputs:
        missing = {"input_ids", "attention_mask"} - inputs
        return f"an encoder without {_listed(missing)}" if missing else Role.ENCODER
    if "logits" not in outputs:
        return f"no logits among its outputs ({_listed(outputs)})"
    if missing := {"input_ids", "encoder_attention_mask"} - inputs:
        return f"a decoder without {_listed(missing)}"
    presents = {name for name in outputs if name.startswith("present.")}
    if "use_cache_branch" in inputs:
        if past != {"decoder", "encoder"} or "encoder_hidden_states" not in inputs:
            return "a merged decoder without encoder KV or encoder_hidden_states among its inputs"
        return Role.MERGED
    if past == {"decoder", "encoder"}:
        return Role.WITH_PAST
    if past == {"decoder"}:
        return "a decoder without encoder KV among its inputs (15- and 16-input exports)"
    if "encoder_hidden_states" in inputs and any(".encoder." in name for name in presents):
        return Role.FIRST_STEP
    return "a decoder without KV among its outputs"


def find_layout(directory: Path, suffix: str = "") -> Layout:
    """Find what to run in a model directory (or its ``onnx`` folder).

    ``suffix`` selects among precisions of one model, as hub repositories name them: "_quantized", "_fp16" …

    Raises:
        ModelError: not a directory, or no complete set of graphs; the message lists what was found.
    """
    if not directory.is_dir():
        raise ModelError(f"no such model directory: {directory}; give the folder that holds the .onnx files")
    folders = [directory, directory / "onnx"]
    paths = [path for folder in folders for path in sorted(folder.glob("*.onnx")) if _suffix(path) == suffix]
    if not paths:
        others = sorted({_suffix(path) or "(none)" for folder in folders for path in folder.glob("*.onnx")})
        hint = f"; there are files with the suffixes {', '.join(others)}" if others else f"; {EXPORT_HINT}"
        raise ModelError(f"{directory} has no .onnx files" + (f" with the suffix {suffix!r}" if others else "") + hint)
    roles: dict[Role, OnnxHeader] = {}
    refused: list[str] = []
    for path in paths:
        header = read_header(path)
        role = classify(header)
        if isinstance(role, str):
            refused.append(f"{path.name} is {role}")
        elif role in roles:
            refused.append(f"{path.name} and {roles[role].path.name} are both a {role.value}")
        else:
            roles[role] = header
    encoder = roles.get(Role.ENCODER)
    merged, first, later = (roles.get(role) for role in (Role.MERGED, Role.FIRST_STEP, Role.WITH_PAST))
    if encoder is None or not (merged or (first and later)):
        needed = [] if encoder else ["an encoder"]
        if not merged and not (first and later):
            needed.append("a merged decoder, or a first-step decoder with a decoder with past")
        found = [f"{header.path.name} is a {role.value}" for role, header in roles.items()] + refused
        raise ModelError(f"{directory} lacks {' and '.join(needed)}. Found: {'; '.join(found)}. {EXPORT_HINT}")
    cached = merged or later
    assert cached is not None
    layers, heads, head_dim = _sizes(cached)
    vocabulary = cached.outputs["logits"].shape[-1]
    if not isinstance(vocabulary, int):
        raise ModelError(f"{cached.path}: the logits have no fixed vocabulary size; {EXPORT_HINT}")
    return Layout(
        encoder, merged, None if merged else first, None if merged else later, layers, heads, head_dim, vocabulary
    )


def _suffix(path: Path) -> str:
    match = re.search(r"_(fp16|int8|uint8|quantized|q4|q4f16|bnb4)$", path.stem)
    return match.group(0) if match else ""


def _sizes(header: OnnxHeader) -> tuple[int, int, int]:
    """(layers, heads, head size) from the past inputs [batch, heads, length, head size]."""
    names = [match for name in header.inputs if (match := PAST.fullmatch(name))]
    layers = 1 + max(int(match.group(1)) for match in names)
    expected = {
        f"past_key_values.{i}.{side}.{kind}"
        for i in range(layers)
        for side in ("decoder", "encoder")
        for kind in ("key", "value")
    }
    if missing := expected - set(header.inputs):
        raise ModelError(f"{header.path}: inputs are missing: {_listed(missing)}; {EXPORT_HINT}")
    shapes = {
        (port.shape[1], port.shape[3])
        for name, port in header.inputs.items()
        if PAST.fullmatch(name) and len(port.shape) == 4
    }
    if len(shapes) != 1:
        raise ModelError(
            f"{header.path}: the past inputs do not share one [batch, heads, length, size] shape; {EXPORT_HINT}"
        )
    heads, head_dim = shapes.pop()
    if not isinstance(heads, int) or not isinstance(head_dim, int):
        raise ModelError(f"{header.path}: the past inputs have no fixed number of heads and head size; {EXPORT_HINT}")
    return layers, heads, head_dim


def _listed(names: set[str]) -> str:
    return ", ".join(sorted(names))
