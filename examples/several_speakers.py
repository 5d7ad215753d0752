"""Several speakers at once, each with a translator of their own, all with one pair of loaded models.

python examples/several_speakers.py examples/audio/travel.wav examples/audio/meeting.wav
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from pipeline import Delta, Models, SpeechTranslator, load_config, load_models
from pipeline.audio.recording import Recording


async def speaker(name: str, audio: Path, models: Models) -> None:
    """One speaker's stream, subtitles printed a segment at a time. A recording stands for the speaker."""
    text = ""
    async with SpeechTranslator(load_config("demo"), models) as translator:
        async for event in translator.run(Recording(audio)):
            if isinstance(event, Delta):
                text = event.applied_to(text)
                if event.final:
                    print(f"{name} [{event.start_s:5.1f} s] {text}", flush=True)
                    text = ""


async def main(recordings: list[Path]) -> None:
    models = await asyncio.to_thread(load_models, load_config("demo"))
    # One speaker's failure ends all; where the others should go on, catch StageError inside ``speaker``.
    async with asyncio.TaskGroup() as group:
        for audio in recordings:
            group.create_task(speaker(audio.stem, audio, models))


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    asyncio.run(main([Path(argument) for argument in sys.argv[1:]]))
