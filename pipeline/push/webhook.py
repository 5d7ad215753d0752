"""A webhook: each sentence as a JSON object, for programs that show text and for scripts."""

from __future__ import annotations

import json

from ..media import Sentence
from .push import HttpPusher


class Push(HttpPusher):
    """Sends to one address; any status of success will do."""

    kind = "webhook"
    several_languages = True

    def deliver(self, language: str, sentence: Sentence) -> None:
        record = {
            "seq": self.last + 1,
            "language": language,
            "text": sentence.text,
            "source_language": sentence.sources[0].language,
            "source": " ".join(source.text for source in sentence.sources),
            "start_s": round(sentence.start_s, 3),
            "end_s": round(sentence.end_s, 3),
        }
        self.post(json.dumps(record, ensure_ascii=False).encode(), "application/json")
