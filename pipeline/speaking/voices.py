"""The voices that have a name, and those that are a file."""

from __future__ import annotations

import os
import re
from pathlib import Path

from ..errors import UsageError
from ..plugins import Table
from ..store import HIBARI
from .voice import WHERE, PiperVoice, Voice

VOICES = Table("voices", "voice", {HIBARI.size: "speaking.hibari:HibariVoice"})
# Language, woman or man, and a name.
_KOKORO = re.compile("[efhijpz][fm]_[a-z]+")


def load_voice(given: Path) -> Voice:
    """The voice of --speak: one of a package by its name, or a Piper voice by its path.

    Raises:
        UsageError, ModelError: it is not installed, there is none, or it is damaged.
    """
    if _KOKORO.fullmatch(name := str(given)):
        from .kokoro import KokoroVoice

        return KokoroVoice.installed(name)
    if name in VOICES:
        voice: Voice = VOICES.make(name)
        return voice
    if os.path.exists(given):
        return PiperVoice(given)
    raise UsageError(f"there is no voice {name}; {WHERE}, or one of {', '.join(VOICES)}, or a voice of Kokoro")
