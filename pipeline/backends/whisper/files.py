"""The files of a speech model, where they are found, and what is known of the model."""

from __future__ import annotations

import dataclasses
import logging
import os
from pathlib import Path

from ...errors import ModelError, UsageError
from ...store import FileSet, KnownModel, ModelRef, Thresholds, resolve_model
from ..asr_options import AsrConfig
from .guards import SHORT_TOKENS

log = logging.getLogger(__name__)

_SYSTRAN = "tiny.en tiny base.en base small.en small medium.en medium large-v1 large-v2 large-v3"
_DISTILLED = "distil-large-v2 distil-medium.en distil-small.en distil-large-v3"
# Size → hub id, as in faster-whisper, whose own download by size shows no progress and keeps broken files.
_SIZES = {
    **{size: f"Systran/faster-whisper-{size}" for size in _SYSTRAN.split()},
    "large": "Systran/faster-whisper-large-v3",
    **{size: f"Systran/faster-{size.replace('-', '-whisper-', 1)}" for size in _DISTILLED.split()},
    "distil-large-v3.5": "distil-whisper/distil-large-v3.5-ct2",
    **dict.fromkeys(("large-v3-turbo", "turbo"), "mobiuslabsgmbh/faster-whisper-large-v3-turbo"),
}

RECOGNIZER_FILES = FileSet(
    ("config.json", "model.bin", "tokenizer.json", "vocabulary.*"),
    # Unused here, but needed by other programs that share the cache.
    optional=("preprocessor_config.json",),
)


def thresholds(config: AsrConfig, known: KnownModel | None) -> Thresholds:
    """The rejection thresholds of a model: configured values, else the model's known ones.

    A configured threshold also replaces the related one: the log-probability of a short text becomes three times the
    configured one per token, and the doubtful no-speech probability is at least the configured one.
    """
    thresholds = known.thresholds if known is not None else Thresholds()
    if (no_speech := config.no_speech_threshold) is not None:
        doubtful = max(thresholds.doubtful_no_speech, no_speech)
        thresholds = dataclasses.replace(thresholds, no_speech=no_speech, doubtful_no_speech=doubtful)
    if (least := config.log_probability_threshold) is not None:
        thresholds = dataclasses.replace(thresholds, log_probability=least, text_log_probability=SHORT_TOKENS * least)
    if (ratio := config.compression_ratio_threshold) is not None:
        thresholds = dataclasses.replace(thresholds, compression_ratio=ratio)
    return thresholds


def check_files(directory: Path, config: AsrConfig, known: KnownModel | None) -> None:
    """Check that the directory of the configured model has all files, and that its window is long enough for the model."""
    if missing := RECOGNIZER_FILES.missing_from(directory):
        raise ModelError(
            f"{directory} lacks {', '.join(missing)}: not a whole CTranslate2 Whisper model; "
            "convert one with ct2-transformers-converter (with --copy_files tokenizer.json preprocessor_config.json)"
        )
    if known is None:
        log.warning("%s is not a known model; using Whisper's default thresholds", config.model)
    shortest_s = known.shortest_window_s if known is not None else KnownModel.shortest_window_s
    if config.window_s < shortest_s:
        raise UsageError(
            f"asr.window_s is {config.window_s:g}; {config.model} needs at least {shortest_s:g} s: with less, "
            "transcripts loop"
        )


def find_recognizer(config: AsrConfig) -> Path:
    """The directory of the configured Whisper model; fetched if necessary."""
    ref = model_ref(config)
    if "/" not in ref.source and not os.path.exists(ref.source):
        raise UsageError(
            f"there is no speech model {ref.source!r}; give one of {', '.join(_SIZES)}, a directory, or a hub id such as owner/name"
        )
    return resolve_model(ref)


def model_ref(config: AsrConfig) -> ModelRef:
    """The model that the configuration names. A Whisper size stands for its hub id, and a known model for its known revision."""
    name = config.model if os.path.isdir(config.model) else _SIZES.get(config.model, config.model)
    return ModelRef.named(name, config.revision, RECOGNIZER_FILES)
