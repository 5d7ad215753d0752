"""A TOML file → frozen dataclasses. Every mistake is named with its key and what is allowed there."""

from __future__ import annotations

import dataclasses
import os
import tomllib
import types
import typing
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pipeline.errors import ConfigError
from pipeline.languages import normalized_code
from pipeline.resources import CONFIGS, named_configs
from pipeline.run.overload import OverloadOptions
from pipeline.subtitles.rules import SubtitleRules, conflicts
from pipeline.vad.endpointing import EndpointingOptions
from pipeline.vad.gate import GateOptions


@dataclass(frozen=True)
class LanguageConfig:
    source: str = "en"
    # A script or region is the translation's: zh-TW, zh-HK and zh-Hant are traditional Chinese, zh-CN and zh-Hans
    # simplified, sr-Latn is for a model that writes Serbian in both. Without one, Chinese is as the model writes it.
    target: str = "zh"


@dataclass(frozen=True)
class VadConfig(EndpointingOptions, GateOptions):
    # webrtcvad proposes and Silero confirms, or one of them alone; the thresholds are Silero's.
    detector: str = "webrtc+silero"
    # webrtcvad's aggressiveness: 0 keeps the most, 3 filters the most. Where Silero confirms, nothing should be missed.
    mode: int = 0


@dataclass(frozen=True)
class AsrConfig:
    # A directory, a Whisper size ("small") or a hub id of a CTranslate2 model.
    model: str = "Systran/faster-whisper-small"
    # Commit of the hub repository; None takes the one that is known, else the newest.
    revision: str | None = None
    # What the encoder computes on: the speech and padding up to so many seconds. Whisper was trained on 30 s; a third of
    # that is enough, and three to five times as fast. Longer speech has a longer window, with a second of padding.
    window_s: float = 10.0
    # Hypotheses that the search keeps; 1 is greedy. Five in a short window are as accurate as one in the full window.
    beam_size: int = 5
    compute_type: str = "int8"
    threads: int = 0  # 0: CTranslate2's choice, as many as the machine has cores but four at most
    # Of what is no live source, speech recognised in one call, in milliseconds; 0 recognises each segment by itself.
    # None is 28,000 in pipeline.translate and 0 elsewhere. Text comes later, is heard in its context, and costs less.
    join_ms: int | None = None
    # What Chinese is written in, for Whisper mixes both: "simplified", "traditional" or "as-heard". None is simplified for
    # Mandarin (zh), and as heard for all else. It is what is shown; the translator of Mandarin is given simplified text
    # whatever is shown, unless its files say that it was trained on traditional text.
    script: str | None = None
    # Whether subtitles get the times of their words; otherwise sentences share a segment's time by their letters.
    word_timestamps: bool = True
    # Words that will be said and are spelt like this, such as names.
    hotwords: str = ""
    # Text that the speech continues, in its language and style. Both are kept short: each token costs time.
    prompt: str = ""
    # When a transcript is not believed; None takes what is known of the model. Whisper's own rules (openai/whisper,
    # transcribe.py): silence if both of the first two fire, a loop above the third.
    no_speech_threshold: float | None = None
    log_probability_threshold: float | None = None
    compression_ratio_threshold: float | None = None


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
    weights: str = "auto"
    # Which of a hub repository's ONNX files to run as they are: "_quantized", "_fp16", "_q4" …; "" means fp32 where
    # weights is "as-is".
    file_suffix: str = ""
    # Hypotheses that the search keeps; 1 is greedy, the fastest.
    beam_size: int = 1
    # Target tokens a sentence at most.
    max_tokens: int = 256
    # Target tokens at most for each source token, and a few more; 0 sets no such limit. A sentence that reaches it, or loops, is
    # searched again, then cut.
    max_length_factor: float = 3.0
    # No sequence of so many target tokens comes twice in a sentence; 0: as the model's files say.
    no_repeat_ngram: int = 0
    # Seconds a sentence at most; 0 sets no limit.
    time_limit_s: float = 0.0
    # Translations kept for sentences that come again.
    cached_sentences: int = 256
    threads: int = 1

    @property
    def steps(self) -> tuple[NmtConfig, ...]:
        """One configuration a model, in the order in which they translate."""
        first = dataclasses.replace(self, second=None, second_revision=None)
        if self.second is None:
            return (first,)
        return first, dataclasses.replace(first, model=self.second, revision=self.second_revision)


