"""Calls of a loaded Whisper model: features, encode, generate, align. See ``recognizer`` for policy."""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import ctranslate2
import numpy as np
import tokenizers
from faster_whisper.feature_extractor import FeatureExtractor
from faster_whisper.tokenizer import Tokenizer
from numpy.typing import NDArray

from ...core import SAMPLE_RATE, Samples
from ...errors import ModelError, UsageError, one_line
from ...languages import letters, spaced
from ..asr_options import AsrConfig
from .language_id import knows_language, whisper_code
from .mel import MelFilters
from .weights import WhisperWeights
from .words import joined_pieces

if TYPE_CHECKING:
    from ...core import Replacement

FULL_WINDOW_S = 30.0
"""The window Whisper was trained on, and the longest one its encoder takes."""
PADDING_S = 1.0
"""Padding after the speech. With less, transcripts loop."""

# Longer windows come in these steps, because CTranslate2 keeps memory for each length.
_WINDOW_STEP_S = 2.5
_HOP = 160  # samples per feature frame
_FIRST_MERGE = ("\u0120", "t")  # of GPT-2's merges, which Whisper's begin with; U+0120 stands for a blank
_TICK_S = 0.02
"""Seconds per encoder position: two feature frames."""
# Whisper's decoder has 448 positions; the prompt may use half of them (openai/whisper, decoding.py).
_MOST_TOKENS = 448
MOST_PROMPT_TOKENS = _MOST_TOKENS // 2 - 1
# Generated text may use the other half (CTranslate2, whisper.cc). In most scripts speech has three to eight tokens per
# second, and timestamps half a token; a search that loops runs to the limit.
_MOST_GENERATED = _MOST_TOKENS // 2
_TOKENS_PER_S, _LEAST_TOKENS = 25, 32
_LIMITED_PER_S, _LEAST_LIMITED = 9, 16
# Only windows with the same limit share the decoder's runs. Their limits are those of audio in steps of this length.
_LIMIT_STEP_S = 5.0
# Windows that share the decoder's runs. More gain little, and take memory: with large models, much.
_MOST_AT_ONCE = 4


@dataclass(frozen=True)
class EncodedAudio:
    """Encoded audio."""

    states: Any
    """The encoder's output as a CTranslate2 view, [1, positions, d_model]."""
    samples: Samples = field(repr=False)
    """The audio [n]."""
    window_s: float
    language: str
    """The spoken language, for ``generate`` and ``align``: the engine's first one unless replaced."""

    @property
    def audio_s(self) -> float:
        return len(self.samples) / SAMPLE_RATE


@dataclass(frozen=True)
class Hypothesis:
    """The most likely result of a search."""

    tokens: tuple[int, ...]
    """Text tokens, without the end token."""
    text: str
    log_probability: float
    """Mean natural-log probability of the tokens generated: timestamps and the end token included."""
    text_log_probability: float
    """Natural-log probability of the whole text, summed over hypotheses that differ only in case and punctuation."""
    no_speech_probability: float
    """Probability that the window holds no speech, 0 to 1."""
    ended: bool
    """False if the token limit ended the search."""
    replaced: tuple[Replacement, ...] = ()
    """Terms of the glossary in ``text`` that were misheard. The probabilities are those of what was heard."""


