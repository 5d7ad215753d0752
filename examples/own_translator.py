"""A translator of your own in the chain: a LibreTranslate server, or any other that answers its requests.

Usage: own_translator.py URL RECORDING
"""

from __future__ import annotations

import asyncio
import json
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

from speech_translate import (
    Models,
    SourceSentence,
    SpeechTranslator,
    TargetText,
    TextTranslator,
    Translation,
    TranslationRequest,
    load_config,
)
from speech_translate.audio.recording import Recording
from speech_translate.backends import WhisperRecognizer


class HttpTranslator:
    """Asks a server for each sentence. An exception, such as a timeout, costs that sentence only."""

    def __init__(self, url: str, timeout_s: float = 10.0) -> None:
        self._url, self._timeout_s = f"{url.rstrip('/')}/translate", timeout_s

    def stream(self, request: TranslationRequest) -> Iterator[TargetText | Translation]:
        sentence, target = request.sentence, request.target
        assert target is not None  # the chain always names it
        body = {"q": sentence.text, "source": sentence.language, "target": target, "format": "text"}
        asked = urllib.request.Request(self._url, json.dumps(body).encode(), {"content-type": "application/json"})
        with urllib.request.urlopen(asked, timeout=self._timeout_s) as answer:
            text = str(json.load(answer)["translatedText"])
        # A server that answers token by token would get the text so far for each.
        yield TargetText(sentence.sentence, target, text, heard_s=sentence.heard_s, complete=True)
        yield Translation(sentence.sentence, target, text, heard_s=sentence.heard_s)


async def main(url: str, path: str) -> None:
    config = load_config("demo")
    translator: TextTranslator = HttpTranslator(url)
    recognizer = await asyncio.to_thread(WhisperRecognizer, config.asr, config.languages.source)
    models = Models(recognizer, dict.fromkeys(config.languages.targets, translator))
    async with SpeechTranslator(config, models) as chain:
        async for event in chain.run(Recording(Path(path))):
            if isinstance(event, SourceSentence):
                print(event.text)
            elif isinstance(event, Translation):
                print(f"    {event.text}" if event.error is None else f"    (not translated: {event.error})")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    asyncio.run(main(*sys.argv[1:]))