@dataclass(frozen=True)
class QueueConfig:
    """Capacity of the bounded queues between stages."""

    audio_chunks: int = 50
    segments: int = 8
    transcripts: int = 8
    events: int = 256


@dataclass(frozen=True)
class PipelineConfig:
    languages: LanguageConfig = field(default_factory=LanguageConfig)
    vad: VadConfig = field(default_factory=VadConfig)
    asr: AsrConfig = field(default_factory=AsrConfig)
    nmt: NmtConfig = field(default_factory=NmtConfig)
    queues: QueueConfig = field(default_factory=QueueConfig)
    overload: OverloadOptions = field(default_factory=OverloadOptions)
    subtitles: SubtitleRules = field(default_factory=SubtitleRules)


# Below it every sentence would end with its first token.
_LEAST_TIME_LIMIT_S = 0.001

# What the types alone cannot say: (section, key) → (smallest, largest). Speech recognised at once leaves a second of Whisper's
# 30 s for padding.
_RANGES: dict[tuple[str, str], tuple[float, float]] = {
    ("vad", "mode"): (0, 3),
    ("vad", "threshold"): (0.01, 0.99),
    ("vad", "release_threshold"): (0.01, 0.99),
    ("vad", "level_weight"): (0, 1),
    ("vad", "audible_db"): (0, 100),
    ("vad", "pre_roll_ms"): (0, 2_000),
    ("vad", "post_roll_ms"): (0, 2_000),
    ("vad", "faint_ms"): (0, 2_000),
    ("vad", "trigger_ms"): (20, 1_000),
    ("vad", "hangover_ms"): (20, 10_000),
    ("vad", "min_speech_ms"): (0, 5_000),
    ("vad", "max_segment_ms"): (1_000, 29_000),
    ("vad", "cut_search_ms"): (0, 30_000),
    ("asr", "beam_size"): (1, 20),
    ("asr", "window_s"): (1, 30),
    ("asr", "join_ms"): (0, 29_000),
    ("asr", "threads"): (0, 256),
    ("asr", "no_speech_threshold"): (0, 1),
    ("asr", "log_probability_threshold"): (-100, 0),
    ("asr", "compression_ratio_threshold"): (1, 100),
    ("nmt", "beam_size"): (1, 100),
    ("nmt", "max_tokens"): (1, 100_000),
    ("nmt", "max_length_factor"): (0, 1_000),
    ("nmt", "no_repeat_ngram"): (0, 100),
    ("nmt", "time_limit_s"): (0, 86_400),
    ("nmt", "cached_sentences"): (0, 1_000_000),
    ("nmt", "threads"): (0, 256),
    ("queues", "audio_chunks"): (1, 100_000),
    ("queues", "segments"): (1, 10_000),
    ("queues", "transcripts"): (1, 10_000),
    ("queues", "events"): (1, 100_000),
    ("overload", "behind_s"): (0.5, 3_600),
    ("overload", "caught_up_s"): (0, 3_600),
    ("overload", "max_segment_ms"): (1_000, 29_000),
    ("overload", "beam_size"): (1, 20),
    ("overload", "join_ms"): (0, 29_000),
    ("overload", "backlog_s"): (1, 86_400),
    ("subtitles", "max_lines"): (1, 4),
    ("subtitles", "line_columns"): (10, 200),
    ("subtitles", "line_cjk_characters"): (5, 100),
    ("subtitles", "min_duration_ms"): (100, 10_000),
    ("subtitles", "max_duration_ms"): (500, 60_000),
    ("subtitles", "gap_ms"): (0, 2_000),
    ("subtitles", "characters_per_second"): (1, 100),
    ("subtitles", "cjk_characters_per_second"): (1, 100),
    ("subtitles", "linger_ms"): (0, 60_000),
}
_CHOICES: dict[tuple[str, str], tuple[object, ...]] = {
    ("nmt", "weights"): ("auto", "fp32", "int8", "int4", "as-is"),
    ("vad", "detector"): ("webrtc+silero", "webrtc", "silero"),
    ("vad", "frame_ms"): (10, 20, 30),
    ("subtitles", "position"): ("bottom", "top"),
    ("subtitles", "source_position"): ("bottom", "top"),
    ("asr", "script"): ("simplified", "traditional", "as-heard"),
    ("asr", "compute_type"): ("default", "auto", "int8", "int8_float32", "float32"),  # of a CPU's
}


