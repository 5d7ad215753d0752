"""Checks of a Whisper model before it recognises speech: its files, its prompt, and one run."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

from ...errors import ModelError, UsageError, one_line
from ...events import SAMPLE_RATE
from ..options import AsrConfig
from .engine import MOST_PROMPT_TOKENS, WhisperEngine
from .files import RECOGNIZER_FILES
from .language_id import whisper_code


def check_whole(directory: Path) -> None:
    """Check that a model's directory has all files."""
    if missing := RECOGNIZER_FILES.missing_from(directory):
        raise ModelError(
            f"{directory} lacks {', '.join(missing)}: not a whole CTranslate2 Whisper model; "
            "convert one with ct2-transformers-converter (with --copy_files tokenizer.json preprocessor_config.json)"
        )


def prompt_tokens(engine: WhisperEngine, config: AsrConfig) -> tuple[int, ...]:
    """The tokens of the configured hot words and prompt."""
    text = " ".join(part for part in (config.hotwords, config.prompt) if part)
    tokens = engine.tokens(f" {text.strip()}") if text else ()
    if len(tokens) > MOST_PROMPT_TOKENS:
        raise UsageError(
            f"asr.hotwords and asr.prompt have {len(tokens)} tokens together; Whisper takes {MOST_PROMPT_TOKENS} at most, "
            "and every one makes each segment slower: shorten them"
        )
    return tokens


def check_runs(engine: WhisperEngine, config: AsrConfig, prompt: tuple[int, ...]) -> dict[str, float]:
    """Run the model once on silence.

    Returns:
        The probability of each language there, if the model is used for several; otherwise an empty dictionary.
    """
    try:
        encoded = engine.encode(np.zeros(SAMPLE_RATE, np.int16), config.window_s)
        found = engine.generate(encoded, 1, prompt)
        on_silence = engine.detect(encoded) if len(engine.languages) > 1 else {}
    except (RuntimeError, ValueError) as error:
        raise ModelError(f"the speech model {config.model} cannot run: {one_line(error)}; fetch it again") from error
    if not math.isfinite(found.log_probability + found.no_speech_probability):
        raise ModelError(f"the speech model {config.model} is damaged: its scores are not finite; fetch it again")
    return {language: on_silence[whisper_code(language)] for language in engine.languages if on_silence}
