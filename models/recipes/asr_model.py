"""The recogniser's network: Whisper's architecture, its padding to 30 s sampled, and its conversion."""

from __future__ import annotations

import json
import math
import random
import shutil
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from lineage import Shape
from pieces import SPECIALS
from tokenizers import Tokenizer
from transformers import GenerationConfig, PreTrainedTokenizerFast, WhisperConfig, WhisperForConditionalGeneration
from voices import SAMPLE_RATE

POSITIONS = 1500  # Whisper's encoder positions for 30 s; faster-whisper pads every window to them
HEADS = 4


def make_model(tokenizer: Tokenizer, shape: Shape) -> WhisperForConditionalGeneration:
    identity = {token: tokenizer.token_to_id(token) for token in SPECIALS[:9]}
    config = WhisperConfig(
        vocab_size=tokenizer.get_vocab_size(),
        num_mel_bins=80,
        d_model=shape.d_model,
        encoder_layers=shape.encoder_layers,
        decoder_layers=shape.decoder_layers,
        encoder_attention_heads=HEADS,
        decoder_attention_heads=HEADS,
        encoder_ffn_dim=shape.ffn,
        decoder_ffn_dim=shape.ffn,
        max_source_positions=POSITIONS,
        max_target_positions=448,
        dropout=0.0,
        pad_token_id=identity["<|endoftext|>"],
        bos_token_id=identity["<|endoftext|>"],
        eos_token_id=identity["<|endoftext|>"],
        decoder_start_token_id=identity["<|startoftranscript|>"],
        begin_suppress_tokens=[identity["<|endoftext|>"]],  # not the space's piece, with which words can begin
        suppress_tokens=[],
    )
    return WhisperForConditionalGeneration(config)


def _dropped(x: torch.Tensor, share: float) -> torch.Tensor:
    return F.dropout(x, share) if share else x  # a share of 0 takes time, too


def _heads(x: torch.Tensor, heads: int) -> torch.Tensor:
    return x.view(x.shape[0], x.shape[1], heads, -1).transpose(1, 2)


def _attend(
    block: Any, x: torch.Tensor, memory: torch.Tensor, bias: float = 0.0, real: int = 0, causal: bool = False
) -> torch.Tensor:
    """``bias`` is added to the logits of the positions of ``memory`` from ``real`` on."""
    if memory is x:  # one product instead of three
        weight = torch.cat([block.q_proj.weight, block.k_proj.weight, block.v_proj.weight])
        offset = torch.cat([block.q_proj.bias, torch.zeros_like(block.q_proj.bias), block.v_proj.bias])
        parts = F.linear(x, weight, offset).chunk(3, -1)
    else:
        parts = block.q_proj(x), block.k_proj(memory), block.v_proj(memory)
    query, key, value = (_heads(part, block.num_heads) for part in parts)
    scores = (query * query.shape[-1] ** -0.5) @ key.transpose(-1, -2)  # F.scaled_dot_product_attention: slower on CPUs
    if bias:
        scores[..., real:] += bias
    if causal:
        scores = scores.masked_fill(torch.ones(scores.shape[-2:], dtype=torch.bool, device=x.device).triu(1), -math.inf)
    mixed = scores.softmax(-1) @ value
    return block.out_proj(mixed.transpose(1, 2).flatten(2))


def _normed(norm: Any, x: torch.Tensor) -> torch.Tensor:
    """In bfloat16 where products are: cast once, not by every product that takes it."""
    normed: torch.Tensor = norm(x)
    return normed.to(torch.bfloat16) if torch.is_autocast_enabled(x.device.type) else normed


