"""The faster-whisper adapter: a speech segment in, a transcript with Whisper's doubts out."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
from faster_whisper import WhisperModel

# Whisper size → hub id. faster-whisper's own way to fetch by size shows no progress and keeps broken downloads.
from faster_whisper.utils import _MODELS as _SIZES

from pipeline.asr.guards import compression_ratio, rejection
from pipeline.asr.words import WordAligner, plausible
from pipeline.config import AsrConfig
from pipeline.errors import ModelError, UsageError
from pipeline.events import SpeechSegment, Transcript
from pipeline.hub import FileSet, resolve_model

RECOGNIZER_FILES = FileSet(
    ("config.json", "model.bin", "tokenizer.json", "vocabulary.*"),
    # Says how many mel bands a model takes; those of Whisper before large-v3 may lack it.
    optional=("preprocessor_config.json",),
)


class WhisperRecognizer:
    """A loaded Whisper model and the language that it listens for."""

    def __init__(self, config: AsrConfig, language: str, directory: Path | None = None) -> None:
        """Load the model from ``directory``, or find it first by ``find_recognizer``.

        Raises:
            ModelError: the directory is incomplete or damaged.
            DownloadError: not in the cache, and it cannot be fetched.
            UsageError: the model does not know the language.
        """
        self.config, self.language = config, language
        directory = directory or find_recognizer(config)
        if missing := RECOGNIZER_FILES.missing_from(directory):
            raise ModelError(
                f"{directory} lacks {', '.join(missing)}: not a whole CTranslate2 Whisper model; "
                "convert one with ct2-transformers-converter (with --copy_files tokenizer.json preprocessor_config.json)"
            )
        try:
            self._model = WhisperModel(
                str(directory), device="cpu", compute_type=config.compute_type, cpu_threads=config.threads
            )
        except Exception as error:  # CTranslate2 raises RuntimeError, ValueError and others for damaged files
            raise ModelError(f"faster-whisper cannot load {directory}: {error}; fetch or convert it again") from error
        self._aligner = WordAligner(self._model)
        if language not in self._model.supported_languages:
            known = ", ".join(sorted(self._model.supported_languages))
            raise UsageError(
                f"the speech model {config.model} does not know the language {language!r}; it knows {known}"
            )

    def transcribe(self, segment: SpeechSegment, beam_size: int | None = None) -> Transcript:
        """Recognise one segment; the transcript's ``rejected`` says if it must not be translated.

        ``beam_size`` takes the place of the configured one.
        """
        self._aligner.clear()
        segments, _ = self._model.transcribe(
            segment.samples.astype(np.float32) / 32768.0,
            language=self.language,
            beam_size=beam_size or self.config.beam_size,
            length_penalty=self.config.length_penalty,
            # The endpointer did this already; text of the segment before must not leak into this one.
            vad_filter=False,
            condition_on_previous_text=False,
            without_timestamps=True,
            word_timestamps=self.config.word_timestamps,
            # One attempt: retrying at higher temperatures multiplies the delay, and what is doubtful is flagged.
            temperature=0.0,
            # These rules are applied below, where what they drop is still seen and counted.
            no_speech_threshold=None,
            log_prob_threshold=None,
            compression_ratio_threshold=None,
        )
        parts = list(segments)
        text = "".join(part.text for part in parts).strip()
        length = sum(len(part.tokens) for part in parts)
        log_probability = sum(part.avg_logprob * len(part.tokens) for part in parts) / length if length else 0.0
        no_speech = min((part.no_speech_prob for part in parts), default=1.0)
        ratio = compression_ratio(text)
        words = self._aligner.words(segment.start_s)
        return Transcript(
            segment_id=segment.id,
            start_s=segment.start_s,
            end_s=segment.end_s,
            text=text,
            language=self.language,
            no_speech_probability=no_speech,
            mean_log_probability=log_probability,
            compression_ratio=ratio,
            rejected=rejection(text, no_speech, log_probability, ratio, self.config),
            heard_s=segment.heard_s,
            speech_end_s=segment.speech_end_s,
            words=tuple(words) if plausible(words, text, segment.start_s, segment.end_s) else (),
        )


def find_recognizer(config: AsrConfig) -> Path:
    """The directory of the configured Whisper model, fetched if it is not in the cache.

    Raises:
        ModelError, DownloadError: see ``resolve_model``.
    """
    return resolve_model(recognizer_name(config), config.revision, RECOGNIZER_FILES)


def recognizer_name(config: AsrConfig) -> str:
    """The directory or hub id that the configuration means: a Whisper size stands for one."""
    return config.model if os.path.isdir(config.model) else _SIZES.get(config.model, config.model)
