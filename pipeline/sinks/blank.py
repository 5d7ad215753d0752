"""Whether a subtitle file is one of ours without a cue: of a run that showed nothing, or that was killed before it could."""

from __future__ import annotations

import re
from pathlib import Path

# What our headers hold; a person's ASS file has other styles.
_HEADERS = {
    "vtt": re.compile(r"(WEBVTT\n+)?"),
    "ass": re.compile(r"(\[Script Info\]\n(?!.*^(Dialogue|Comment):).*)?", re.S | re.M),
}
_STYLE = re.compile(r"^Style: ([^,\n]*),", re.MULTILINE)
_OUR_STYLES = {"Translation", "Source"}
# An ASS header has about 800 bytes.
_LONGEST_HEADER = 8_192
# Lines of a JSONL file that have nothing that is shown: rejected transcripts, notices, the end.
_EVENT = re.compile(rb'\{"type": "((?!delta"|cue"|transcript")[a-z_]+"|transcript".*"rejected": ")')


def is_blank(path: Path, kind: str) -> bool:
    """Whether the file at ``path``, of the format ``kind``, holds what this package writes where it has no cue to show.
    False where it cannot be read."""
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