def encode(model: Any, features: torch.Tensor, stride: int, dropout: float) -> tuple[torch.Tensor, float, int]:
    """Whisper's encoder over ``features`` [B, 80, T] as if padded with zeros to 30 s, at a fraction of the cost.

    Past the speech all convolution outputs are one constant, and neighbouring positions differ little: every
    ``stride``-th padding position stands for its neighbours, its attention logit raised by log(stride). Returns the
    states [B, T/2 + sampled, d_model], that log and the number of positions that hold features.
    """
    encoder = model.model.encoder
    x = F.gelu(encoder.conv2(F.gelu(encoder.conv1(F.pad(features, (0, 4))))))
    real = x.shape[2] - 1  # the last output saw the convolution's own border, not more zeros
    silence = x.new_zeros(1, features.shape[1], 12)
    constant = F.gelu(encoder.conv2(F.gelu(encoder.conv1(silence))))[:, :, 3:4]
    offset = random.randrange(stride)
    sampled = torch.arange(real + offset, POSITIONS, stride, device=x.device)
    x = torch.cat([x[:, :, :real], constant.expand(x.shape[0], -1, len(sampled))], dim=2).transpose(1, 2)
    positions = torch.cat([torch.arange(real, device=x.device), sampled])
    x = _dropped(x + encoder.embed_positions.weight[positions], dropout)
    bias = math.log((POSITIONS - real) / max(1, len(sampled)))
    for layer in encoder.layers:
        normed = _normed(layer.self_attn_layer_norm, x)
        x = x + _dropped(_attend(layer.self_attn, normed, normed, bias, real), dropout)
        x = x + _dropped(layer.fc2(F.gelu(layer.fc1(_normed(layer.final_layer_norm, x)))), dropout)
    return _normed(encoder.layer_norm, x), bias, real


def decode(
    model: Any, tokens: torch.Tensor, memory: torch.Tensor, bias: float, real: int, dropout: float
) -> torch.Tensor:
    """Logits [B, L, vocabulary] of ``tokens`` [B, L] against what ``encode`` returned."""
    decoder = model.model.decoder
    x = decoder.embed_tokens(tokens) + decoder.embed_positions.weight[: tokens.shape[1]]
    x = _dropped(x, dropout)
    for layer in decoder.layers:
        normed = _normed(layer.self_attn_layer_norm, x)
        x = x + _dropped(_attend(layer.self_attn, normed, normed, causal=True), dropout)
        heard = _attend(layer.encoder_attn, _normed(layer.encoder_attn_layer_norm, x), memory, bias, real)
        x = x + _dropped(heard, dropout)
        x = x + _dropped(layer.fc2(F.gelu(layer.fc1(_normed(layer.final_layer_norm, x)))), dropout)
    return F.linear(_normed(decoder.layer_norm, x), decoder.embed_tokens.weight)


# --- conversion -----------------------------------------------------------------------------------------------------


def convert(work: Path, destination: Path, shape: Shape, weights: dict[str, torch.Tensor]) -> None:
    """Write the CTranslate2 int8 model that faster-whisper loads, of ``weights`` and the tokenizer in ``work``."""
    from ctranslate2.converters import TransformersConverter

    tokenizer = Tokenizer.from_file(str(work / "tokenizer.json"))
    model = make_model(tokenizer, shape)
    model.load_state_dict(weights)
    folder = work / "hf"
    shutil.rmtree(folder, ignore_errors=True)
    config = model.config
    heads = [[layer, head] for layer in range(config.decoder_layers) for head in range(config.decoder_attention_heads)]
    model.generation_config = GenerationConfig(
        decoder_start_token_id=config.decoder_start_token_id,
        eos_token_id=config.eos_token_id,
        pad_token_id=config.pad_token_id,
        begin_suppress_tokens=config.begin_suppress_tokens,
        suppress_tokens=[],
        alignment_heads=heads,
        no_timestamps_token_id=tokenizer.token_to_id("<|notimestamps|>"),
        max_length=448,
    )
    config.begin_suppress_tokens = config.suppress_tokens = None
    model.save_pretrained(folder)
    PreTrainedTokenizerFast(
        tokenizer_file=str(work / "tokenizer.json"),
        unk_token="<|endoftext|>",
        bos_token="<|endoftext|>",
        eos_token="<|endoftext|>",
    ).save_pretrained(folder)
    (folder / "preprocessor_config.json").write_text(
        json.dumps(
            {
                "feature_extractor_type": "WhisperFeatureExtractor",
                "feature_size": 80,
                "sampling_rate": SAMPLE_RATE,
                "hop_length": 160,
                "n_fft": 400,
                "chunk_length": 30,
                "nb_max_frames": 3000,
            }
        )
    )
    converted = work / "converted"
    TransformersConverter(str(folder), copy_files=["tokenizer.json", "preprocessor_config.json"]).convert(
        str(converted), quantization="int8", force=True
    )
    destination.mkdir(parents=True, exist_ok=True)
    for name in ("config.json", "model.bin", "tokenizer.json", "preprocessor_config.json", "vocabulary.json"):
        shutil.copy(converted / name, destination / name)
