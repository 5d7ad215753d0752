"""Write a checkpoint in transformers' format, without PyTorch: config.json, model.safetensors, tokenizer files."""

from __future__ import annotations

import json
from pathlib import Path

from safetensors.numpy import save_file

from pipeline.nmt.compiler.assemble import BIAS, DECODER, ENCODER, HEAD, SHARED
from pipeline.nmt.compiler.checkpoint import Checkpoint


def write_transformers(checkpoint: Checkpoint, directory: Path) -> None:
    """Write the model into ``directory``, which must exist."""
    weights = dict(checkpoint.weights)
    shared, tied = weights[ENCODER] is weights[DECODER], weights[HEAD] is weights[DECODER]
    if shared:
        del weights[ENCODER]
        weights[SHARED] = weights.pop(DECODER)
    if tied:
        del weights[HEAD]
    weights[BIAS] = weights[BIAS][None]
    named = {name if name in (BIAS, HEAD) else f"model.{name}": value for name, value in weights.items()}
    save_file(named, directory / "model.safetensors", {"format": "pt"})
    config = {**checkpoint.config, "share_encoder_decoder_embeddings": shared, "tie_word_embeddings": tied}
    (directory / "config.json").write_text(json.dumps(config, indent=1), "utf-8")
    for name, content in checkpoint.files.items():
        (directory / name).write_bytes(content)
