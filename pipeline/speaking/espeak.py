"""Phonemes of the program espeak-ng, which the user installs."""

from __future__ import annotations

import re
import shutil
import subprocess

from ..errors import ModelError, UsageError

_INSTALL = "Debian, Ubuntu: apt-get install espeak-ng; macOS: brew install espeak-ng"
# A sentence takes espeak-ng some 10 ms.
_PHONEMES_S = 10.0
# Where espeak-ng pauses, and the mark that voices know for it.
_MARKS = re.compile(r"([,.;:?!])[,.;:?!]*(?=[\"'»”’)\]]*(?:\s|$))|([，、。；：？！])")
WESTERN = dict(zip("，、。；：？！", ",,.;:?!", strict=True))
# "(en)" where espeak-ng reads a word as one of another language.
_SWITCH = re.compile(r"\([a-z^-]+\)")


def require_espeak(voice: str) -> None:
    """Raises UsageError: ``voice`` needs espeak-ng, which is not installed."""
    if shutil.which("espeak-ng") is None:
        raise UsageError(f"{voice} needs the program espeak-ng, which was not found; install it ({_INSTALL})")


def spelled(text: str, language: str, voice: str, *options: str) -> str:
    """What espeak-ng writes for a text: a line for each part between pauses.

    Args:
        language: espeak-ng's name of it.
        voice: who is to speak, for messages.

    Raises:
        ModelError: espeak-ng cannot be run, or does not know the language.
    """
    command = ["espeak-ng", "-q", "--ipa", *options, "-b", "1", "-v", language, "--stdin"]
    given = " ".join(text.split())
    try:
        done = subprocess.run(
            command, input=given, capture_output=True, encoding="utf-8", errors="replace", timeout=_PHONEMES_S,
            start_new_session=True,  # Ctrl-C is for this program, which finishes what was said
        )  # fmt: skip
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        raise ModelError(f"espeak-ng cannot be run for {voice} ({error})") from None
    if done.returncode:
        said = done.stderr.strip().partition("\n")[0]
        raise ModelError(f"espeak-ng does not know {language!r}, the language of {voice}: {said}")
    return done.stdout


def with_marks(spelling: str, text: str) -> str:
    """The lines of ``spelled`` as one, with the marks of ``text`` at which a voice pauses."""
    lines = [" ".join(_SWITCH.sub("", line).split()) for line in spelling.splitlines() if line.strip()]
    marks = [western or WESTERN[eastern] for western, eastern in _MARKS.findall(text)]
    if len(marks) == len(lines) - 1:
        marks.append(".")
    elif len(marks) != len(lines):  # espeak-ng pauses elsewhere, as after an abbreviation
        marks = [","] * (len(lines) - 1) + [marks[-1] if marks else "."]
    return " ".join(map(str.__add__, lines, marks))