def load_config(name_or_path: str | Path = "en-zh") -> PipelineConfig:
    """The configuration named ("demo", "en-zh", "zh-en") or in the file at the path given.

    A model that is an existing directory relative to the file is taken from there.

    Raises:
        ConfigError: no such file, not TOML, an unknown key, or a value that is not allowed.
    """
    path = Path(name_or_path)
    if path.suffix != ".toml" and len(path.parts) == 1:
        path = CONFIGS / f"{name_or_path}.toml"
        if not os.path.isfile(path):  # Path.is_file raises for a name that is too long
            allowed = ", ".join(named_configs())
            raise ConfigError(
                f"no configuration is called {str(name_or_path)!r}; there are {allowed}, or a path to a .toml file"
            )
    try:
        table = tomllib.loads(path.read_text("utf-8-sig"))
    except FileNotFoundError:
        raise ConfigError(
            f"no such configuration file: {path}; give its path, or one of {', '.join(named_configs())}"
        ) from None
    except OSError as error:
        raise ConfigError(f"cannot read the configuration {path}: {error.strerror}") from None
    except (ValueError, RecursionError) as error:  # what is no TOML or UTF-8, a number too long, brackets too deep
        raise ConfigError(f"{path} is not a TOML file: {error}") from None
    return parse_config(table, path)


def parse_config(table: dict[str, Any], path: Path) -> PipelineConfig:
    """Check a parsed TOML table; ``path`` is named in errors and is what relative model directories are relative to."""
    sections: dict[str, type[Any]] = typing.get_type_hints(PipelineConfig)
    _known_only(table, sections, path, "section")
    built: dict[str, Any] = {}
    for section, kind in sections.items():
        values = table.get(section, {})
        if not isinstance(values, dict):
            raise ConfigError(f"{path}: {section} must be a section, written as [{section}]")
        hints = typing.get_type_hints(kind)
        _known_only(values, hints, path, f"key in [{section}]")
        for key, value in values.items():
            _check_value(section, key, value, hints[key], path)
        # TOML has one number type too few for Python: 1 is fine where 1.0 is meant.
        values = {
            key: float(value) if hints[key] in (float, float | None) and value is not None else value
            for key, value in values.items()
        }
        if section == "languages" and "target" in values:
            values["target"] = normalized_code(values["target"])
        for key in ("model", "second"):
            model = values.get(key)
            # Path.is_dir raises for a name that is too long.
            if model is not None and os.path.isdir(path.parent / model):
                values[key] = str((path.parent / model).resolve())
        built[section] = kind(**values)
    config = PipelineConfig(**built)
    _check_timings(config, path)
    for conflict in conflicts(config.subtitles):
        raise ConfigError(f"{path}: [subtitles] {conflict}")
    return config


def with_overrides(
    config: PipelineConfig,
    *,
    source: str | None = None,
    target: str | None = None,
    asr: str | None = None,
    nmt: str | None = None,
    via: str | None = None,
    bilingual: bool = False,
) -> PipelineConfig:
    """``config`` with what the command line names put in; another model than the configured one has no pinned revision,
    no file suffix and no second one."""
    languages = dataclasses.replace(
        config.languages,
        source=source or config.languages.source,
        target=normalized_code(target or config.languages.target),
    )
    asr_config = (
        dataclasses.replace(config.asr, model=asr, revision=None) if asr and asr != config.asr.model else config.asr
    )
    nmt_config = dataclasses.replace(config.nmt, via=via or config.nmt.via)
    if nmt and nmt != config.nmt.model:
        nmt_config = dataclasses.replace(
            nmt_config, model=nmt, revision=None, file_suffix="", second=None, second_revision=None
        )
    subtitles = dataclasses.replace(config.subtitles, bilingual=config.subtitles.bilingual or bilingual)
    return dataclasses.replace(config, languages=languages, asr=asr_config, nmt=nmt_config, subtitles=subtitles)


def _known_only(table: dict[str, Any], allowed: dict[str, Any], path: Path, what: str) -> None:
    for key in table:
        if key not in allowed:
            raise ConfigError(f"{path}: unknown {what}: {key!r}; allowed are {', '.join(allowed)}")


