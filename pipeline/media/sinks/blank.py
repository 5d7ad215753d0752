"""Detect subtitle files of this package that have no cue, left by a run that showed nothing or was killed early."""

from __future__ import annotations

import re
from pathlib import Path

# The headers this package writes; other people's ASS files have other styles.
_HEADERS = {
    "vtt": re.compile(r"(WEBVTT\n+)?"),
    "ttml": re.compile(r"(<\?xml (?!.*<p ).*</tt>\n)?", re.S),
    "ass": re.compile(r"(\[Script Info\]\n(?!.*^(Dialogue|Comment):).*)?", re.S | re.M),
    "json": re.compile(r'(\{"segments": \[\n\n\](, .*)?\}\n)?'),
    "tsv": re.compile(r"(start\tend\ttext\n)?"),
}
_HEADERS["karaoke"] = _HEADERS["ass"]
_STYLE = re.compile(r"^Style: ([^,\n]*),", re.MULTILINE)
_OUR_STYLES = {"Translation", "Source"}
# Bytes; an ASS header has about 800.
_LONGEST_HEADER = 8_192
# JSONL lines without displayed text: the header, rejected transcripts, notices, the end.
_EVENT = re.compile(
    rb'\{"type": "((?!delta"|cue"|transcript"|translation"|source_)[a-z_]+"|transcript".*"rejected": ")'
)


def is_blank(path: Path, kind: str) -> bool:
    """Whether the file at ``path``, in format ``kind``, was written by this package and has no cue.

    False if it cannot be read.
    """
    try:
        if kind == "jsonl":
            with path.open("rb") as file:
                return all(_EVENT.match(line) for line in file)
        with path.open("rb") as file:
            start = file.read(_LONGEST_HEADER + 1)
    except OSError:
        return False
    if kind not in _HEADERS or len(start) > _LONGEST_HEADER:
        return not start
    text = start.decode("utf-8", "replace")
    return bool(_HEADERS[kind].fullmatch(text)) and set(_STYLE.findall(text)) <= _OUR_STYLES
