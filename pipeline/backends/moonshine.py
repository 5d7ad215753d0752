"""Moonshine (UsefulSensors), a small recogniser of English: its encoder takes the audio as it is, without a window of fixed length."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import onnxruntime as ort
from numpy.typing import NDArray

from ..core import DEFAULT, FRAME_S, SAMPLE_RATE, RecognitionOptions, Samples, SpeechSegment, Transcript, first_new_word
from ..errors import ModelError, UsageError
from ..languages import letters
from ..store import MOONSHINE, FileSet, ModelRef, resolve_model
from .asr_options import AsrConfig
from .machine import usable_cores
from .onnx_session import open_session, quiet_options, translate_ort_errors
from .whisper.continuation import continued
from .whisper.coverage import audible
from .whisper.files import thresholds
from .whisper.guards import Evidence, compression_ratio, find_loop, rejection
from .whisper.packing import pack, unpack
from .whisper.words import TimedWord, moved

MOONSHINE_FILES = FileSet(("encoder_model.*", "decoder_model_merged.*", "tokenizer.bin"))
_START, _END = 1, 2
# More tokens than these are a loop: fast speech has 7 a second.
_TOKENS_PER_S, _MORE_TOKENS = 8.0, 6
# The encoder's convolutions need 0.06 s.
_LEAST_SAMPLES = SAMPLE_RATE // 4
# Tokens of a guess that may be wrong before the rest of it is no guess, and how far away the token may be that goes on from one.
_MOST_WRONG, _NEAR = 3, 4
# Mean natural-log probability of the tokens of a draft's last word below which it is left out: it is probably cut off.
_CUT_OFF = -0.7
# Of ``first_new_word``: estimated times say little.
_CHARACTERS_PER_S = 1.0
# A word is taken to last as long as its letters and this many more; a digit is said in as much time as so many letters.
_WORD_LETTERS, _DIGIT_LETTERS = 1.5, 4.0


def model_ref(config: AsrConfig) -> ModelRef:
    """The model that the configuration names."""
    return ModelRef.named(config.model, None, MOONSHINE_FILES)


def find_model(config: AsrConfig) -> Path:
    """The folder of the configured model."""
    if config.model != MOONSHINE.hub_id and not os.path.isdir(config.model):
        raise UsageError(
            f"{config.model!r} is no model of Moonshine; give {MOONSHINE.hub_id} ({MOONSHINE.install}), or a folder with "
            f"{', '.join(MOONSHINE_FILES.needed)}"
        )
    folder = resolve_model(model_ref(config))
    if missing := MOONSHINE_FILES.missing_from(folder):
        raise ModelError(f"{folder} lacks {', '.join(missing)}: not a whole model of Moonshine; fetch it again")
    return folder


def load_model(
    config: AsrConfig,
    languages: Sequence[str],
    directory: Path,
    sharing: MoonshineRecognizer | None,
    several_calls: bool,
) -> MoonshineRecognizer:
    """Load the model of a folder."""
    return MoonshineRecognizer(config, directory, sharing)


class MoonshineRecognizer:
    """A ``DraftRecognizer`` of English. Thread-safe; it keeps no state of a stream.

    The model gives no word times. They are estimated: a word lasts as long as its letters, in the time in which there is sound.
    """

    hears_whole = True

    def __init__(self, config: AsrConfig, directory: Path, sharing: MoonshineRecognizer | None = None) -> None:
        """Load the model. ``sharing``: has it in memory already.

        Raises:
            ModelError: the folder has no model of Moonshine.
        """
        self.config = config
        self._thresholds = thresholds(config, MOONSHINE)
        self._model: MoonshineModel = (
            sharing._model if sharing is not None else MoonshineModel(directory, config.threads)
        )

    def transcribe(self, segments: Sequence[SpeechSegment], options: RecognitionOptions = DEFAULT) -> list[Transcript]:
        """Recognise consecutive segments together; their words are divided by their estimated times."""
        packed = pack(segments)
        heard = self._model.heard(packed.samples)
        if len(segments) > 1 and self._rejected(heard) is not None:
            return [self.transcribe([segment])[0] for segment in segments]
        words = unpack(heard.words, packed)
        return [self._transcript(*share, heard) for share in zip(segments, words, strict=True)]

    def draft(self, segment: SpeechSegment, options: RecognitionOptions) -> Transcript | None:
        """Recognise the segment after its context, whose text is expected to be heard again."""
        packed = pack([*(context.segment for context in options.context), segment])
        known, begin_s = " ".join(each.text for each in options.context), packed.offsets[-1] / SAMPLE_RATE
        heard = self._model.heard(packed.samples, f"{known} {options.expected.strip()}")
        # Speech that is cut off makes the model repeat itself.
        if self._rejected(heard) is not None or find_loop(heard.text, ended=False) is not None:
            return None
        new = first_new_word(known, heard.words, begin_s, _CHARACTERS_PER_S) if options.context else 0
        if new is None:
            return None
        shift_s = segment.start_s - begin_s
        words = [moved(word, shift_s) for word in heard.words[new:]]
        least_s = segment.start_s
        words = [replace(word, start_s=max(word.start_s, least_s), end_s=max(word.end_s, least_s)) for word in words]
        if words and words[-1].mean_log_probability < _CUT_OFF:
            del words[-1]
        transcript = self._transcript(segment, words, heard)
        return continued(transcript, heard.words[new - 1]) if new and transcript.words else transcript

    def _rejected(self, heard: HeardSpeech) -> str | None:
        evidence = Evidence(heard.text, len(heard.log_probabilities), heard.mean_log_probability, 0.0)
        return rejection(evidence, self._thresholds) if heard.ended else "repetition"

    def _transcript(self, segment: SpeechSegment, words: Sequence[TimedWord], heard: HeardSpeech) -> Transcript:
        text = "".join(word.text for word in words).strip()
        timed = self.config.word_timestamps
        return Transcript(
            segment_id=segment.id,
            start_s=segment.speech_start_s,
            end_s=segment.end_s,
            text=text,
            language="en",
            mean_log_probability=heard.mean_log_probability,
            compression_ratio=compression_ratio(text),
            rejected=self._rejected(heard) if text else "empty",
            heard_s=segment.heard_s,
            speech_end_s=segment.speech_end_s,
            words=tuple(words) if timed else (),
        )


@dataclass(frozen=True)
class HeardSpeech:
    """What the model hears in audio."""

    words: Sequence[TimedWord]
    """Their times are estimates, in seconds from the first sample."""
    log_probabilities: Sequence[float]
    """Natural logarithms of the probabilities of the tokens."""
    ended: bool
    """False if the token limit ended the text."""

    @property
    def text(self) -> str:
        return "".join(word.text for word in self.words).strip()

    @property
    def mean_log_probability(self) -> float:
        return float(np.mean(self.log_probabilities)) if self.log_probabilities else 0.0


class MoonshineModel:
    """Encoder and decoder. The decoder's KV stays in ``OrtValue``s; that of the encoder is computed once for each audio."""

    def __init__(self, folder: Path, threads: int) -> None:
        encoder, decoder = (_newest(folder, name) for name in ("encoder_model", "decoder_model_merged"))
        threads = threads or min(4, usable_cores())
        self._encoder, self._decoder = open_session(encoder, threads), open_session(decoder, threads)
        self._path = decoder
        self._pieces = _pieces(folder / "tokenizer.bin")
        self._ids = {piece: number for number, piece in reversed(list(enumerate(self._pieces)))}
        inputs = {each.name: each.shape for each in self._decoder.get_inputs()}
        self._past = {name: shape for name, shape in inputs.items() if name.startswith("past_key_values.")}
        self._outputs = [output.name for output in self._decoder.get_outputs()]
        expected = {"input_ids", "encoder_hidden_states", "encoder_attention_mask", "use_cache_branch", *self._past}
        if {each.name for each in self._encoder.get_inputs()} != {"input_values", "attention_mask"} or (
            inputs.keys() != expected or not self._past
        ):
            raise ModelError(
                f"{folder} is no model of Moonshine: its decoder has the inputs {', '.join(list(inputs)[:6])} …; expected are "
                "those of an export with past_key_values and use_cache_branch, and an encoder of input_values"
            )
        if (rows := self._decoder.get_outputs()[0].shape[-1]) != len(self._pieces):
            raise ModelError(
                f"{folder}: the model has {rows} tokens and tokenizer.bin {len(self._pieces)}; fetch both again"
            )
        self.heard(np.zeros(_LEAST_SAMPLES, np.int16))  # a broken model fails at once

    def heard(self, samples: Samples, guess: str = "") -> HeardSpeech:
        """What is said in ``samples`` [n]. ``guess``: what it may be; the parts of it that are right take next to no time.

        Tokens that are fed together are rounded together to 8 bits, so a guess may decide between texts that are as probable.
        """
        audio = np.zeros((1, max(len(samples), _LEAST_SAMPLES)), np.float32)
        audio[0, : len(samples)] = samples.astype(np.float32) / 32_768
        mask = ort.OrtValue.ortvalue_from_numpy(np.ones(audio.shape, np.int64))
        feed = {"input_values": ort.OrtValue.ortvalue_from_numpy(audio), "attention_mask": mask}
        options = quiet_options()
        with translate_ort_errors(self._path, 0, options):
            (hidden,) = self._encoder.run_with_ort_values(None, feed, options)
        fixed = {"encoder_hidden_states": hidden, "encoder_attention_mask": mask}
        limit = round(_TOKENS_PER_S * len(samples) / SAMPLE_RATE) + _MORE_TOKENS
        ids, log_probabilities = self._decoded(fixed, self._guessed(guess), limit)
        ended = ids[-1] == _END
        words = self._words(ids[: len(ids) - ended], log_probabilities)
        return HeardSpeech(_timed(words, samples), log_probabilities, ended)

    def _decoded(
        self, fixed: Mapping[str, ort.OrtValue], guess: Sequence[int], limit: int
    ) -> tuple[list[int], list[float]]:
        """The most probable tokens, with the end token, and their log-probabilities: greedy search, which verifies a guess."""
        ids: list[int] = []
        log_probabilities: list[float] = []
        kv: dict[str, ort.OrtValue] = {}
        given, wrong = [_START, *guess], 0
        while True:
            scores, kv = self._step(fixed, given, kv)
            for index, row in enumerate(scores):
                best = int(row.argmax())
                ids.append(best)
                log_probabilities.append(-float(np.log(np.exp(row - row[best]).sum())))
                if best == _END or len(ids) >= limit:
                    return ids, log_probabilities
                if index + 1 < len(given) and given[index + 1] != best:
                    break
            rest = given[index + 1 :]
            if rest:
                kv = {name: value if "encoder" in name else _first(value, len(ids)) for name, value in kv.items()}
                wrong += 1
                rest = (
                    rest[rest.index(best, 0, _NEAR) + 1 if best in rest[:_NEAR] else 1 :]
                    if wrong <= _MOST_WRONG
                    else []
                )
            given = [best, *rest]

    def _step(
        self, fixed: Mapping[str, ort.OrtValue], tokens: Sequence[int], kv: Mapping[str, ort.OrtValue]
    ) -> tuple[NDArray[np.float32], dict[str, ort.OrtValue]]:
        """Feed ``tokens`` after those in ``kv`` (none at first): the scores of the next tokens [tokens, vocabulary], and the new KV."""
        names = [name for name in self._past if not kv or "encoder" not in name]
        past = kv or {
            name: _value(np.zeros((1, shape[1], 0, shape[3]), np.float32)) for name, shape in self._past.items()
        }
        feed = {"input_ids": _value(np.array([tokens], np.int64)), "use_cache_branch": _value(np.array([bool(kv)]))}
        options = quiet_options()
        outputs = [self._outputs[0], *(name.replace("past_key_values", "present") for name in names)]
        with translate_ort_errors(self._path, len(tokens), options):
            scores, *values = self._decoder.run_with_ort_values(outputs, {**feed, **fixed, **past}, options)
        return scores.numpy()[0], {**kv, **dict(zip(names, values, strict=True))}

    def _guessed(self, text: str) -> list[int]:
        """The tokens of a text: the longest ones that fit, which are mostly those that the model writes."""
        data = "".join(f"▁{word}" for word in text.split()).encode()
        ids: list[int] = []
        begin = 0
        while begin < len(data):
            end = next((end for end in range(min(len(data), begin + 24), begin, -1) if data[begin:end] in self._ids), 0)
            if not end:
                return ids
            ids.append(self._ids[data[begin:end]])
            begin = end
        return ids

    def _words(self, ids: Sequence[int], log_probabilities: Sequence[float]) -> list[TimedWord]:
        """The words that the tokens make, with a blank before each, and without times."""
        words: list[tuple[bytes, tuple[float, ...]]] = []
        for token, log_probability in zip(ids, log_probabilities, strict=False):
            piece = self._pieces[token].replace("▁".encode(), b" ")
            if piece.startswith(b"<"):  # a special token
                continue
            if words and not piece.startswith(b" "):
                before, values = words.pop()
                words.append((before + piece, (*values, log_probability)))
            else:
                words.append((piece, (log_probability,)))
        texts = ((data.decode("utf-8", "replace"), values) for data, values in words)
        return [TimedWord(text, 0.0, 0.0, log_probabilities=values) for text, values in texts if text.strip()]


