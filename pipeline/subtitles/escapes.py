"""Text that no player takes for markup: SubRip, WebVTT, ASS. Pure.

SubRip and ASS have no way to escape. What begins markup is parted from what follows it by a word joiner (U+2060),
which is invisible, as FFmpeg does where it makes ASS of WebVTT; a reader that removes all of them has the text.
Braces alone are written as their full-width forms: libass hides all that is between two braces, joiner or not, and it
draws SubRip as ASS.
"""

from __future__ import annotations

import re

JOINER = "\u2060"
_BRACES = str.maketrans("{}", "｛｝")
# "<b>", "\N", and "&lt;", which some players of SubRip turn into "<".
_MARKUP = re.compile(r"<|\\|&(?=#?\w+;)")
# Of SubRip's times: its arrow, and a time of day to the millisecond, two of which make a line of times to some
# readers.
_TIMES = re.compile(r"--(?=>)|\d:\d\d?:\d\d?[.,](?=\d)")


def srt(line: str) -> str:
    """One line of SubRip text."""
    line = _TIMES.sub(rf"\g<0>{JOINER}", _MARKUP.sub(rf"\g<0>{JOINER}", line.translate(_BRACES)))
    # Some readers take a last line of nothing but digits for the number of the next subtitle.
    return line + JOINER if line.strip().isdecimal() else line


def vtt(line: str) -> str:
    """One line of WebVTT text, which has character references."""
    return line.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def ass(line: str) -> str:
    """One line of ASS text."""
    return line.translate(_BRACES).replace("\\", "\\" + JOINER)
