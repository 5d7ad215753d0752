"""Load a TOML file into frozen dataclasses. Every error names the key and the allowed values."""

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

from pipeline.asr.options import AsrConfig
from pipeline.bounds import allowed_choices, allowed_range, within
from pipeline.errors import ConfigError
from pipeline.languages import normalized_code
from pipeline.nmt.options import NmtConfig
from pipeline.resources import CONFIGS, named_configs
from pipeline.run.overload import OverloadOptions
from pipeline.sentences.options import SentenceOptions
from pipeline.subtitles.rules import SubtitleRules, conflicts
from pipeline.vad.options import VadConfig


@dataclass(frozen=True)
class LanguageConfig:
    source: str = "en"
    # A script or region selects how the translation is written: zh-TW, zh-HK and zh-Hant are traditional Chinese, zh-CN
    # and zh-Hans simplified; sr-Latn is for a model that writes Serbian in both scripts. Without one, Chinese stays as
    # the model writes it.
    target: str = "zh"


@dataclass(frozen=True)
class QueueConfig:
    """Capacities of the bounded queues between stages."""

    audio_chunks: int = within(50, 1, 100_000)
    segments: int = within(8, 1, 10_000)
    transcripts: int = within(8, 1, 10_000)
    events: int = within(256, 1, 100_000)


@dataclass(frozen=True)
class PipelineConfig:
    languages: LanguageConfig = field(default_factory=LanguageConfig)
    vad: VadConfig = field(default_factory=VadConfig)
    asr: AsrConfig = field(default_factory=AsrConfig)
    sentences: SentenceOptions = field(default_factory=SentenceOptions)
    nmt: NmtConfig = field(default_factory=NmtConfig)
    queues: QueueConfig = field(default_factory=QueueConfig)
    overload: OverloadOptions = field(default_factory=OverloadOptions)
    subtitles: SubtitleRules = field(default_factory=SubtitleRules)


# With a shorter limit, every sentence would be cut after its first token.
_MIN_TIME_LIMIT_S = 0.001


def load_config(name_or_path: str | Path = "en-zh") -> PipelineConfig:
    """Load a configuration by name ("demo", "en-zh", "zh-en") or from a path.

    A model path is relative to the file if such a directory exists.

    Raises:
        ConfigError: no such file, invalid TOML, an unknown key, or a value that is not allowed.
    """
    path = Path(name_or_path)
    if path.suffix != ".toml" and len(path.parts) == 1:
        path = CONFIGS / f"{name_or_path}.toml"
        if not os.path.isfile(path):  # Path.is_file raises if the name is too long
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
    except (ValueError, RecursionError) as error:  # invalid TOML or UTF-8, too many digits, too deep nesting
        raise ConfigError(f"{path} is not a TOML file: {error}") from None
    return parse_config(table, path)


def parse_config(table: dict[str, Any], path: Path) -> PipelineConfig:
    """Check a parsed TOML table. ``path`` appears in errors, and model directories are relative to its folder."""
    sections: dict[str, type[Any]] = typing.get_type_hints(PipelineConfig)
    _reject_unknown(table, sections, path, "section")
    built: dict[str, Any] = {}
    for section, kind in sections.items():
        values = table.get(section, {})
        if not isinstance(values, dict):
            raise ConfigError(f"{path}: {section} must be a section, written as [{section}]")
        hints = typing.get_type_hints(kind)
        _reject_unknown(values, hints, path, f"key in [{section}]")
        options = {option.name: option for option in dataclasses.fields(kind)}
        for key, value in values.items():
            _check_value(section, options[key], value, hints[key], path)
        # Accept an integer for a float option: 1 for 1.0.
        values = {
            key: float(value) if hints[key] in (float, float | None) and value is not None else value
            for key, value in values.items()
        }
        if section == "languages" and "target" in values:
            values["target"] = normalized_code(values["target"])
        for key in ("model", "second"):
            model = values.get(key)
            # Path.is_dir raises if the name is too long.
            if model is not None and os.path.isdir(path.parent / model):
                values[key] = str((path.parent / model).resolve())
        built[section] = kind(**values)
    config = PipelineConfig(**built)
    _check_consistency(config, path)
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
    """``config`` with the command line's options applied.

    A model other than the configured one gets no pinned revision, no file suffix and no second model.
    """
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


def _reject_unknown(table: dict[str, Any], allowed: dict[str, Any], path: Path, what: str) -> None:
    for key in table:
        if key not in allowed:
            raise ConfigError(f"{path}: unknown {what}: {key!r}; allowed are {', '.join(allowed)}")


