"""Escape text so that no player takes it for markup: SubRip, WebVTT, TTML, ASS, LRC. Pure.

SubRip and ASS have no escapes. An invisible word joiner (U+2060) separates the start of markup from what follows, as in
FFmpeg's conversion of WebVTT to ASS; removing all joiners restores the text. Only braces are replaced, by their
full-width forms: libass hides everything between two braces, with or without a joiner, and it renders SubRip as ASS.
"""

from __future__ import annotations

import re

JOINER = "\u2060"
_BRACES = str.maketrans("{}", "｛｝")
# "<b>", "\N", and "&lt;", which some SubRip players turn into "<".
_MARKUP = re.compile(r"<|\\|&(?=#?\w+;)")
# SubRip's arrow, and a time of day with milliseconds: some readers take two of these for a timing line.
_TIMES = re.compile(r"--(?=>)|\d:\d\d?:\d\d?[.,](?=\d)")
_LRC_TAGS = re.compile(r"[\[<](?=\w)")


def srt(line: str) -> str:
    """Escape one line of SubRip text."""
    line = _TIMES.sub(rf"\g<0>{JOINER}", _MARKUP.sub(rf"\g<0>{JOINER}", line.translate(_BRACES)))
    # Some readers take a last line of digits for the number of the next subtitle.
    return line + JOINER if line.strip().isdecimal() else line


def vtt(line: str) -> str:
    """Escape one line of WebVTT text with character references."""
    return line.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def ttml(line: str) -> str:
    """Escape one line of XML text. Two characters that XML cannot have, of no script, are left out."""
    return vtt(line).translate({0xFFFE: None, 0xFFFF: None})


def ass(line: str) -> str:
    """Escape one line of ASS text."""
    return line.translate(_BRACES).replace("\\", "\\" + JOINER)


def lrc(text: str) -> str:
    """Escape LRC text: only what begins like a time or a tag is one."""
    return _LRC_TAGS.sub(rf"\g<0>{JOINER}", text)
