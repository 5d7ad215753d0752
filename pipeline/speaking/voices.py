"""The voices that have a name, and those that are a file."""

from __future__ import annotations

import re
from pathlib import Path

from ..store import HIBARI
from .hibari import HibariVoice
from .kokoro import KokoroVoice
from .voice import PiperVoice, Voice

# Language, woman or man, and a name.
_KOKORO = re.compile("[efhijpz][fm]_[a-z]+")


def load_voice(given: Path) -> Voice:
    """The voice of --speak: one of a package by its name, or a Piper voice by its path.

    Raises:
        UsageError, ModelError: it is not installed, there is none, or it is damaged.
    """
    if str(given) == HIBARI.size:
        return HibariVoice()
    if _KOKORO.fullmatch(str(given)):
        return KokoroVoice.installed(str(given))
    return PiperVoice(given)
