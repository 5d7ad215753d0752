"""The whole chain inside a host app that has PCM chunks, as a conference client would.

python examples/embed_chain.py examples/audio/meeting.wav
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from pipeline import Delta, SpeechTranslator, Transcript, load_config
from pipeline.audio.recording import read_audio


async def host_audio(translator: SpeechTranslator, path: str) -> None:
    """Stands for the host's audio callback: 20 ms of 16 kHz mono 16-bit PCM at a time."""
    samples = read_audio(Path(path))  # of any recording; a host has such samples already
    for start in range(0, len(samples), 320):
        await translator.feed(samples[start : start + 320])  # waits while the translator is behind
    await translator.end()


async def main(path: str) -> None:
    # A task group ends both directions when one of them fails.
    text = ""
    async with SpeechTranslator(load_config("demo")) as translator, asyncio.TaskGroup() as group:
        group.create_task(host_audio(translator, path))
        async for event in translator.events():
            if isinstance(event, Transcript):
                print(f"\n[{event.start_s:6.2f} s] {event.text}")
            elif isinstance(event, Delta):
                text = event.applied_to(text)  # grows by a token; what a failed search showed is taken back
                if event.final:
                    print(f"           {text}", flush=True)
                    text = ""
    print(f"\n{translator.stats.segments} segments, {translator.stats.tokens} tokens")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    asyncio.run(main(sys.argv[1]))
