"""Zoom's closed captions: one POST of text a sentence to the address that the host of a meeting copies.

https://support.zoom.com/hc/en/article?id=zm_kb&sysparm_article=KB0060372. Each POST has the next ``seq``; a repeated one has
the same. Zoom tells the last ``seq`` that it took, so that another run of a meeting goes on from there.
"""

from __future__ import annotations

from urllib.parse import urlsplit

import langcodes

from ..languages import language_tag
from ..media import Sentence
from .push import HttpPusher, PushRefusedError, asked


class Push(HttpPusher):
    """Sends to one meeting or breakout room."""

    kind, early = "zoom", True
    interval_s, passing = 1.0, frozenset({400})  # the meeting has not started
    _asked = False

    def deliver(self, language: str, sentence: Sentence) -> None:
        if not self._asked:
            self.last = self._last_taken()
            self._asked = True
        self.post(f"{sentence.text}\n".encode(), seq=self.last + 1, lang=_with_region(language))

    def _last_taken(self) -> int:
        """The last number that Zoom took; that of the last run here if it does not tell."""
        parts = urlsplit(self.url)
        try:
            return int(asked(parts._replace(path=parts.path.rstrip("/") + "/seq").geturl(), None, passing=self.passing))
        except (PushRefusedError, ValueError):
            return self.last


def _with_region(language: str) -> str:
    """The language and a country, as Zoom wants them: pt-BR. Its code for Japanese is jp-JP."""
    tag = language_tag(language)
    region = tag.region or langcodes.get(str(tag)).maximize().territory
    code = "jp" if tag.language == "ja" else tag.language
    return f"{code}-{region}" if region else code
