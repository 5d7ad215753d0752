"""A host app that shows speech and its translation while somebody speaks: steady text, then [the rest of the draft].

python examples/embed_drafts.py examples/audio/meeting.wav
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from speech_translate import SourceSentence, SourceText, SpeechTranslator, TargetText, Translation, load_config
from speech_translate.audio.recording import Recording


async def main(path: str) -> None:
    async with SpeechTranslator(load_config("demo"), live=True) as translator:
        async for event in translator.run(Recording(Path(path)), paced=True):
            if isinstance(event, SourceText | TargetText):
                draft = f" [{event.draft.strip()}]" if event.draft.strip() else ""
                print(f"{event.sentence:3} {event.language}  {event.steady_text}{draft}", flush=True)
            elif isinstance(event, SourceSentence | Translation):
                print(f"{event.sentence:3} {event.language}  {event.text}  (final)", flush=True)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    asyncio.run(main(sys.argv[1]))
