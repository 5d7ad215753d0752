"""Voice activity detection and recognition, stage by stage, inside a host app that wants transcripts.

python examples/embed_stages.py examples/audio/meeting.wav
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from speech_translate import EndOfInput, Transcript, load_config
from speech_translate.audio.recording import read_audio
from speech_translate.backends import WhisperRecognizer
from speech_translate.core import AsrStage, FinalRecognition, Groups, VadStage
from speech_translate.events import Samples, SpeechSegment


async def host_audio(path: str, audio: asyncio.Queue[Samples | EndOfInput]) -> None:
    """Stands for the host's audio callback: 20 ms of 16 kHz mono int16 at a time."""
    samples = read_audio(Path(path))  # of any recording; a host has such samples already
    for start in range(0, len(samples), 320):
        await audio.put(samples[start : start + 320])  # waits while the stages are behind
    await audio.put(EndOfInput())  # ends every stage in turn


async def main(path: str) -> None:
    config = load_config("demo")
    recognizer = await asyncio.to_thread(WhisperRecognizer, config.asr, config.languages.source)
    audio: asyncio.Queue[Samples | EndOfInput] = asyncio.Queue(50)
    segments: asyncio.Queue[SpeechSegment | EndOfInput] = asyncio.Queue(8)
    transcripts: asyncio.Queue[Transcript | EndOfInput] = asyncio.Queue(8)
    async with asyncio.TaskGroup() as group:
        group.create_task(VadStage(config.vad, config.speech_detector, audio, segments).run())
        group.create_task(AsrStage(segments, transcripts, Groups(), FinalRecognition(recognizer)).run())
        group.create_task(host_audio(path, audio))
        while not isinstance(heard := await transcripts.get(), EndOfInput):
            doubt = f"  ({heard.rejected}: not to be translated)" if heard.rejected else ""
            print(f"[{heard.start_s:6.2f} s] {heard.text}{doubt}")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    asyncio.run(main(sys.argv[1]))