def _timed(words: Sequence[TimedWord], samples: Samples) -> list[TimedWord]:
    """``words`` with estimated times, in seconds from the first of ``samples``."""
    sound = np.flatnonzero(audible(samples))
    if not len(sound):
        sound = np.arange(max(1, round(len(samples) / SAMPLE_RATE / FRAME_S)))
    lengths = [_WORD_LETTERS + sum(_DIGIT_LETTERS if c.isdigit() else 1 for c in letters(word.text)) for word in words]
    ends = np.cumsum([0.0, *lengths]) / max(1e-9, sum(lengths)) * len(sound)
    timed = []
    for word, begin, end in zip(words, ends, ends[1:], strict=False):
        first, last = sound[min(int(begin), len(sound) - 1)], sound[max(0, min(round(end), len(sound)) - 1)]
        timed.append(replace(word, start_s=float(first) * FRAME_S, end_s=float(max(first, last) + 1) * FRAME_S))
    return timed


def _newest(folder: Path, name: str) -> Path:
    """The file of a graph: an .ort file if there is one."""
    return max(folder.glob(f"{name}.*"), key=lambda path: (path.suffix == ".ort", path.name))


def _pieces(path: Path) -> list[bytes]:
    """The text of each token: its length in one byte, or two from 128 on, and its bytes."""
    data, pieces, offset = path.read_bytes(), list[bytes](), 0
    while offset < len(data):
        length, offset = data[offset], offset + 1
        if length >= 128 and offset < len(data):
            length, offset = 128 * data[offset] + length - 128, offset + 1
        if offset + length > len(data):
            raise ModelError(f"{path} is cut off after {len(pieces)} tokens; fetch it again")
        pieces.append(data[offset : offset + length])
        offset += length
    return pieces


def _value(array: NDArray[np.generic]) -> ort.OrtValue:
    return ort.OrtValue.ortvalue_from_numpy(array)


def _first(value: ort.OrtValue, steps: int) -> ort.OrtValue:
    """The first positions of self-attention KV [1, heads, steps, head_dim]."""
    return _value(np.ascontiguousarray(value.numpy()[:, :, :steps]))
