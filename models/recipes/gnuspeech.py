"""Speech by GnuSpeech's model of the vocal tract: as many bodies as are drawn, whose vowels differ as people's do."""

from __future__ import annotations

import json
import random
import re
import subprocess
import tempfile
from functools import cache
from pathlib import Path

import numpy as np

PACKAGE_NAME = "@echogarden/gnuspeech-wasm@0.3.0"
FOLDER = Path.home() / ".cache/gnuspeech-wasm"
_PACKAGE = FOLDER / "package"
_DATA = _PACKAGE / "data/en"
# Tracts, cm, and their pitches, semitones: those of GnuSpeech's own child, woman and man, and of a larger man.
_PITCHES = (10.0, 15.0, 17.5, 19.0), (5.0, 0.0, -12.0, -14.0)


def installed() -> bool:
    return _DATA.is_dir()


def body(lot: str) -> dict[str, float]:
    """One of the bodies: a tract of 10.5 cm (a child's) to 19 cm, and its sections wider and narrower than the model's.

    The sections' radii are what vowels are made of: drawn once a body, they change all its vowels consistently.
    """
    rng = random.Random(f"gnuspeech {lot}")
    length = rng.choice((rng.uniform(15.5, 19.0), rng.uniform(13.0, 16.0), rng.uniform(10.5, 13.5)))
    closing = rng.uniform(16.0, 36.0)
    return {
        "vocal_tract_length": length,
        "glottal_pulse_tp": rng.uniform(30.0, 48.0),
        "glottal_pulse_tn_min": closing,
        "glottal_pulse_tn_max": closing,
        "reference_glottal_pitch": rng.gauss(float(np.interp(length, *_PITCHES)), 2.5),
        "breathiness": rng.uniform(0.3, 3.0),
        "aperture_radius": rng.uniform(2.4, 3.6),
        "global_nose_radius_coef": rng.uniform(0.8, 1.2),
        "global_radius_coef": rng.uniform(0.95, 1.05),
        **{f"radius_{section}_coef": rng.uniform(0.88, 1.12) for section in range(1, 9)},
    }


def intonation(lot: str, text: str, stretch: float, pitch: float) -> dict[str, float]:
    """How that body says a text; nothing is left to chance when it is said again."""
    rng = random.Random(f"{lot} {text}")
    return {
        "tempo": 1 / stretch,
        "pitch_offset": -4.0 + 12.0 * (pitch - 1.0),
        "random_intonation": 0,
        "intonation_drift": 0,
        "notional_pitch": 2.0 + rng.uniform(-2.0, 2.0),
        "pretonic_range": -2.0 + rng.uniform(-2.0, 2.0),
        "pretonic_lift": 4.0 + rng.uniform(-3.0, 2.0),
        "tonic_range": -8.0 + rng.uniform(-3.0, 5.0),
        "tonic_movement": 4.0 + rng.uniform(-3.0, 2.0),
    }


def say(text: str, lot: str, stretch: float, pitch: float) -> bytes:
    """A WAV of the text by the body of this lot."""
    files = {
        "voice_male.txt": _with(_DATA / "voice_male.txt", body(lot)),
        "trm_control_model.txt": _with(_DATA / "trm_control_model.txt", intonation(lot, text, stretch, pitch)),
    }
    process = _process()
    assert process.stdin
    assert process.stdout
    with tempfile.TemporaryDirectory() as folder:
        wav = Path(folder) / "out.wav"
        process.stdin.write(json.dumps({"text": text, "files": files, "out": str(wav)}) + "\n")
        process.stdin.flush()
        if process.stdout.readline() != "said\n":
            raise RuntimeError(f"GnuSpeech could not say {text!r}; see above why")
        return wav.read_bytes()


def _with(path: Path, values: dict[str, float]) -> str:
    """A settings file of GnuSpeech's with other values. Every name must be in it."""
    text = path.read_text("utf-8")
    for name, value in values.items():
        text, found = re.subn(rf"(?m)^{name} = .*$", f"{name} = {value:g}", text)
        if not found:
            raise ValueError(f"{path} has no {name}: not the {PACKAGE_NAME} that this was written for")
    return text


@cache  # so it must not speak before a pool of processes is forked that speak, too
def _process() -> subprocess.Popen[str]:
    driver = Path(__file__).with_suffix(".mjs")
    pipe = subprocess.PIPE
    return subprocess.Popen(["node", str(driver), str(_PACKAGE)], stdin=pipe, stdout=pipe, text=True)
