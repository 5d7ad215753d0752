"""YouTube's live captions: one POST a sentence to the caption ingestion address of a stream.

https://support.google.com/youtube/answer/6077032. The body has the time in UTC at which a caption was said, without a zone,
then its text on the next line, with <br> between two lines. Each POST has the next ``seq``; a repeated one has the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import accumulate

from pipeline.sinks.push import Numbered, Pusher, asked, host_of, http_address
from pipeline.subtitles.lines import layout
from pipeline.subtitles.rules import SubtitleRules
from pipeline.subtitles.sentences import Sentence


class Push(Pusher):
    """Sends to one stream."""

    def __init__(self, where: str, languages: Sequence[str], rules: SubtitleRules) -> None:
        self._url = http_address(where, "youtube")
        self._number = Numbered(self._url)
        super().__init__(f"youtube ({host_of(where)})", languages, rules)

    def deliver(self, language: str, sentence: Sentence) -> None:
        began = datetime.now(UTC) - timedelta(seconds=self.clock())
        blocks = layout(sentence.text, self.rules, seams=sentence.seams)
        shares = accumulate((sum(map(len, block)) for block in blocks), initial=0)
        body = ""
        for block, before in zip(blocks, shares, strict=False):
            said = began + timedelta(seconds=sentence.begin_at(before / len(sentence.text)))
            body += f"{said.strftime('%Y-%m-%dT%H:%M:%S')}.{said.microsecond // 1000:03}\n{'<br>'.join(block)}\n"
        asked(self._url, body.encode(), seq=self._number.last + 1)
        self._number.arrived()