def _check_value(section: str, key: str, value: object, hint: object, path: Path) -> None:
    kinds = typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,)
    accepted = (*kinds, int) if float in kinds else kinds
    if isinstance(value, bool) != (bool in kinds) or not isinstance(
        value, tuple(k for k in accepted if isinstance(k, type))
    ):
        names = " or ".join(k.__name__ for k in kinds if isinstance(k, type) and k is not type(None))
        raise ConfigError(f"{path}: {section}.{key} is {value!r}; expected {names}")
    if (section, key) in _CHOICES and value not in _CHOICES[section, key]:
        allowed = ", ".join(str(choice) for choice in _CHOICES[section, key])
        raise ConfigError(f"{path}: {section}.{key} is {value!r}; allowed are {allowed}")
    low, high = _RANGES.get((section, key), (float("-inf"), float("inf")))
    if isinstance(value, int | float) and not low <= value <= high:
        # Python refuses to write thousands of digits.
        said = "too large" if isinstance(value, int) and abs(value) > 10**18 else value
        raise ConfigError(f"{path}: {section}.{key} is {said}; allowed is {low:g} to {high:g}")
    if isinstance(value, str) and not value and key != "file_suffix":
        raise ConfigError(f"{path}: {section}.{key} is empty; give a value or leave the key out")


def _check_timings(config: PipelineConfig, path: Path) -> None:
    for conflict in _impossible(config.vad, config.overload, config.nmt):
        raise ConfigError(f"{path}: {conflict}")


def _impossible(vad: VadConfig, overload: OverloadOptions, nmt: NmtConfig) -> Iterator[str]:
    """What no stream could keep, a sentence each, naming the keys."""
    if vad.cut_search_ms >= vad.max_segment_ms:
        yield f"vad.cut_search_ms ({vad.cut_search_ms}) must be less than vad.max_segment_ms ({vad.max_segment_ms})"
    if vad.release_threshold > vad.threshold:
        yield (
            f"vad.release_threshold ({vad.release_threshold:g}) must not be more than "
            f"vad.threshold ({vad.threshold:g}): speech goes on where it could not begin, not the other way round"
        )
    if vad.post_roll_ms > vad.hangover_ms:
        yield (
            f"vad.post_roll_ms ({vad.post_roll_ms}) must not be more than vad.hangover_ms ({vad.hangover_ms}): "
            "a segment ends with the hangover, and nothing is heard behind it"
        )
    opening_ms = vad.pre_roll_ms + vad.faint_ms + vad.trigger_ms + vad.min_speech_ms
    for section, longest_ms in (("vad", vad.max_segment_ms), ("overload", overload.max_segment_ms)):
        if opening_ms >= longest_ms:
            yield (
                f"{section}.max_segment_ms ({longest_ms}) leaves no room after pre-roll, faint speech, trigger and the "
                f"least speech ({opening_ms} ms together)"
            )
        if vad.hangover_ms >= longest_ms:
            yield (
                f"vad.hangover_ms ({vad.hangover_ms}) must be less than {section}.max_segment_ms ({longest_ms}), "
                "or silence is cut into segments before it ends one"
            )
    if overload.caught_up_s >= overload.behind_s:
        yield (
            f"overload.caught_up_s ({overload.caught_up_s:g}) must be less than overload.behind_s ({overload.behind_s:g})"
        )
    if overload.backlog_s < 2 * overload.behind_s:
        yield (
            f"overload.backlog_s ({overload.backlog_s:g}) must be at least twice overload.behind_s "
            f"({overload.behind_s:g}): audio would be lost before all is done to catch up"
        )
    if nmt.second is not None and nmt.model == "auto":
        yield "nmt.second follows a model that is named; nmt.model is auto, which finds both: leave nmt.second out"
    if nmt.second is not None and nmt.via == "none":
        yield "nmt.second translates from the language nmt.via, which is none; give the language, or leave nmt.second out"
    if 0 < nmt.time_limit_s < _LEAST_TIME_LIMIT_S:
        yield (
            f"nmt.time_limit_s ({nmt.time_limit_s:g}) leaves no time to translate a sentence; allowed is 0, no limit, or "
            f"{_LEAST_TIME_LIMIT_S:g} at least"
        )
