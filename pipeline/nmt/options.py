"""Options of the NMT stage."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from pipeline.bounds import one_of, within


@dataclass(frozen=True)
class NmtConfig:
    # A directory or a hub id; "auto" takes what the bundled table has for the languages (pipeline.models list --pairs).
    model: str = "Xenova/opus-mt-en-zh"
    revision: str | None = None
    # A second model, which translates what the first one writes: from the language via into the target language.
    second: str | None = None
    second_revision: str | None = None
    # Where the table has no direct model, the language that two in a row go through; "none" forbids two.
    via: str = "en"
    # A hub model is compiled on first use, to this precision: fp32, int8, int4, or auto, which is int8 where there is
    # no text to measure with, as on the hub. "as-is" runs its ONNX files as they are.
    weights: str = one_of("auto", "auto", "fp32", "int8", "int4", "as-is")
    # Which of a hub repository's ONNX files to run as they are: "_quantized", "_fp16", "_q4" …; "" means fp32 where
    # weights is "as-is".
    file_suffix: str = ""
    # Hypotheses that the search keeps; 1 is greedy, the fastest.
    beam_size: int = within(1, 1, 100)
    # Target tokens a sentence at most.
    max_tokens: int = within(256, 1, 100_000)
    # Target tokens at most for each source token, and a few more; 0 sets no such limit. A sentence that reaches it, or loops, is
    # searched again, then cut.
    max_length_factor: float = within(3.0, 0, 1_000)
    # No sequence of so many target tokens comes twice in a sentence; 0: as the model's files say.
    no_repeat_ngram: int = within(0, 0, 100)
    # Seconds a sentence at most; 0 sets no limit.
    time_limit_s: float = within(0.0, 0, 86_400)
    # Translations kept for sentences that come again.
    cached_sentences: int = within(256, 0, 1_000_000)
    threads: int = within(1, 0, 256)

    @property
    def steps(self) -> tuple[NmtConfig, ...]:
        """One configuration a model, in the order in which they translate."""
        first = dataclasses.replace(self, second=None, second_revision=None)
        if self.second is None:
            return (first,)
        return first, dataclasses.replace(first, model=self.second, revision=self.second_revision)
