"""The whole chain inside a host app that has PCM chunks, as a conference client would.

python examples/embed_chain.py examples/audio/meeting.wav
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from speech_translate import SourceSentence, SpeechTranslator, TargetText, Translation, load_config
from speech_translate.audio.recording import read_audio


async def host_audio(translator: SpeechTranslator, path: str) -> None:
    """Stands for the host's audio callback: 20 ms of 16 kHz mono 16-bit PCM at a time."""
    samples = read_audio(Path(path))  # of any recording; a host has such samples already
    for start in range(0, len(samples), 320):
        await translator.feed(samples[start : start + 320])  # waits while the translator is behind
    await translator.end()


async def main(path: str) -> None:
    # A task group ends both directions when one of them fails.
    async with SpeechTranslator(load_config("demo")) as translator, asyncio.TaskGroup() as group:
        group.create_task(host_audio(translator, path))
        async for event in translator.events():
            if isinstance(event, SourceSentence):
                print(f"\n[{event.start_s:6.2f} s] {event.text}")
            elif isinstance(event, TargetText):
                print(f"\r\x1b[K           {event.text}", end="", flush=True)  # replaces the line, token by token
            elif isinstance(event, Translation):
                print()  # the line stays as it is
    print(f"\n{translator.stats.segments} segments, {translator.stats.tokens} tokens")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    asyncio.run(main(sys.argv[1]))
