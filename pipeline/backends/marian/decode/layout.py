"""Detect the layout of a model directory from the inputs and outputs of its ONNX files, not from file names alone."""

from __future__ import annotations

import os
import re
from enum import Enum
from pathlib import Path

from ....errors import ModelError
from ...onnx_header import OnnxHeader, read_header
from .graphs import COMPILE_HINT, PAST, Kind, Layout

_ENCODER_KV = re.compile(r"present\.\d{1,4}\.encoder\.(key|value)")
EXPORT_HINT = "export it with: optimum-cli export onnx --model MODEL --task text2text-generation-with-past DIRECTORY"
_CHECKPOINTS = ("model.safetensors*", "pytorch_model.bin*")
_SUFFIX = re.compile(r"_(fp16|int8|uint8|quantized|q4|q4f16|bnb4)$")
# All inputs known from Marian graphs, except past inputs.
_KNOWN_INPUTS = {
    "input_ids",
    "attention_mask",
    "decoder_input_ids",
    "decoder_attention_mask",
    "encoder_hidden_states",
    "encoder_attention_mask",
    "use_cache_branch",
    "position_ids",
    "seqlens_k",
    "total_sequence_length",
}
# Required inputs and outputs of the streaming layout's step graph.
_STREAMING_INPUTS = {"input_ids", "position_ids", "seqlens_k", "total_sequence_length"}
_STREAMING_OUTPUTS = {"token", "log_probability", "logits", "output_ids"}


class Role(Enum):
    """Role of one ONNX file. The value completes the sentence "FILE is …"."""

    STREAMING_ENCODER = "a streaming encoder"
    """Returns the cross-attention KV of every decoder layer."""
    STREAMING_STEP = "a streaming step"
    """Extends decoder KV in place and chooses the next token."""
    ENCODER = "an encoder"
    MERGED = "a merged decoder"
    """First and later steps in one graph, selected by use_cache_branch; takes decoder and encoder KV."""
    FIRST_STEP = "a first-step decoder"
    """Has no past inputs; returns decoder and encoder KV."""
    WITH_PAST = "a decoder with past"
    """Takes decoder and encoder KV."""
    OWN_PAST = "a decoder with its own past only"
    """Takes decoder KV and recomputes cross-attention from the encoder's hidden states (15 or 16 inputs)."""
    NO_PAST = "a decoder without past"
    """Takes the whole prefix at every step."""
    ONE_FILE = "an encoder and decoder in one file"
    """Takes source and prefix at every step."""


def classify(header: OnnxHeader) -> Role | str:
    """Return the role of a graph, or why it cannot be used, as the end of the sentence "FILE is …"."""
    inputs, outputs = set(header.inputs), set(header.outputs)
    past = {match.group(2) for name in inputs if (match := PAST.fullmatch(name))}
    if unknown := {name for name in inputs if name not in _KNOWN_INPUTS and not PAST.fullmatch(name)}:
        return f"not a Marian graph: it has the inputs {_listed(unknown)}, which Marian models do not have"
    if "seqlens_k" in inputs:
        missing = (_STREAMING_INPUTS - inputs) | (_STREAMING_OUTPUTS - outputs)
        return f"a streaming step that lacks {_listed(missing)}" if missing else Role.STREAMING_STEP
    if inputs == {"input_ids"} and outputs and all(_ENCODER_KV.fullmatch(name) for name in outputs):
        return Role.STREAMING_ENCODER
    if "logits" not in outputs:
        if "last_hidden_state" not in outputs:
            return f"neither an encoder nor a decoder: its outputs are {_listed(outputs)}"
        missing = {"input_ids", "attention_mask"} - inputs
        return f"an encoder that lacks the inputs {_listed(missing)}" if missing else Role.ENCODER
    if not inputs & {"input_ids", "decoder_input_ids"}:
        return "a decoder that lacks the input input_ids"
    if past and "decoder_attention_mask" in inputs:
        return (
            "a decoder with past that needs decoder_attention_mask, as written by transformers.onnx; it cannot run the "
            "first step: export the model with optimum"
        )
    returned = {name for name in outputs if name.startswith("present.")}
    if "use_cache_branch" in inputs and past == {"decoder", "encoder"}:
        return Role.MERGED if "encoder_hidden_states" in inputs else "a merged decoder that lacks encoder_hidden_states"
    if past == {"decoder", "encoder"}:
        return Role.WITH_PAST
    if past == {"encoder"}:
        return "a decoder that takes encoder KV but lacks the inputs past_key_values.*.decoder.*"
    if "encoder_hidden_states" not in inputs:
        return (
            Role.ONE_FILE
            if {"input_ids", "decoder_input_ids"} <= inputs
            else "a decoder that lacks encoder_hidden_states"
        )
    if past == {"decoder"}:
        return Role.OWN_PAST
    return Role.FIRST_STEP if any(".encoder." in name for name in returned) else Role.NO_PAST


