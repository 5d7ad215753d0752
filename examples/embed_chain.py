"""The whole chain inside a host app that has PCM chunks, as a conference client would.

python examples/embed_chain.py examples/audio/meeting.wav
"""

from __future__ import annotations

import asyncio
import sys
import wave

from pipeline import Delta, SpeechTranslator, Transcript, load_config


async def host_audio(translator: SpeechTranslator, path: str) -> None:
    """Stands for the host's audio callback: 20 ms of 16 kHz mono 16-bit PCM at a time."""
    with wave.open(path) as file:
        while chunk := file.readframes(320):
            await translator.feed(chunk)  # waits while the translator is behind
    await translator.end()


async def main(path: str) -> None:
    # A task group ends both directions when one of them fails.
    async with SpeechTranslator(load_config("demo")) as translator, asyncio.TaskGroup() as group:
        group.create_task(host_audio(translator, path))
        async for event in translator.events():
            if isinstance(event, Transcript):
                print(f"\n[{event.start_s:6.2f} s] {event.text}\n           ", end="")
            elif isinstance(event, Delta):
                print(event.text, end="", flush=True)
    print(f"\n\n{translator.stats.segments} segments, {translator.stats.tokens} tokens")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
