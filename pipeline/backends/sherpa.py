"""Streaming models of sherpa-onnx (k2-fsa/sherpa-onnx), which hear as people speak: transducers, CTC, Paraformer."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ..core import SAMPLE_RATE, PartialText, RecognitionOptions, Samples, Word
from ..errors import ModelError, UsageError
from ..languages import MARKS, sets_sentences_apart, spaced
from ..languages.rules import rules
from ..store import ModelRef
from .asr_options import AsrConfig
from .machine import usable_cores
from .onnx_header import read_header
from .script import in_script, script_conversions

# A key in the metadata of a CTC model → how ``OnlineRecognizer`` loads it. Each kind alone has its key.
_CTC = {
    "encoder_dims": "from_zipformer2_ctc",
    "window_size": "from_nemo_ctc",
    "right_context": "from_wenet_ctc",
    "frame_length_ms": "from_t_one_ctc",
}
# sherpa-onnx ends the process at files that it does not expect, so they are tried in another one.
_TRIAL = """
import json, sherpa_onnx, sys
kind, files = json.loads(sys.argv[1])
model = getattr(sherpa_onnx.OnlineRecognizer, kind)(**files)
stream = model.create_stream()
stream.accept_waveform(16_000, [0.0] * 64_000)
while model.is_ready(stream):
    model.decode_stream(stream)