def find_files(directory: Path, suffix: str) -> list[Path]:
    """Return the .onnx files of one precision in a model directory or its ``onnx`` folder."""
    if not os.path.isdir(directory):  # Path.is_dir raises if the name is too long
        raise ModelError(f"no such model directory: {directory}; give the folder that holds the .onnx files")
    try:
        found = [path for folder in (directory, directory / "onnx") for path in sorted(folder.glob("*.onnx"))]
    except OSError as error:
        raise ModelError(f"{directory} cannot be read ({error.strerror}); check its permissions") from error
    paths = [path for path in found if _suffix(path) == suffix]
    if not paths and found:
        others = ", ".join(sorted({repr(_suffix(path)) for path in found}))
        raise ModelError(f"{directory} has no .onnx files with the suffix {suffix!r}; there are files with {others}")
    if not paths:
        checkpoint = any(any(directory.glob(name)) for name in _CHECKPOINTS)
        hint = f"compile it with: python -m pipeline.models compile {directory} OUT" if checkpoint else EXPORT_HINT
        raise ModelError(f"{directory} has no .onnx files; {hint}")
    return paths


def find_layout(directory: Path, suffix: str = "") -> Layout:
    """Find the graphs to run in a model directory (or its ``onnx`` folder).

    ``suffix`` selects the precision by the file suffix that hub repositories use: "_quantized", "_fp16" …
    """
    roles: dict[Role, OnnxHeader] = {}
    found: list[str] = []
    for path in find_files(directory, suffix):
        header = read_header(path)
        role = classify(header)
        if isinstance(role, str):
            found.append(f"{path.name} is {role}")
        elif role in roles:
            found.append(f"{path.name} is {role.value}, as {roles[role].path.name} is")
        else:
            roles[role] = header
            found.append(f"{path.name} is {role.value}")
    if Role.STREAMING_ENCODER in roles and Role.STREAMING_STEP in roles:
        return _streaming(roles[Role.STREAMING_ENCODER], roles[Role.STREAMING_STEP])
    encoder = roles.get(Role.ENCODER)
    for kind, first, later in _candidates(roles):
        if encoder is not None or kind is Kind.ONE_FILE:
            return _layout(kind, None if kind is Kind.ONE_FILE else encoder, first, later)
    needed = [] if encoder else ["an encoder"]
    if not any(True for _ in _candidates(roles)):
        needed.append("a decoder that can take the first step")
    raise ModelError(f"{directory} lacks {' and '.join(needed)}. Found: {'; '.join(found)}. {EXPORT_HINT}")


