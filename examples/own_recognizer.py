"""A recogniser of your own in the chain: here faster-whisper's own interface, without drafts.

python examples/own_recognizer.py examples/audio/travel.wav
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path

from faster_whisper import WhisperModel

from speech_translate import (
    Models,
    PipelineConfig,
    RecognitionOptions,
    Recognizer,
    SourceSentence,
    SpeechSegment,
    SpeechTranslator,
    Transcript,
    Translation,
    load_config,
    load_translation_model,
)
from speech_translate.audio.recording import Recording
from speech_translate.backends import find_recognizer


class OwnRecognizer:
    """Recognises each segment alone. An exception costs that segment only."""

    def __init__(self, config: PipelineConfig) -> None:
        self._language = config.languages.source
        self._model = WhisperModel(str(find_recognizer(config.asr)), device="cpu", compute_type="int8")

    def transcribe(self, segments: Sequence[SpeechSegment], options: RecognitionOptions) -> list[Transcript]:
        return [self._transcribe(segment) for segment in segments]

    def _transcribe(self, segment: SpeechSegment) -> Transcript:
        samples = segment.samples.astype("float32") / 32768
        parts, _ = self._model.transcribe(samples, language=self._language, beam_size=5)
        text = "".join(part.text for part in parts).strip()
        return Transcript(
            *(segment.id, segment.start_s, segment.end_s, text, self._language),
            rejected=None if text else "empty",
            heard_s=segment.heard_s,
            speech_end_s=segment.speech_end_s,
        )


async def main(path: str) -> None:
    config = load_config("demo")
    recognizer: Recognizer = await asyncio.to_thread(OwnRecognizer, config)
    (target,) = config.languages.targets
    translation = await asyncio.to_thread(load_translation_model, config.languages.source, target, config.nmt)
    async with SpeechTranslator(config, Models(recognizer, {target: translation})) as chain:
        async for event in chain.run(Recording(Path(path))):
            if isinstance(event, SourceSentence):
                print(event.text)
            elif isinstance(event, Translation):
                print(f"    {event.text}")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    asyncio.run(main(sys.argv[1]))
