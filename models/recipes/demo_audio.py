"""Speak the demo's recordings and the tests' sentences with flite's free voices.

    python models/recipes/demo_audio.py

Writes examples/audio/*.wav and tests/audio/*.wav: 16 kHz mono, with pauses as between people.
"""

from __future__ import annotations

import json
import wave
from pathlib import Path

import numpy as np
from heldout import RECORDINGS, TEST_SENTENCES
from voices import SAMPLE_RATE, require_voices, speak

ROOT = Path(__file__).resolve().parents[2]
PAUSE_S = 1.1


def recording(lines: tuple[tuple[str, str], ...], seed: int) -> np.ndarray:
    """The lines one after another with pauses, over a faint room noise; int16 samples."""
    rng = np.random.default_rng(seed)
    parts = [np.zeros(int(0.6 * SAMPLE_RATE))]
    for voice, text in lines:
        parts += [speak(text, f"flite:{voice}") * 0.8, np.zeros(int(rng.uniform(0.8, 1.2) * PAUSE_S * SAMPLE_RATE))]
    audio = np.concatenate(parts)
    audio += rng.standard_normal(len(audio)) * 3e-4
    return (audio.clip(-1, 1) * 32767).astype(np.int16)


def write(path: Path, samples: np.ndarray) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(SAMPLE_RATE)
        file.writeframes(samples.tobytes())


def main() -> None:
    require_voices(tuple({f"flite:{voice}" for _, lines in RECORDINGS for voice, _ in lines}))
    for seed, (stem, lines) in enumerate(RECORDINGS):
        write(ROOT / "examples" / "audio" / f"{stem}.wav", recording(lines, seed))
    write(ROOT / "tests" / "audio" / "phrases.wav", recording(TEST_SENTENCES, seed=2))
    texts = {stem: [text for _, text in lines] for stem, lines in (*RECORDINGS, ("phrases", TEST_SENTENCES))}
    (ROOT / "tests" / "audio" / "texts.json").write_text(json.dumps(texts, indent=1) + "\n")


if __name__ == "__main__":
    main()