def _check_value(section: str, option: dataclasses.Field[Any], value: object, hint: object, path: Path) -> None:
    key = option.name
    kinds = typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,)
    accepted = (*kinds, int) if float in kinds else kinds
    if isinstance(value, bool) != (bool in kinds) or not isinstance(
        value, tuple(k for k in accepted if isinstance(k, type))
    ):
        names = " or ".join(k.__name__ for k in kinds if isinstance(k, type) and k is not type(None))
        raise ConfigError(f"{path}: {section}.{key} is {value!r}; expected {names}")
    choices = allowed_choices(option)
    if choices is not None and value not in choices:
        allowed = ", ".join(map(str, choices))
        raise ConfigError(f"{path}: {section}.{key} is {value!r}; allowed are {allowed}")
    low, high = allowed_range(option) or (float("-inf"), float("inf"))
    if isinstance(value, int | float) and not low <= value <= high:
        # Python cannot convert an integer with thousands of digits to a string.
        shown = "too large" if isinstance(value, int) and abs(value) > 10**18 else value
        raise ConfigError(f"{path}: {section}.{key} is {shown}; allowed is {low:g} to {high:g}")
    if isinstance(value, str) and not value and key != "file_suffix":
        raise ConfigError(f"{path}: {section}.{key} is empty; give a value or leave the key out")


def _check_consistency(config: PipelineConfig, path: Path) -> None:
    for conflict in _contradictions(config.vad, config.overload, config.nmt):
        raise ConfigError(f"{path}: {conflict}")


def _contradictions(vad: VadConfig, overload: OverloadOptions, nmt: NmtConfig) -> Iterator[str]:
    """Options that contradict each other: one sentence each, with the names of the keys."""
    if vad.cut_search_ms >= vad.max_segment_ms:
        yield f"vad.cut_search_ms ({vad.cut_search_ms}) must be less than vad.max_segment_ms ({vad.max_segment_ms})"
    if vad.release_threshold > vad.threshold:
        yield (
            f"vad.release_threshold ({vad.release_threshold:g}) must not be more than "
            f"vad.threshold ({vad.threshold:g}): speech must not need a higher probability to continue than to begin"
        )
    if vad.post_roll_ms > vad.hangover_ms:
        yield (
            f"vad.post_roll_ms ({vad.post_roll_ms}) must not be more than vad.hangover_ms ({vad.hangover_ms}): "
            "a segment ends with its hangover, and there is no later audio to add"
        )
    opening_ms = vad.pre_roll_ms + vad.faint_ms + vad.trigger_ms + vad.min_speech_ms
    for section, longest_ms in (("vad", vad.max_segment_ms), ("overload", overload.max_segment_ms)):
        if opening_ms >= longest_ms:
            yield (
                f"{section}.max_segment_ms ({longest_ms}) must be more than vad.pre_roll_ms, faint_ms, trigger_ms and "
                f"min_speech_ms together ({opening_ms})"
            )
        if vad.hangover_ms >= longest_ms:
            yield (
                f"vad.hangover_ms ({vad.hangover_ms}) must be less than {section}.max_segment_ms ({longest_ms}), "
                "or the maximum length cuts a silence before the hangover ends the segment"
            )
    if overload.caught_up_s >= overload.behind_s:
        yield (
            f"overload.caught_up_s ({overload.caught_up_s:g}) must be less than overload.behind_s ({overload.behind_s:g})"
        )
    if overload.backlog_s < 2 * overload.behind_s:
        yield (
            f"overload.backlog_s ({overload.backlog_s:g}) must be at least twice overload.behind_s "
            f"({overload.behind_s:g}): audio would be lost before the last overload measure is taken"
        )
    if nmt.second is not None and nmt.model == "auto":
        yield "nmt.second needs nmt.model to name a model; nmt.model is auto, which finds both: leave nmt.second out"
    if nmt.second is not None and nmt.via == "none":
        yield "nmt.second translates from the language nmt.via, which is none; set nmt.via, or leave nmt.second out"
    if 0 < nmt.time_limit_s < _MIN_TIME_LIMIT_S:
        yield (
            f"nmt.time_limit_s ({nmt.time_limit_s:g}) leaves no time to translate a sentence; allowed is 0 (no limit) "
            f"or at least {_MIN_TIME_LIMIT_S:g}"
        )
