"""YouTube's live captions: one POST a sentence to the caption ingestion address of a stream.

https://support.google.com/youtube/answer/6077032. The body has the time in UTC at which a caption was said, without a zone,
then its text on the next line, with <br> between two lines. Each POST has the next ``seq``; a repeated one has the same.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import accumulate

from ..media import Sentence, layout
from .push import HttpPusher


class Push(HttpPusher):
    """Sends captions to the ingestion URL of one live stream."""

    kind, early = "youtube", True

    def deliver(self, language: str, sentence: Sentence) -> None:
        began = datetime.now(UTC) - timedelta(seconds=self.clock())
        blocks = layout(sentence.text, self.rules, seams=sentence.seams)
        shares = accumulate((sum(map(len, block)) for block in blocks), initial=0)
        body = ""
        for block, before in zip(blocks, shares, strict=False):
            said = began + timedelta(seconds=sentence.begin_at(before / len(sentence.text)))
            body += f"{said.strftime('%Y-%m-%dT%H:%M:%S')}.{said.microsecond // 1000:03}\n{'<br>'.join(block)}\n"
        self.post(body.encode(), seq=self.last + 1)
