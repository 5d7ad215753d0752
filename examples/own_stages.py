"""Stages of your own in the chain: one corrects what was recognised, one counts what was translated.

Usage: own_stages.py RECORDING [HEARD=MEANT …]
"""

from __future__ import annotations

import asyncio
import sys
from dataclasses import replace
from pathlib import Path

from speech_translate import (
    PipelineEvent,
    SourceSentence,
    SpeechTranslator,
    Transcript,
    Translation,
    load_config,
    standard_stages,
    with_stage,
)
from speech_translate.audio.recording import Recording
from speech_translate.events import Pause


def corrected(heard: Transcript | Pause, corrections: dict[str, str]) -> Transcript | Pause:
    if not isinstance(heard, Transcript):
        return heard
    text = heard.text
    for word, meant in corrections.items():
        text = text.replace(word, meant)
    return replace(heard, text=text, words=())  # without words, sentences are timed by their letters


class Counter:
    """Sees every event and returns it unchanged. It could as well write the events to a file."""

    sentences = 0

    def __call__(self, event: PipelineEvent) -> PipelineEvent:
        self.sentences += isinstance(event, Translation)
        return event


async def main(audio: Path, corrections: dict[str, str]) -> None:
    counter = Counter()
    stages = with_stage(standard_stages(), "corrections", lambda heard: corrected(heard, corrections), after="ASR")
    stages = with_stage(stages, "counter", counter, after="NMT")
    async with SpeechTranslator(load_config("demo"), stages=stages) as translator:
        async for event in translator.run(Recording(audio)):
            if isinstance(event, SourceSentence):
                print(event.text)
            elif isinstance(event, Translation):
                print(f"    {event.text}")
    print(f"{counter.sentences} sentences")


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    asyncio.run(main(Path(sys.argv[1]), dict(argument.split("=", 1) for argument in sys.argv[2:])))
