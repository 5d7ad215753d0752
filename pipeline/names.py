"""File names: which are possible, and how they and other untrusted text are displayed, with escape sequences."""

from __future__ import annotations

import re
import sys
import unicodedata
from pathlib import Path

STANDARD_OUTPUT = Path("-")
"""The path that stands for standard output. To write a file named ``-``, give its folder as well."""

# Format characters (category Cf) that stay: the joiners of emoji and of Persian and Indic words, and the marks of
# Arabic, Syriac and Kaithi that span numbers, which are visible (Unicode 16, section 9.2.1, "Prepended Concatenation
# Marks").
_ALLOWED_FORMAT = {0x200C, 0x200D, *range(0x0600, 0x0606), 0x06DD, 0x070F, 0x0890, 0x0891, 0x08E2, 0x110BD, 0x110CD}
# Control, format and surrogate characters; line and paragraph separators.
_ESCAPED_CATEGORIES = {"Cc", "Cf", "Cs", "Zl", "Zp"}
_SHORT_ESCAPES = {"\n": r"\n", "\r": r"\r", "\t": r"\t"}
# os.fsdecode (PEP 383) maps a byte that is not UTF-8 to the surrogate with this number plus the byte.
_SURROGATE_BASE = 0xDC00
# Names that Windows keeps for devices, also before a suffix, and characters that are none of a name's there.
_NOT_ON_WINDOWS = re.compile(
    r'[<>:"/\\|?*\x00-\x1f]|[ .]$|^ *(?:con|prn|aux|nul|conin\$|conout\$|(?:com|lpt)[0-9¹²³]) *(?:\.|$)', re.IGNORECASE
)


def is_possible(name: str) -> bool:
    """Whether a file of this system may have this name. Windows may write into something else without an error."""
    return sys.platform != "win32" or not _NOT_ON_WINDOWS.search(name)


def escaped(text: str) -> str:
    r"""Escape control characters, bidirectional controls, invisible characters and lone surrogates: ``\n``, ``\x1b``,
    ``\u202e``, and ``\xff`` for a byte of a name that is not UTF-8. Other text is unchanged."""
    return text if text.isascii() and text.isprintable() else "".join(map(_escaped_character, text))


def _escaped_character(character: str) -> str:
    code = ord(character)
    if unicodedata.category(character) not in _ESCAPED_CATEGORIES or code in _ALLOWED_FORMAT:
        return character
    if _SURROGATE_BASE + 0x80 <= code <= _SURROGATE_BASE + 0xFF:
        return rf"\x{code - _SURROGATE_BASE:02x}"
    if character in _SHORT_ESCAPES:
        return _SHORT_ESCAPES[character]
    if code < 0x80:
        return rf"\x{code:02x}"
    return rf"\u{code:04x}" if code < 0x10000 else rf"\U{code:08x}"
