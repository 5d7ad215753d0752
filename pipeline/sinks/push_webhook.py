"""A webhook: each sentence as a JSON object, for programs that show text and for scripts."""

from __future__ import annotations

import json
from collections.abc import Sequence

from pipeline.sinks.push import Numbered, Pusher, asked, host_of, http_address
from pipeline.subtitles.rules import SubtitleRules
from pipeline.subtitles.sentences import Sentence


class Push(Pusher):
    """Sends to one address; any status of success will do."""

    def __init__(self, where: str, languages: Sequence[str], rules: SubtitleRules) -> None:
        self._url = http_address(where, "webhook")
        self._number = Numbered(self._url)
        super().__init__(f"webhook ({host_of(where)})", languages, rules)

    def deliver(self, language: str, sentence: Sentence) -> None:
        record = {
            "seq": self._number.last + 1,
            "language": language,
            "text": sentence.text,
            "source_language": sentence.sources[0].language,
            "source": " ".join(each.text for each in sentence.sources),
            "start_s": round(sentence.start_s, 3),
            "end_s": round(sentence.end_s, 3),
        }
        asked(self._url, json.dumps(record, ensure_ascii=False).encode(), "application/json")
        self._number.arrived()
