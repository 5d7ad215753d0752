"""Options of the NMT stage."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import urlsplit

from ..core import CheckedOptions, name_in, one_of, within
from ..plugins import Table

# With a shorter limit, every sentence would be cut after its first token.
_MIN_TIME_LIMIT_S = 0.001
TRANSLATORS = Table("translators", "translator", {"marian": "backends.marian.model:MarianModel"})
"""Kinds of translators. Those of other packages are functions ``load(source, target, options)``."""


@dataclass(frozen=True)
class NmtConfig(CheckedOptions):
    """Translation: the model, its precision, and the limits of the search."""

    # A directory, a hub id, or a student of Firefox Translations, such as firefox/en-de; "auto" looks up the languages in the bundled table (pipeline.models list --pairs).
    model: str = "firefox/en-zh"
    # Commit of the model's hub repository. Without it: the newest.
    revision: str | None = None
    # A second model, which translates the first model's output from the language via into the target language.
    second: str | None = None
    # Commit of the second model's hub repository.
    second_revision: str | None = None
    # Pivot language of two models in sequence if the table has no direct model; "none" forbids two models.
    via: str = "en"
    # A hub model is compiled on first use to this precision: fp32, int8, int4 or auto. Without text to measure quality
    # with, as for hub models, auto is int8. "as-is" runs the ONNX files as they are.
    weights: str = one_of("auto", "auto", "fp32", "int8", "int4", "as-is")
    # Suffix of the hub repository's ONNX files to run as they are: "_quantized", "_fp16", "_q4" …; "" means fp32 if
    # weights is "as-is".
    file_suffix: str = ""
    # Number of hypotheses kept by the search; 1 is greedy, the fastest.
    beam_size: int = within(1, 1, 100)
    # Maximum target tokens per sentence.
    max_tokens: int = within(256, 1, 100_000)
    # Maximum target tokens per source token, plus a small constant; 0 disables this limit. A sentence that loops or
    # reaches the limit is searched again; if that fails too, it is cut.
    max_length_factor: float = within(3.0, 0, 1_000)
    # Forbid target n-grams of this size from repeating within a sentence; 0 uses the model's setting.
    no_repeat_ngram: int = within(0, 0, 100)
    # Maximum seconds per sentence; 0 disables the limit.
    time_limit_s: float = within(0.0, 0, 86_400)
    # Number of translations kept for repeated sentences.
    cached_sentences: int = within(256, 0, 1_000_000)
    # A server with OpenAI's chat interface (llama.cpp, Ollama, vLLM), such as http://127.0.0.1:8080/v1, that translates finished sentences
    # instead; model makes the drafts, and stands in. What is said is sent there. Its key is taken from SPEECH_TRANSLATE_NMT_KEY.
    url: str | None = None
    # The name of the model there.
    url_model: str = "default"
    # Seconds to wait for an answer; drafts of the next sentence wait as well.
    url_timeout_s: float = within(5.0, 0.1, 600)
    # Tokens that all sentences of the process may use there, as the server counts them; 0 is no limit.
    url_tokens: int = within(0, 0, 1_000_000_000_000)
    # Threads of ONNX Runtime; 0 is its default, one per core.
    threads: int = within(1, 0, 256)
    # The program that translates: "marian", for which the options above are; or one of an installed package (docs/extending.md).
    backend: str = name_in("marian", TRANSLATORS)

    @property
    def plugged_in(self) -> bool:
        """Whether the translator is one of another package, which finds its model itself."""
        return self.backend not in TRANSLATORS.own

    @property
    def steps(self) -> tuple[NmtConfig, ...]:
        """One configuration per model, in the order of translation."""
        if self.plugged_in:
            return ()
        first = dataclasses.replace(self, second=None, second_revision=None)
        if self.second is None:
            return (first,)
        return first, dataclasses.replace(first, model=self.second, revision=self.second_revision)

    def conflicts(self, section: str) -> Iterator[str]:
        """Options that contradict each other: one sentence each, with the names of the keys, in a section of this name."""
        if self.second is not None and self.model == "auto":
            yield (
                f"{section}.second needs {section}.model to name a model; {section}.model is auto, which finds both: leave "
                f"{section}.second out"
            )
        if self.second is not None and self.via == "none":
            yield (
                f"{section}.second translates from the language {section}.via, which is none; set {section}.via, or leave "
                f"{section}.second out"
            )
        if self.url is not None and not is_server(self.url):
            yield f"{section}.url is no address such as http://127.0.0.1:8080/v1, without a user, a password and a query"
        if 0 < self.time_limit_s < _MIN_TIME_LIMIT_S:
            yield (
                f"{section}.time_limit_s ({self.time_limit_s:g}) leaves no time to translate a sentence; allowed is 0 (no "
                f"limit) or at least {_MIN_TIME_LIMIT_S:g}"
            )


def is_server(url: str) -> bool:
    """Whether ``url`` is an address of HTTP without a user, a password and a query."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(parts.hostname) and port != 0 and not set("@?#") & set(url)
