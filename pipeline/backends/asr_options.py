"""Options of the ASR stage."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from ..core import CheckedOptions, name_in, one_of, within
from ..plugins import Table


@dataclass(frozen=True)
class Backend:
    """What is known of a recogniser before its module is imported."""

    only: str | None = None
    """The one language that it knows; None: several."""
    detects: bool = False
    """Whether it tells which of several languages is spoken."""
    drafts: bool = False
    """Whether it can make the drafts of another one."""


RECOGNIZERS = Table(
    "recognizers",
    "recogniser",
    {"whisper": "backends.whisper", "moonshine": "backends.moonshine", "sherpa-onnx": "backends.sherpa"},
)
"""Ours are modules with the functions of ``RecognizerEngine``; those of other packages are functions ``load(config, languages)``."""
_BACKENDS = {"whisper": Backend(detects=True, drafts=True), "moonshine": Backend(only="en", drafts=True)}


def backend_of(name: str) -> Backend:
    """What is known of the recogniser of a name."""
    return _BACKENDS.get(name, Backend())


@dataclass(frozen=True)
class DraftModel(CheckedOptions):
    """Another, smaller model for drafts. All other options are those of [asr]."""

    # A model as in [asr]. Without it, the model of [asr] makes the drafts.
    model: str | None = None
    # Commit of this model's hub repository.
    revision: str | None = None
    # The program that recognises; without it, that of [asr]. "moonshine" makes drafts of English alone; those of other languages are
    # made by the model of [asr].
    backend: str | None = one_of(None, *(name for name, backend in _BACKENDS.items() if backend.drafts))


@dataclass(frozen=True)
class AsrConfig(CheckedOptions):
    """Recognition: the model, how much it hears at once, and when its text is rejected."""

    # The program that recognises: "whisper" (CTranslate2); "moonshine", a small model of English (the extra moonshine);
    # "sherpa-onnx", whose models hear as people speak (the extra sherpa); or one of an installed package (docs/extending.md). Of the
    # options below, Moonshine and sherpa-onnx take ``model``, ``threads`` and ``word_timestamps``, and sherpa-onnx ``script``.
    backend: str = name_in("whisper", RECOGNIZERS)
    # A directory, a Whisper size ("small"), or the hub id of a CTranslate2 model.
    model: str = "Systran/faster-whisper-small"
    # Commit of the hub repository. Without it: the known one, else the newest.
    revision: str | None = None
    # Seconds of audio the encoder computes on: the speech, padded to this length. Whisper was trained on 30 s; a third
    # of that is enough and three to five times as fast. Longer speech gets a longer window, with at least one second of padding.
    # Drafts have three quarters of it.
    window_s: float = within(10.0, 1, 30)
    # Beam size; 1 is greedy. 5 in a short window is as accurate as 1 in the full window.
    beam_size: int = within(5, 1, 20)
    # Where the model computes: "cuda" is an NVIDIA GPU; "auto" takes one if CTranslate2 can use it, else the CPU.
    device: str = one_of("auto", "auto", "cpu", "cuda")
    # CTranslate2's type of weights and arithmetic. On a GPU, "int8" stands for float16 where the GPU has it; "int8_float16" takes
    # half the memory. With "float32", the number of threads can change the text.
    compute_type: str = one_of("int8", "default", "auto", "int8", "int8_float32", "int8_float16", "float16", "float32")
    # Threads of one recognition; 0 is CTranslate2's default, one per core, at most four.
    threads: int = within(0, 0, 256)
    # Script of Chinese transcripts, because Whisper mixes both. Without it: for Mandarin (zh) simplified, or
    # traditional if the language is zh-TW, zh-HK or zh-Hant; as heard otherwise. It applies to the displayed text; the
    # Mandarin translator always gets simplified text, unless its files say that it was trained on traditional text.
    script: str | None = one_of(None, "simplified", "traditional", "as-heard")
    # Time subtitles by words; otherwise sentences share a segment's time in proportion to their letters.
    word_timestamps: bool = True
    # Words to expect, such as names, in the wanted spelling.
    hotwords: str = ""
    # Text before the speech, in its language and style. Keep hotwords and prompt short: each token costs time.
    prompt: str = ""
    # Without the rejection thresholds, the known values of the model apply. The rules are Whisper's own (openai/whisper,
    # transcribe.py).
    # A transcript is rejected as silence if the probability of no speech is above this and the text is uncertain.
    no_speech_threshold: float | None = within(None, 0, 1)
    # A transcript is uncertain if the mean log-probability of its tokens is below this. It is shown, marked, unless it is so far below
    # this, or speech so improbable, that it may be invented.
    log_probability_threshold: float | None = within(None, -100, 0)
    # A transcript is rejected as a repetition if its size divided by its compressed size is above this.
    compression_ratio_threshold: float | None = within(None, 1, 100)
    # A smaller model for the drafts of live runs: they come sooner and more often than those of a big one. Final text and pauses are
    # always ``model``'s. Not loaded for recordings.
    draft: DraftModel = DraftModel()

    @property
    def of_draft_model(self) -> AsrConfig | None:
        """The options of the draft model, if there is one. Rejection thresholds belong to a model, so it has its own."""
        if self.draft.model is None:
            return None
        return replace(
            self,
            backend=self.draft.backend or self.backend,
            model=self.draft.model,
            revision=self.draft.revision,
            no_speech_threshold=None,
            log_probability_threshold=None,
            compression_ratio_threshold=None,
            draft=DraftModel(),
        )

    def conflicts(self) -> Iterator[str]:
        """Options that contradict each other: one sentence each, with the names of the keys."""
        if self.backend != "whisper" and self.draft.model is not None:
            yield f'asr.draft.model is for asr.backend = "whisper"; it is "{self.backend}", which needs no drafts of another model'
