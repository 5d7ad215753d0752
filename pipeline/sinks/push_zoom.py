"""Zoom's closed captions: one POST of text a sentence to the address that the host of a meeting copies.

https://support.zoom.com/hc/en/article?id=zm_kb&sysparm_article=KB0060372. Each POST has the next ``seq``; a repeated one has
the same. Zoom tells the last ``seq`` that it took, so that another run of a meeting goes on from there.
"""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import urlsplit

import langcodes

from pipeline.languages import language_tag
from pipeline.sinks.push import Numbered, Pusher, PushRefusedError, asked, host_of, http_address
from pipeline.subtitles.rules import SubtitleRules
from pipeline.subtitles.sentences import Sentence

# The meeting has not started.
_PASSING = frozenset({400})


class Push(Pusher):
    """Sends to one meeting or breakout room."""

    interval_s = 1.0

    def __init__(self, where: str, languages: Sequence[str], rules: SubtitleRules) -> None:
        self._url = http_address(where, "zoom")
        self._number = Numbered(self._url)
        self._asked = False
        super().__init__(f"zoom ({host_of(where)})", languages, rules)

    def deliver(self, language: str, sentence: Sentence) -> None:
        if not self._asked:
            self._number.last = self._last_taken()
            self._asked = True
        text = f"{sentence.text}\n".encode()
        asked(self._url, text, passing=_PASSING, seq=self._number.last + 1, lang=_with_region(language))
        self._number.arrived()

    def _last_taken(self) -> int:
        """The last number that Zoom took; that of the last run here if it does not tell."""
        parts = urlsplit(self._url)
        try:
            said = asked(parts._replace(path=parts.path.rstrip("/") + "/seq").geturl(), None, passing=_PASSING)
            return int(said)
        except (PushRefusedError, ValueError):
            return self._number.last


def _with_region(language: str) -> str:
    """The language and a country, as Zoom wants them: pt-BR. Its code for Japanese is jp-JP."""
    tag = language_tag(language)
    region = tag.region or langcodes.get(str(tag)).maximize().territory
    code = "jp" if tag.language == "ja" else tag.language
    return f"{code}-{region}" if region else code
