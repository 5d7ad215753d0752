"""Stages of your own in the chain: one corrects what was recognised, one counts what was translated.

Usage: own_stages.py RECORDING [HEARD=MEANT …]
"""

from __future__ import annotations

import asyncio
import sys
from dataclasses import replace
from pathlib import Path

from pipeline import Delta, SpeechTranslator, Transcript, load_config, standard_stages, with_stage
from pipeline.audio.recording import Recording


def corrected(transcript: Transcript, corrections: dict[str, str]) -> Transcript:
    text = transcript.text
    for heard, meant in corrections.items():
        text = text.replace(heard, meant)
    return replace(transcript, text=text, words=())  # without words, sentences are timed by their letters


class Counter:
    """Sees every event and returns it unchanged. It could as well write the events to a file."""

    sentences = 0

    def __call__(self, event: Transcript | Delta) -> Transcript | Delta:
        self.sentences += isinstance(event, Delta) and event.end_of_sentence
        return event


async def main(audio: Path, corrections: dict[str, str]) -> None:
    counter = Counter()
    stages = with_stage(standard_stages(), "corrections", lambda heard: corrected(heard, corrections), after="ASR")
    stages = with_stage(stages, "counter", counter, after="NMT")
    translation = ""
    async with SpeechTranslator(load_config("demo"), stages=stages) as translator:
        async for event in translator.run(Recording(audio)):
            if isinstance(event, Transcript):
                print(event.text)
            elif isinstance(event, Delta):
                translation = event.applied_to(translation)
                if event.final:
                    print(f"    {translation}")
                    translation = ""
    print(f"{counter.sentences} sentences")


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    asyncio.run(main(Path(sys.argv[1]), dict(argument.split("=", 1) for argument in sys.argv[2:])))
