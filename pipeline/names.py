"""What names mean, and how they are shown to people: what a terminal would obey, or hide, as an escape sequence."""

from __future__ import annotations

import re
import shlex
import unicodedata
from os import fsencode, fspath
from pathlib import Path

STANDARD_OUTPUT = Path("-")
"""As the name of a file to write, standard output; a file of this name is given with its folder."""

# Format characters (category Cf) that readable names need: joiners, which emoji and Persian or Indic words are written with,
# and the marks of Arabic, Syriac and Kaithi that span numbers, which are visible (Unicode 16, section 9.2.1, "Prepended
# Concatenation Marks").
_SHOWN = {0x200C, 0x200D, *range(0x0600, 0x0606), 0x06DD, 0x070F, 0x0890, 0x0891, 0x08E2, 0x110BD, 0x110CD}
# Control, format and surrogate characters; line and paragraph separators.
_HIDDEN = {"Cc", "Cf", "Cs", "Zl", "Zp"}
_SHORT = {"\n": r"\n", "\r": r"\r", "\t": r"\t"}
# os.fsdecode (PEP 383) gives a byte that is no UTF-8 the surrogate of this number and its own.
_BYTES = 0xDC00


def escaped(text: str) -> str:
    r"""``text`` without control characters, bidirectional controls, invisible characters and lone surrogates: ``\n``,
    ``\x1b``, ``\u202e``, and ``\xff`` for a byte of a name that is no UTF-8. All other text is returned as it is."""
    return text if text.isascii() and text.isprintable() else "".join(map(_shown, text))


def _shown(character: str) -> str:
    code = ord(character)
    if unicodedata.category(character) not in _HIDDEN or code in _SHOWN:
        return character
    if _BYTES + 0x80 <= code <= _BYTES + 0xFF:
        return rf"\x{code - _BYTES:02x}"
    if character in _SHORT:
        return _SHORT[character]
    if code < 0x80:
        return rf"\x{code:02x}"
    return rf"\u{code:04x}" if code < 0x10000 else rf"\U{code:08x}"


def shell_word(path: Path) -> str:
    """A path as bash, zsh and ksh read it, printable, and never taken for an option."""
    word = fspath(path)
    if word.startswith("-"):
        word = f"./{word}"
    if word == escaped(word):
        return shlex.quote(word)
    parts = (
        re.sub(r"(['\\])", r"\\\1", part)
        if part == escaped(part)
        else "".join(f"\\x{byte:02x}" for byte in fsencode(part))
        for part in word
    )
    return f"$'{''.join(parts)}'"
