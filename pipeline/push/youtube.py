"""YouTube's live captions: one POST a sentence to the caption ingestion address of a stream.

https://support.google.com/youtube/answer/6077032. The body has the time in UTC at which a caption was said, without a zone,
then its text on the next line, with <br> between two lines. Each POST has the next ``seq``; a repeated one has the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import accumulate

from ..media import Sentence, SubtitleRules, layout
from .push import HttpPusher


class Push(HttpPusher):
    """Sends captions to the ingestion URL of one live stream."""

    kind, early = "youtube", True

    def deliver(self, language: str, sentence: Sentence) -> None:
        began = datetime.now(UTC) - timedelta(seconds=self.clock())
        body = ""
        for begin_s, block in captions(sentence, self.rules):
            said = began + timedelta(seconds=begin_s)
            body += f"{said.strftime('%Y-%m-%dT%H:%M:%S')}.{said.microsecond // 1000:03}\n{'<br>'.join(block)}\n"
        self.post(body.encode(), seq=self.last + 1)


def captions(sentence: Sentence, rules: SubtitleRules) -> Iterator[tuple[float, Sequence[str]]]:
    """The lines of each caption of a sentence, and when it begins to be said, in seconds of the stream. Pure."""
    blocks = layout(sentence.text, rules, seams=sentence.seams)
    shares = accumulate((sum(map(len, block)) for block in blocks), initial=0)
    for block, before in zip(blocks, shares, strict=False):
        yield sentence.begin_at(before / len(sentence.text)), block
