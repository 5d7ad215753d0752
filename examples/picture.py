"""Draw the README's picture: the terminal in the middle of a run of the demo.

python examples/picture.py examples/audio/travel.wav examples/terminal.svg
"""

from __future__ import annotations

import asyncio
import io
import sys
from pathlib import Path

from rich.console import Console

from pipeline import Delta, OpenTexts, SourceSentence, SpeechTranslator, Translation, load_config
from pipeline.audio.recording import Recording
from pipeline.sinks.terminal import Passage, drawn


async def main(audio: Path, picture: Path) -> None:
    console = Console(record=True, width=72, force_terminal=True, highlight=False, file=io.StringIO())
    texts, said = OpenTexts(), SourceSentence(0, "", "")
    async with SpeechTranslator(load_config("demo")) as translator:
        async for event in translator.run(Recording(audio)):
            text = texts.push(event)
            if isinstance(event, SourceSentence):
                said = event
            elif isinstance(event, Delta | Translation) and text is not None:
                # Stop in the middle of the fifth sentence, while it grows.
                growing = event.sentence == 4 and len(text) >= 4
                if growing or isinstance(event, Translation):
                    shown = Passage(said.start_s, said.end_s, said.text, ((event.language, text.text),))
                    console.print(drawn(shown, growing))
                if growing:
                    break
    console.save_svg(str(picture), title=f"python -m pipeline.live {audio} --config demo")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    asyncio.run(main(Path(sys.argv[1]), Path(sys.argv[2])))