class WhisperEngine:
    """A loaded Whisper model for one or more languages. Thread-safe."""

    def __init__(self, weights: WhisperWeights, languages: str | Sequence[str]) -> None:
        """``languages``: the spoken language or languages."""
        self.languages = (languages,) if isinstance(languages, str) else tuple(languages)
        self.weights, self._model, text = weights, weights.model, weights.tokenizer
        self.multilingual = multilingual = bool(self._model.is_multilingual)
        if len(self.languages) > 1 and not multilingual:
            raise UsageError(
                f"the speech model in {weights.directory} is English-only, but the spoken language is one of "
                f"{', '.join(self.languages[:8])}{' and more' * (len(self.languages) > 8)}; choose a multilingual model, such as base or small"
            )
        for language in self.languages:
            if not self.knows(language):
                knows = "only English" if not multilingual else "other languages"
                raise UsageError(
                    f"the speech model in {weights.directory} does not know the language {language!r}; it knows {knows}"
                )
        self._tokenizers = {
            language: Tokenizer(text, multilingual, task="transcribe", language=whisper_code(language))
            for language in self.languages
        }
        self.tokenizer = self._tokenizers[self.languages[0]]
        """The tokenizer of the first language. All encode and decode alike; start tokens and the division into words differ."""
        self._features = FeatureExtractor(feature_size=self._model.n_mels)
        self._features.mel_filters = MelFilters(self._features.mel_filters)

    def knows(self, language: str) -> bool:
        """Whether the model was trained on the language."""
        return knows_language(self.weights.tokenizer, language, self.multilingual)

    def prompt(self, config: AsrConfig) -> tuple[int, ...]:
        """The tokens of the configured hot words and prompt."""
        text = " ".join(part for part in (config.hotwords, config.prompt) if part)
        tokens = self.tokens(f" {text.strip()}") if text else ()
        if len(tokens) > MOST_PROMPT_TOKENS:
            raise UsageError(
                f"asr.hotwords and asr.prompt have {len(tokens)} tokens together; Whisper takes {MOST_PROMPT_TOKENS} at "
                "most, and every one makes each segment slower: shorten them"
            )
        return tokens

    def check(self, config: AsrConfig, prompt: tuple[int, ...]) -> dict[str, float]:
        """Run the model once on silence; return the probability of each language there if there are several."""
        try:
            encoded = self.encode(np.zeros(SAMPLE_RATE, np.int16), config.window_s)
            hypothesis = self.generate(encoded, 1, prompt)
            on_silence = self.detect(encoded) if len(self.languages) > 1 else {}
        except (RuntimeError, ValueError) as error:
            raise ModelError(
                f"the speech model {config.model} cannot run: {one_line(error)}; fetch it again"
            ) from error
        if not math.isfinite(hypothesis.log_probability + hypothesis.no_speech_probability):
            raise ModelError(f"the speech model {config.model} is damaged: its scores are not finite; fetch it again")
        return {language: on_silence[whisper_code(language)] for language in self.languages if on_silence}

    def features(self, samples: Samples, window_s: float) -> NDArray[np.float32]:
        """The log-mel spectrogram [1, mel bands, 10 ms frames] of ``samples`` [n], padded to ``window_s``.

        If that is less than the audio and ``PADDING_S``, the window is the next multiple of 2.5 s. ValueError if the audio is
        longer than Whisper's window.
        """
        audio_s = len(samples) / SAMPLE_RATE
        if audio_s > FULL_WINDOW_S:
            raise ValueError(
                f"{audio_s:.1f} s of audio; Whisper takes {FULL_WINDOW_S:.0f} s at once: cut it into segments"
            )
        if window_s < audio_s + PADDING_S:
            window_s = min(FULL_WINDOW_S, math.ceil((audio_s + PADDING_S) / _WINDOW_STEP_S) * _WINDOW_STEP_S)
        frames = 2 * round(window_s * SAMPLE_RATE / _HOP / 2)  # even: the encoder halves the frame rate
        # Pad the audio with silence, as in training; faster-whisper pads the spectrogram with zeros instead.
        audio = np.zeros(frames * _HOP, np.float32)
        audio[: len(samples)] = samples[: len(audio)].astype(np.float32) / 32768.0
        return np.ascontiguousarray(self._features(audio, padding=0)[None, :, :frames], np.float32)

    def encode(self, samples: Samples, window_s: float) -> EncodedAudio:
        """Compute the ``features`` of the audio and run the encoder."""
        features = self.features(samples, window_s)
        view = ctranslate2.StorageView.from_array(features)
        # Of a GPU, states are copied: NumPy joins those of several windows.
        on_gpu = self._model.device == "cuda"
        states = self._model.encode(view, to_cpu=True) if on_gpu else self._model.encode(view)
        window_s = features.shape[2] * _HOP / SAMPLE_RATE
        return EncodedAudio(states, samples, window_s, self.languages[0])

    def detect(self, encoded: EncodedAudio) -> dict[str, float]:
        """The probability of each language that a multilingual model knows, by Whisper's codes: one decoder step."""
        (probabilities,) = self._model.detect_language(encoded.states)
        return {token[2:-2]: probability for token, probability in probabilities}

    def generate(
        self,
        encoded: EncodedAudio,
        beams: int,
        prompt: tuple[int, ...] = (),
        *,
        limited: bool = False,
        timestamps: bool = True,
    ) -> Hypothesis:
        """Search for the text.

        Args:
            beams: number of hypotheses; 1 is greedy.
            prompt: tokens of the text before the audio.
            limited: allow only as many tokens as fast speech has.
            timestamps: the model also says when each sentence begins and ends. Without, it leaves more out.
        """
        limit = _token_limit(encoded.audio_s, limited=limited)
        (hypothesis,) = self._generate([encoded], beams, prompt, limit, timestamps=timestamps)
        return hypothesis

    def generate_several(
        self, encoded: Sequence[EncodedAudio], beams: int, prompt: tuple[int, ...] = (), *, limited: bool = False
    ) -> list[Hypothesis]:
        """Search for the text of several windows in one language; see ``generate``. The result of each does not depend on the others.

        Windows of one length share the runs of the decoder. The encoder would not gain from that: it is slower.
        """
        hypotheses: dict[int, Hypothesis] = {}
        alike: dict[tuple[float, int], list[int]] = {}
        for number, audio in enumerate(encoded):
            limit = _token_limit(math.ceil(audio.audio_s / _LIMIT_STEP_S) * _LIMIT_STEP_S, limited=limited)
            alike.setdefault((audio.window_s, limit), []).append(number)
        for (_, limit), numbers in alike.items():
            for begin in range(0, len(numbers), _MOST_AT_ONCE):
                some = numbers[begin : begin + _MOST_AT_ONCE]
                results = self._generate([encoded[number] for number in some], beams, prompt, limit)
                hypotheses |= zip(some, results, strict=True)
        return [hypotheses[number] for number in range(len(encoded))]

    def _generate(
        self,
        encoded: Sequence[EncodedAudio],
        beams: int,
        prompt: tuple[int, ...],
        limit: int,
        *,
        timestamps: bool = True,
    ) -> list[Hypothesis]:
        """Search for the texts of windows of one length and language, of at most ``limit`` tokens."""
        tokenizer = self._tokenizers[encoded[0].language]
        before = [tokenizer.sot_prev, *prompt] if prompt else []
        start = [*before, *tokenizer.sot_sequence, *([] if timestamps else [tokenizer.no_timestamps])]
        states = encoded[0].states
        if len(encoded) > 1:
            states = ctranslate2.StorageView.from_array(np.concatenate([np.asarray(audio.states) for audio in encoded]))
        results = self._model.generate(
            states,
            [start] * len(encoded),
            beam_size=beams,
            num_hypotheses=beams,
            # CTranslate2 generates at most half of this, or what the prompt leaves if that is less.
            max_length=min(_MOST_TOKENS, max(2 * limit, len(start) + limit)),
            return_scores=True,
            return_no_speech_prob=True,
        )
        return [self._hypothesis(result, tokenizer, limit) for result in results]

    @staticmethod
    def _hypothesis(result: Any, tokenizer: Tokenizer, limit: int) -> Hypothesis:
        """The result of a search, from CTranslate2's."""
        # CTranslate2's score includes the end token but is divided by the number of tokens without it.
        sums = [score * len(tokens) for score, tokens in zip(result.scores, result.sequences_ids, strict=True)]
        texts = [tokenizer.decode(tokens) for tokens in result.sequences_ids]
        same = [total for total, text in zip(sums, texts, strict=True) if letters(text) == letters(texts[0])]
        tokens = result.sequences_ids[0]
        return Hypothesis(
            tuple(token for token in tokens if token < tokenizer.eot),
            texts[0],
            sums[0] / (len(tokens) + 1),
            float(np.logaddexp.reduce(same)),
            result.no_speech_prob,
            ended=len(tokens) < limit,
        )

    def align(self, encoded: EncodedAudio, tokens: tuple[int, ...]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """When each of ``tokens`` was spoken, from the cross-attention of the model's alignment heads.

        Returns:
            [tokens + 1], the start of each token in seconds from the audio's first sample, then the end of the last one;
            and [tokens], their natural-log probabilities.
        """
        frames = max(1, round(encoded.audio_s * SAMPLE_RATE / _HOP))
        (alignment,) = self._model.align(
            encoded.states, self._tokenizers[encoded.language].sot_sequence, [list(tokens)], frames
        )
        path = np.array(alignment.alignments, np.int64).reshape(-1, 2)  # pairs of token and position
        begins = np.r_[True, np.diff(path[:, 0]) > 0]
        starts = path[begins, 1] * _TICK_S
        probabilities = np.array(alignment.text_token_probs, np.float64)
        return starts, np.log(np.maximum(probabilities, 1e-10))

    def score(self, encoded: EncodedAudio, tokens: tuple[int, ...], prompt: tuple[int, ...] = ()) -> float:
        """The natural-log probability of a text of at least one token, without its end token: one run of the decoder."""
        tokenizer = self._tokenizers[encoded.language]
        start = [*([tokenizer.sot_prev, *prompt] if prompt else []), *tokenizer.sot_sequence]
        (alignment,) = self._model.align(encoded.states, start, [list(tokens)], 2)  # the times are not needed
        return float(np.log(np.maximum(alignment.text_token_probs, 1e-10)).sum())

    def tokens(self, text: str) -> tuple[int, ...]:
        """Tokenize ``text`` as Whisper's decoder would write it: with the blank before its first word, if it has one."""
        return tuple(self._encoder.encode(text, add_special_tokens=False).ids)

    @functools.cached_property
    def _encoder(self) -> tokenizers.Tokenizer:
        """The tokenizer with all merges of its vocabulary.

        Files of some conversions, Whisper base and small among them, lack the first one, of a blank and "t". With them,
        " the" would become two tokens, which the decoder never writes.
        """
        table = json.loads((self.weights.directory / "tokenizer.json").read_text("utf-8"))
        model = table["model"]
        as_text = model["merges"] and isinstance(model["merges"][0], str)
        first = " ".join(_FIRST_MERGE) if as_text else list(_FIRST_MERGE)
        if "".join(_FIRST_MERGE) not in model["vocab"] or first in model["merges"]:
            return self._tokenizers[self.languages[0]].tokenizer  # type: ignore[no-any-return]  # faster-whisper has no types
        model["merges"].insert(0, first)
        whole: tokenizers.Tokenizer = tokenizers.Tokenizer.from_str(json.dumps(table))
        return whole

    def divide(self, tokens: tuple[int, ...], language: str) -> tuple[list[str], list[int]]:
        """Group tokens into words: each word's text with its leading space, and its number of tokens."""
        texts, parts = self._tokenizers[language].split_to_word_tokens(list(tokens))
        return joined_pieces(texts, [len(part) for part in parts], spaced(language))


def _token_limit(audio_s: float, *, limited: bool = False) -> int:
    """Tokens that a search may generate."""
    least, per_s = (_LEAST_LIMITED, _LIMITED_PER_S) if limited else (_LEAST_TOKENS, _TOKENS_PER_S)
    return min(_MOST_GENERATED, least + round(per_s * audio_s))