def _candidates(roles: dict[Role, OnnxHeader]) -> list[tuple[Kind, OnnxHeader, OnnxHeader]]:
    """Return the usable (kind, first step, later steps), best first."""
    candidates: list[tuple[Kind, OnnxHeader, OnnxHeader]] = []
    for role, kind in ((Role.MERGED, Kind.MERGED), (Role.OWN_PAST, Kind.OWN_PAST), (Role.NO_PAST, Kind.NO_PAST)):
        if role in roles:
            candidates.append((kind, roles[role], roles[role]))
    if Role.FIRST_STEP in roles:
        first = roles[Role.FIRST_STEP]
        if Role.WITH_PAST in roles:
            candidates.append((Kind.SPLIT, first, roles[Role.WITH_PAST]))
        candidates.append((Kind.NO_PAST, first, first))
    if Role.ONE_FILE in roles:
        candidates.append((Kind.ONE_FILE, roles[Role.ONE_FILE], roles[Role.ONE_FILE]))
    order = list(Kind)
    return sorted(candidates, key=lambda candidate: order.index(candidate[0]))


def _layout(kind: Kind, encoder: OnnxHeader | None, first: OnnxHeader, later: OnnxHeader) -> Layout:
    layers = heads = head_dim = 0
    if any(PAST.fullmatch(name) for name in later.inputs):
        layers, heads, head_dim = _sizes(later)
    shape = first.outputs["logits"].shape
    vocabulary = shape[-1] if shape and isinstance(shape[-1], int) else None
    return Layout(kind, encoder, first, later, layers, heads, head_dim, vocabulary)


def _streaming(encoder: OnnxHeader, step: OnnxHeader) -> Layout:
    layers, heads, head_dim = _sizes(step)
    wanted = {name.replace("past_key_values", "present") for name in step.inputs if ".encoder." in name}
    if missing := wanted - set(encoder.outputs):
        raise ModelError(f"{encoder.path}: outputs are missing: {_listed(missing)}; {COMPILE_HINT}")
    return Layout(Kind.STREAMING, encoder, step, step, layers, heads, head_dim, None)


def _suffix(path: Path) -> str:
    match = _SUFFIX.search(path.stem)
    return match.group(0) if match else ""


def _sizes(header: OnnxHeader) -> tuple[int, int, int]:
    """Return (layers, heads, head size) from the past inputs [batch, heads, length, head size]."""
    ports = {name: port for name, port in header.inputs.items() if PAST.fullmatch(name)}
    matches = [match for name in ports if (match := PAST.fullmatch(name))]
    sides = {match.group(2) for match in matches}
    layers = 1 + max(int(match.group(1)) for match in matches)
    if layers > len(ports):
        raise ModelError(f"{header.path}: past inputs are missing: {len(ports)} for {layers} layers; {EXPORT_HINT}")
    expected = {
        f"past_key_values.{layer}.{side}.{kind}"
        for layer in range(layers)
        for side in sides
        for kind in ("key", "value")
    }
    if missing := expected - set(ports):
        raise ModelError(f"{header.path}: inputs are missing: {_listed(missing)}; {EXPORT_HINT}")
    returned = {name.replace("past_key_values", "present") for name in expected if ".decoder." in name}
    if missing := returned - set(header.outputs):
        raise ModelError(f"{header.path}: outputs are missing: {_listed(missing)}; {EXPORT_HINT}")
    shapes = {(port.shape[1], port.shape[3]) for port in ports.values() if len(port.shape) == 4}
    if len(shapes) != 1 or any(len(port.shape) != 4 for port in ports.values()):
        raise ModelError(
            f"{header.path}: the past inputs do not share one [batch, heads, length, size] shape; {EXPORT_HINT}"
        )
    heads, head_dim = shapes.pop()
    if not (isinstance(heads, int) and isinstance(head_dim, int) and 0 < heads < 10_000 and 0 < head_dim < 100_000):
        raise ModelError(
            f"{header.path}: the past inputs have the shape [batch, {heads}, length, {head_dim}]; "
            f"expected a number of heads and a head size; {EXPORT_HINT}"
        )
    return layers, heads, head_dim


def _listed(names: set[str]) -> str:
    return ", ".join(sorted(names))
