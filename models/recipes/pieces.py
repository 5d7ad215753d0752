"""The recogniser's tokenizer: pieces of words and Whisper's special tokens."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers

STEP_S = 0.02  # of a timestamp, and of an encoder position
PIECES = 1000
SPECIALS = (
    "<|endoftext|>",
    "<|startoftranscript|>",
    "<|en|>",
    "<|translate|>",
    "<|transcribe|>",
    "<|startoflm|>",
    "<|startofprev|>",
    "<|nospeech|>",
    "<|notimestamps|>",
    *(f"<|{i * STEP_S:.2f}|>" for i in range(1501)),
)


def make_tokenizer(path: Path, texts: list[str]) -> Tokenizer:
    """A byte-level BPE of the texts and Whisper's special tokens, kept at ``path``; that which is there, if one is."""
    if not path.exists():
        tokenizer = Tokenizer(models.BPE())
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        tokenizer.decoder = decoders.ByteLevel()
        # The whole byte alphabet is kept: faster-whisper encodes symbols that no training text holds.
        trainer = trainers.BpeTrainer(
            vocab_size=PIECES, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False
        )
        tokenizer.train_from_iterator([" " + text for text in texts], trainer)
        tokenizer.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in SPECIALS])
        keep_tokenizer(path, tokenizer.to_str())
    return Tokenizer.from_file(str(path))


def keep_tokenizer(path: Path, tokenizer: str) -> None:
    """Keep a tokenizer's JSON at ``path``, with pieces of their own for " -", " '" and the first byte of " ♪".

    faster-whisper never writes the first piece of any of these signs. Were that the space's, no word could begin with
    it, though words must whose first letters no piece joins to the space. The new pieces take the places of bytes that
    UTF-8 never has.
    """
    spec: dict[str, Any] = json.loads(tokenizer)
    pieces, merges = spec["model"]["vocab"], spec["model"]["merges"]
    for sign, byte in (("-", "\xfe"), ("'", "\xff"), ("\xe2", "\xfd")):
        if f"Ġ{sign}" not in pieces:
            pieces[f"Ġ{sign}"] = pieces.pop(byte)
            merges.append(["Ġ", sign])
    spec["model"]["vocab"] = dict(sorted(pieces.items(), key=lambda piece: piece[1]))
    partial = path.with_suffix(".partial")
    partial.write_text(json.dumps(spec, indent=2, ensure_ascii=False), "utf-8")
    partial.rename(path)