"""
# Where in its sources sherpa-onnx says something.
_PLACE = re.compile(r"^\S+:\d+ ")
_WHERE = "give a folder with tokens.txt and a streaming model (https://k2-fsa.github.io/sherpa/onnx/pretrained_models/)"
# Words in languages that separate them with blanks, and in others: each letter that is not Latin is one. With the blank before.
_SPACED = re.compile(r"\s*\S+")
_UNSPACED = re.compile(r"\s*(?:[!-\u024f]+|[^\s!-\u024f][^\w\s]*)")
# A token has the time at which it begins, about; a word lasts for so long after that of its last one, at most.
_TOKEN_S = 0.3
# Models say a word up to this much later than they could.
_DELAY_S = 0.3


def model_ref(config: AsrConfig) -> ModelRef:
    """The model that the configuration names."""
    return ModelRef(config.model)


def find_model(config: AsrConfig) -> Path:
    """The folder of the configured model."""
    if not os.path.isdir(config.model):
        raise UsageError(f'asr.model is {config.model!r}, no folder; with asr.backend = "sherpa-onnx", {_WHERE}')
    _library()
    _told(Path(config.model))
    return Path(config.model)


def load_model(
    config: AsrConfig, languages: Sequence[str], directory: Path, sharing: SherpaRecognizer | None, several_calls: bool
) -> SherpaRecognizer:
    """Load the model of a folder."""
    return SherpaRecognizer(config, languages[0], directory, sharing)


class SherpaRecognizer:
    """A ``StreamingRecognizer`` for one language. Thread-safe, as each stream is one of the model's own."""

    def __init__(
        self, config: AsrConfig, language: str, directory: Path, sharing: SherpaRecognizer | None = None
    ) -> None:
        """Load the model. ``sharing``: has it in memory already.

        Raises:
            UsageError: sherpa-onnx is not installed; or the script is not one of the language.
            ModelError: the folder has no streaming model.
        """
        self.language, self._convert = language, script_conversions(config.script, [language])[language]
        self.model: Any = sharing.model if sharing is not None else _load(directory, config.threads)
        symbols = [line.split(" ")[0] for line in _lines(directory / "tokens.txt")]
        vocabulary = "".join(symbol for symbol in symbols if not symbol.startswith("<"))
        self._capitals_only = vocabulary.upper() == vocabulary
        self.final_mark = "" if set(vocabulary) & set(MARKS) else "." if sets_sentences_apart(language) else "。"
        """What ends each segment of a model that writes no marks: pauses are all that is known of its sentences."""
        stream, frames = self.model.create_stream(), 0
        while not self.model.is_ready(stream) and frames < 1_000:
            stream.accept_waveform(SAMPLE_RATE, np.zeros(SAMPLE_RATE // 100, np.float32))
            frames += 1
        self.chunk_s = frames / 100
        """Audio that the model takes at once."""

    def open(self, options: RecognitionOptions) -> SherpaStream:
        """Begin a segment."""
        return SherpaStream(self)

    def words(self, text: str, tokens: Sequence[str], times: Sequence[float]) -> list[Word]:
        """The words of ``text`` with their times. ``times``: of the tokens, in seconds; as many as these, at least."""
        if not tokens:
            return []
        of = [number for number, token in enumerate(tokens) for _ in token]  # character → token
        if "".join(tokens) != text:  # tokens are bytes, or their marks are left out
            of = [number * len(tokens) // len(text) for number in range(len(text))]
        matches = (_SPACED if spaced(self.language) else _UNSPACED).finditer(self._readable(text))
        spans = [(match[0], of[match.end() - len(match[0].lstrip())], of[match.end() - 1]) for match in matches]
        ends = [times[first] for _, first, _ in spans[1:]] + [times[spans[-1][2]] + _TOKEN_S] if spans else []
        words = [
            Word(word, times[first], min(end, times[last] + _TOKEN_S))
            for (word, first, last), end in zip(spans, ends, strict=True)
        ]
        return in_script("", words, self._convert)[1]

    def _readable(self, text: str) -> str:
        """The text with small letters if the model has none, and with the capitals that it does not write; as long as before."""
        if self._capitals_only and len(text.lower()) == len(text):
            text = text.lower()
            if capital := rules(self.language).capitals:
                text = re.sub(rf"\b{capital.lower()}\b", capital, text)
        if self.final_mark:
            text = re.sub(r"[^\W\d_]", lambda first: first[0].upper()[:1], text, count=1)
        return text


class SherpaStream:
    """A ``RecognitionStream``. Greedy search only adds tokens: all words but the last are stable."""

    def __init__(self, recognizer: SherpaRecognizer) -> None:
        self._recognizer, self._model = recognizer, recognizer.model
        self._stream = self._model.create_stream()
        self._stream.set_option("language", recognizer.language)  # only models of several languages read it
        self._fed_s, self._decoded_s = 0.0, 0.0
        self._times: list[float] = []
        """When the tokens came, in seconds, for models that give no times."""

    def feed(self, samples: Samples) -> PartialText:
        """Take the next samples [n]; return what has been heard so far."""
        words = self._heard(samples)
        return PartialText(words, max(0, len(words) - 1), self._recognizer.language)

    def finish(self) -> PartialText:
        """End the segment; return all of its words."""
        ended_s = self._fed_s
        words = self._heard(np.zeros(round(SAMPLE_RATE * (self._recognizer.chunk_s + _DELAY_S)), np.int16))
        words = [Word(word.text, min(word.start_s, ended_s), min(word.end_s, ended_s)) for word in words]
        words[-1:] = [replace(word, text=word.text + self._recognizer.final_mark) for word in words[-1:]]
        return PartialText(words, len(words), self._recognizer.language)

    def _heard(self, samples: Samples) -> list[Word]:
        self._stream.accept_waveform(SAMPLE_RATE, samples.astype(np.float32) / 32_768)
        self._fed_s += len(samples) / SAMPLE_RATE
        result = self._model.get_result_all(self._stream)
        while self._model.is_ready(self._stream):
            self._model.decode_stream(self._stream)
            result = self._model.get_result_all(self._stream)
            self._times += [self._decoded_s] * (len(result.tokens) - len(self._times))
            self._decoded_s = min(self._fed_s, self._decoded_s + self._recognizer.chunk_s)
        timed = len(result.timestamps) == len(result.tokens)
        return self._recognizer.words(result.text, result.tokens, result.timestamps if timed else self._times)


def _library() -> Any:
    try:
        import sherpa_onnx
    except ImportError as error:
        raise UsageError(
            f'asr.backend is "sherpa-onnx", which cannot be imported ({error}); install it with: '
            "pip install 'streaming-speech-translation[sherpa]'"
        ) from None
    return sherpa_onnx


def _load(folder: Path, threads: int) -> Any:
    """A ``sherpa_onnx.OnlineRecognizer``."""
    sherpa_onnx = _library()
    kind, files = _told(folder)
    arguments = {**files, "num_threads": threads or min(4, usable_cores())}
    command = [sys.executable, "-c", _TRIAL, json.dumps([kind, arguments])]
    trial = subprocess.run(command, capture_output=True, text=True, errors="replace", stdin=subprocess.DEVNULL)
    if trial.returncode:
        *_, said = ["", *trial.stderr.strip().splitlines()]
        reason = _PLACE.sub("", said) or f"it ends with status {trial.returncode}"
        raise ModelError(f"sherpa-onnx cannot load {folder}: {reason}; {_WHERE}")
    return getattr(sherpa_onnx.OnlineRecognizer, kind)(**arguments)


def _told(folder: Path) -> tuple[str, dict[str, str]]:
    """How ``OnlineRecognizer`` loads the model of a folder, and its files by the names of the arguments."""
    _lines(folder / "tokens.txt")
    # Of a file in two precisions, the smaller one.
    paths = sorted(folder.glob("*.onnx"), key=lambda path: ("int8" not in path.name, path.name))
    parts = {part: [path for path in paths if part in path.name] for part in ("encoder", "decoder", "joiner")}
    graphs = {part: str(of_part[0]) for part, of_part in parts.items() if of_part}
    whole = [path for path in paths if not any(path in of_part for of_part in parts.values())]
    tokens = {"tokens": str(folder / "tokens.txt")}
    if len(graphs) == 3:
        return "from_transducer", tokens | graphs
    if graphs.keys() == {"encoder", "decoder"}:
        return "from_paraformer", tokens | graphs
    if graphs or not whole:
        names = ", ".join(path.name for path in paths) or "no ONNX files"
        raise ModelError(
            f"{folder} has {names}; expected are encoder, decoder and joiner of a transducer, encoder and decoder of a "
            f"Paraformer, or one file of a CTC model; {_WHERE}"
        )
    keys = read_header(whole[0]).metadata
    for key, kind in _CTC.items():
        if key in keys:
            return kind, tokens | {"model": str(whole[0])}
    raise ModelError(
        f"{whole[0]} is no streaming CTC model: its metadata has {', '.join(sorted(keys)) or 'nothing'}, and none of "
        f"{', '.join(_CTC)}; {_WHERE}"
    )


def _lines(tokens: Path) -> list[str]:
    """The lines of tokens.txt: a token, a blank, its number."""
    try:
        return tokens.read_text("utf-8", errors="replace").splitlines()
    except OSError as error:
        raise ModelError(f"cannot read {tokens}: {error.strerror}; {_WHERE}") from None
