"""TTML files of the text profile of IMSC 1.1 (https://www.w3.org/TR/ttml-imsc1.1), for broadcasters and streaming services."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ...languages import language_tag
from ..subtitles import escapes
from ..subtitles.bidi import directed
from ..subtitles.cues import Cue
from ..subtitles.rules import SubtitleRules
from .cue_file import CueSink, timestamp

_HEADER = """<?xml version="1.0" encoding="UTF-8"?>
<tt xmlns="http://www.w3.org/ns/ttml" xmlns:ttp="http://www.w3.org/ns/ttml#parameter" xmlns:tts="http://www.w3.org/ns/ttml#styling"
 ttp:profile="http://www.w3.org/ns/ttml/profile/imsc1.1/text" ttp:timeBase="media" ttp:cellResolution="40 18" xml:lang="{}">
<head>
<styling>
<style xml:id="text" tts:color="#ffffff" tts:fontFamily="proportionalSansSerif" tts:fontSize="100%" tts:lineHeight="125%" tts:textAlign="center"/>
<style xml:id="box" tts:backgroundColor="#000000c0"/>
</styling>
<layout>
<region xml:id="bottom" style="text" tts:origin="5% 60%" tts:extent="90% 35%" tts:displayAlign="after" tts:overflow="visible"/>
<region xml:id="top" style="text" tts:origin="5% 5%" tts:extent="90% 35%" tts:displayAlign="before" tts:overflow="visible"/>
</layout>
</head>
<body><div>
"""


class TtmlSink(CueSink):
    """A paragraph for each language of a cue, in a region at the upper or lower edge of the picture."""

    footer = "</div></body></tt>\n"

    def __init__(
        self, path: Path, rules: SubtitleRules, *, resume: bool = False, languages: Sequence[str] = ()
    ) -> None:
        self.header = _HEADER.format(language_tag(languages[0]) if languages else "")
        super().__init__(path, rules, resume=resume, languages=languages)

    def block(self, cue: Cue) -> str:
        spoken = f' xml:lang="{language_tag(cue.source_language)}"'
        parts = [(cue.lines, self._rules.position, ""), (cue.source_lines, self._rules.source_position, spoken)]
        times = f'begin="{timestamp(cue.start_s, ".")}" end="{timestamp(cue.end_s, ".")}"'
        return "".join(
            f'<p region="{region}" {times}{language}><span style="box">'
            f"{'<br/>'.join(escapes.ttml(line) for line in directed(lines))}</span></p>\n"
            for lines, region, language in parts
            if lines
        )
