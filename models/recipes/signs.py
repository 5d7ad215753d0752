"""Whether a recogniser's timestamps and no-speech probability mean what faster-whisper takes them to mean."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from faster_whisper import WhisperModel
from faster_whisper.audio import pad_or_trim
from faster_whisper.tokenizer import Tokenizer
from faster_whisper.transcribe import Segment
from speech import Clip, extent
from voices import SAMPLE_RATE

GAP_S = 0.7  # between two sentences of a window, at least
PIECE_S = 3.0  # of a sound in which nobody speaks
SILENT = 0.6  # no-speech probability from which Whisper takes a window for silence (openai/whisper, transcribe.py)


def _segments(model: WhisperModel, audio: np.ndarray) -> list[Segment]:
    """What faster-whisper makes of float32 ``audio`` [n] with timestamps, greedy, all that it would drop included."""
    options: dict[str, Any] = {"no_speech_threshold": None, "log_prob_threshold": None}
    return list(model.transcribe(audio, language="en", beam_size=1, temperature=0.0, **options)[0])


def timestamps(directory: Path, clips: list[Clip]) -> tuple[int, int, float]:
    """Windows of two sentences each; those that came back as two segments; the median error of their times, seconds."""
    model = WhisperModel(str(directory), compute_type="int8", cpu_threads=1)
    windows, errors, split = list(zip(clips[::2], clips[1::2], strict=False)), [], 0
    silence = np.zeros(int(GAP_S * SAMPLE_RATE))
    for pair in windows:
        parts, wanted = [silence], []
        for clip in pair:
            samples = np.asarray(clip.samples, np.float64) / 32768
            wanted += [(sum(map(len, parts)) + edge) / SAMPLE_RATE for edge in extent(samples)]
            parts += [samples, silence]
        found = _segments(model, np.concatenate(parts).astype(np.float32))
        if len(found) == len(pair):
            split += 1
            times = [edge for part in found for edge in (part.start, part.end)]
            errors += [abs(a - b) for a, b in zip(times, wanted, strict=True)]
    return len(windows), split, float(np.median(errors)) if errors else float("nan")


def silent_share(directory: Path, sounds: list[np.ndarray]) -> float:
    """The share of float [n] ``sounds`` that Whisper's rule would call silent by their no-speech probability.

    That is read where faster-whisper reads it: of a window without text it tells nothing.
    """
    model = WhisperModel(str(directory), compute_type="int8", cpu_threads=1)
    prompt = Tokenizer(model.hf_tokenizer, model.model.is_multilingual, "transcribe", "en").sot_sequence
    silent = 0
    for sound in sounds:
        encoded = model.encode(pad_or_trim(model.feature_extractor(sound.astype(np.float32))))
        (result,) = model.model.generate(encoded, [prompt], beam_size=1, max_length=2, return_no_speech_prob=True)
        silent += result.no_speech_prob > SILENT
    return silent / len(sounds)


def pieces(sound: np.ndarray, count: int) -> list[np.ndarray]:
    """``count`` pieces of ``PIECE_S`` from a sound, evenly spread."""
    length = int(PIECE_S * SAMPLE_RATE)
    return [sound[at : at + length] for at in np.linspace(0, len(sound) - length, count).astype(int)]
