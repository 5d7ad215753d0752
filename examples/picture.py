"""Draw the README's picture: the terminal in the middle of a run of the demo.

python examples/picture.py examples/audio/travel.wav examples/terminal.svg
"""

from __future__ import annotations

import asyncio
import io
import sys
from pathlib import Path

from rich.console import Console

from pipeline import Delta, SpeechTranslator, Transcript, load_config
from pipeline.audio.recording import Recording
from pipeline.sinks.terminal import drawn


async def main(audio: Path, picture: Path) -> None:
    console = Console(record=True, width=72, force_terminal=True, highlight=False, file=io.StringIO())
    transcript, translation = Transcript(0, 0.0, 0.0, "", ""), ""
    async with SpeechTranslator(load_config("demo")) as translator:
        async for event in translator.run(Recording(audio)):
            if isinstance(event, Transcript):
                transcript, translation = event, ""
            elif isinstance(event, Delta):
                translation = event.applied_to(translation)
                # Stop in the middle of the fifth sentence, while it grows.
                growing = event.segment_id == 4 and len(translation) >= 4
                if event.final or growing:
                    console.print(drawn(transcript, translation, growing))
                if growing:
                    break
    console.save_svg(str(picture), title=f"python -m pipeline.live {audio} --config demo")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    asyncio.run(main(Path(sys.argv[1]), Path(sys.argv[2])))
