"""In which language a recording is, by what a recogniser makes of its first speech, whichever language is configured."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ..core import SAMPLE_RATE, AudioSource, Endpointer, LanguageGuesser, Samples, VadConfig
from .vad.detector import SpeechDetector

# As much as Whisper hears at once.
_SPEECH_S = 30
# How much of a recording is searched for it.
_SEARCHED_S = 600


def guessed_languages(recognizer: object, speech: Samples) -> Mapping[str, float]:
    """The probability of each language that the recogniser knows in speech [n]; empty if it tells none, or there is no speech."""
    return recognizer.guess(speech) if isinstance(recognizer, LanguageGuesser) and len(speech) else {}


def first_speech(source: AudioSource, config: VadConfig) -> Samples:
    """The first 30 s of speech [n] in the first ten minutes of a source, less if there is less.

    Raises:
        AudioError: the source cannot be read.
    """
    detector, endpointer = SpeechDetector(config), Endpointer(config)
    parts, length = [np.zeros(0, np.int16)], 0
    while endpointer.received < _SEARCHED_S * SAMPLE_RATE and length < _SPEECH_S * SAMPLE_RATE:
        samples = source.read()
        frames = detector.flush() if samples is None else detector.push(samples)
        segments = [segment for frame, decision in frames for segment in endpointer.push(frame, *decision)]
        segments += endpointer.flush() if samples is None else []
        parts += [segment.speech for segment in segments]
        length += sum(len(segment.speech) for segment in segments)
        if samples is None:
            break
    return np.concatenate(parts)[: _SPEECH_S * SAMPLE_RATE]
