"""Free synthetic voices: espeak-ng (GPL program, its output is free to use) and flite (BSD-style licence).

Both are Debian packages. A voice is a string: ``flite:slt`` or ``espeak:en-us+f2``.
"""

from __future__ import annotations

import io
import random
import shutil
import subprocess
import sys
import tempfile
import wave
from pathlib import Path

import numpy as np
from av import AudioFrame
from av.audio.resampler import AudioResampler

SAMPLE_RATE = 16_000

TRAINING_VOICES: tuple[str, ...] = (
    *(f"flite:{name}" for name in ("slt", "rms", "awb", "kal16") for _ in range(4)),
    *(
        f"espeak:{accent}+{variant}"
        for accent in ("en-us", "en-gb", "en-gb-x-rp")
        for variant in ("m1", "m3", "m4", "f1", "f2", "f3")
    ),
)
UNSEEN_VOICES: tuple[str, ...] = ("espeak:en-us+m7", "espeak:en-gb+f4", "espeak:en-gb-scotland+m2", "espeak:en-us+f5")


def require_programs() -> None:
    """Exit with one line if a synthesiser is missing."""
    missing = [name for name in ("espeak-ng", "flite") if shutil.which(name) is None]
    if missing:
        sys.exit(f"missing program: {', '.join(missing)}. Install with: apt-get install {' '.join(missing)}")


def read_wav(file: io.BytesIO) -> np.ndarray:
    """A mono 16-bit WAV as float32 samples in [-1, 1] at 16 kHz."""
    with wave.open(file) as wav:
        rate = wav.getframerate()
        # espeak-ng writes to a pipe and cannot fill in the length: read what is there.
        pcm = np.frombuffer(wav.readframes(wav.getnframes()), np.int16)
    if rate != SAMPLE_RATE:
        frame = AudioFrame.from_ndarray(pcm[None], format="s16", layout="mono")
        frame.sample_rate = rate
        resampler = AudioResampler(format="s16", layout="mono", rate=SAMPLE_RATE)
        pcm = np.concatenate([part.to_ndarray()[0] for part in (*resampler.resample(frame), *resampler.resample(None))])
    return pcm.astype(np.float32) / 32768


def speak(text: str, voice: str, *, stretch: float = 1.0, pitch: float = 1.0) -> np.ndarray:
    """``text`` as float32 samples in [-1, 1] at 16 kHz; ``stretch`` > 1 is slower, ``pitch`` > 1 is higher."""
    engine, name = voice.split(":")
    if engine == "flite":
        with tempfile.TemporaryDirectory() as folder:
            wav = Path(folder) / "out.wav"
            base = {"slt": 170.0, "rms": 95.0, "awb": 130.0, "kal16": 105.0}[name]
            subprocess.run(
                [
                    "flite",
                    "-voice",
                    name,
                    "-t",
                    text,
                    "-o",
                    str(wav),
                    "--setf",
                    f"duration_stretch={stretch:.3f}",
                    "--setf",
                    f"int_f0_target_mean={base * pitch:.1f}",
                ],
                check=True,
                capture_output=True,
            )
            return read_wav(io.BytesIO(wav.read_bytes()))
    done = subprocess.run(
        ["espeak-ng", "-v", name, "-s", str(int(160 / stretch)), "-p", str(int(50 * pitch)), "--stdout", text],
        check=True,
        capture_output=True,
    )
    return read_wav(io.BytesIO(done.stdout))


def random_prosody(rng: random.Random) -> dict[str, float]:
    return {"stretch": rng.uniform(0.85, 1.2), "pitch": rng.uniform(0.85, 1.2)}
