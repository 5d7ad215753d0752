"""Several speakers at once, each with a translator of their own, all with one pair of loaded models.

python examples/several_speakers.py examples/audio/travel.wav examples/audio/meeting.wav
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from speech_translate import Models, SourceSentence, SpeechTranslator, Translation, load_config, load_models
from speech_translate.audio.recording import Recording


async def speaker(name: str, audio: Path, models: Models) -> None:
    """Print one speaker's sentences as they are translated. A recording stands for the speaker."""
    start_s = 0.0
    async with SpeechTranslator(load_config("demo"), models) as translator:
        async for event in translator.run(Recording(audio)):
            if isinstance(event, SourceSentence):
                start_s = event.start_s  # a recording's sentence is followed by its translation
            elif isinstance(event, Translation):
                print(f"{name} [{start_s:5.1f} s] {event.text}", flush=True)


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
