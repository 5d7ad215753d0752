"""Load a TOML file into frozen dataclasses. Every error names the key and the allowed values."""

from __future__ import annotations

import dataclasses
import os
import tomllib
import typing
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..backends import AsrConfig, DraftModel, LanguagePair, NmtConfig, backend_of, check_shared, resolve
from ..core import (
    CaptionOptions,
    CheckedOptions,
    DraftOptions,
    GlossaryOptions,
    OverloadOptions,
    QueueConfig,
    SentenceOptions,
    SoundOptions,
    SpeakerOptions,
    VadConfig,
    mistake,
)
from ..errors import ConfigError, UsageError
from ..languages import AUTO_SOURCE, LanguageConfig, as_codes, english_name, language_tag, same_language
from ..media import PRESETS, SubtitleRules
from .resources import CONFIGS, named_configs

if TYPE_CHECKING:
    from ..core import FrameDetector, Models


@dataclass(frozen=True)
class NmtOverride:
    """Options of [nmt] with other values for one target: [nmt.de] is for the target "de".

    Keys that the section lacks are as in [nmt]. If it names a ``model``, the revisions and ``second`` are not inherited.
    """

    target: str
    values: tuple[tuple[str, Any], ...]
    """The options of ``NmtConfig`` that have other values for the target, as (key, value)."""


@dataclass(frozen=True)
class PipelineConfig(CheckedOptions):
    """The options of a run."""

    languages: LanguageConfig = field(default_factory=LanguageConfig)
    vad: VadConfig = field(default_factory=VadConfig)
    asr: AsrConfig = field(default_factory=AsrConfig)
    drafts: DraftOptions = field(default_factory=DraftOptions)
    sentences: SentenceOptions = field(default_factory=SentenceOptions)
    nmt: NmtConfig = field(default_factory=NmtConfig)
    queues: QueueConfig = field(default_factory=QueueConfig)
    overload: OverloadOptions = field(default_factory=OverloadOptions)
    subtitles: SubtitleRules = field(default_factory=SubtitleRules)
    glossary: GlossaryOptions = field(default_factory=GlossaryOptions)
    captions: CaptionOptions = field(default_factory=CaptionOptions)
    speakers: SpeakerOptions = field(default_factory=SpeakerOptions)
    sounds: SoundOptions = field(default_factory=SoundOptions)
    nmt_overrides: tuple[NmtOverride, ...] = ()
    """Translation options of single targets, at most one override per target."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for conflict in _conflicts(self):
            raise ConfigError(conflict)

    @property
    def has_drafts(self) -> bool:
        """Whether speech in progress is recognised in live runs."""
        return self.drafts.enabled and self.asr.word_timestamps

    @property
    def draft_model(self) -> AsrConfig | None:
        """The options of the model that drafts for that of ``asr``; None if there is none, or there are no drafts."""
        model = self.asr.of_draft_model if self.has_drafts else None
        return model if model is None or _hears(model, self.languages.only_spoken) else None

    def load_models(self) -> Models:
        """The models that it names; see ``load_models`` of the package."""
        from .loading import load_models

        return load_models(self)

    def speech_detector(self) -> FrameDetector:
        """A detector for one stream."""
        from ..backends import SpeechDetector

        return SpeechDetector(self.vad)

    def nmt_for(self, target: str) -> NmtConfig:
        """The translation options for one target: ``nmt`` with the target's overrides."""
        values = next((override.values for override in self.nmt_overrides if override.target == target), ())
        return dataclasses.replace(self.nmt, **dict(values))

    def with_nmt(self, target: str, nmt: NmtConfig) -> PipelineConfig:
        """This configuration with ``nmt`` as the translation options of one target; the other targets keep theirs."""
        if self.languages.targets == (target,):
            return dataclasses.replace(self, nmt=nmt, nmt_overrides=())
        values = tuple(
            (key, value) for key, value in vars(nmt).items() if key in _MODEL_KEYS or value != getattr(self.nmt, key)
        )
        others = tuple(override for override in self.nmt_overrides if override.target != target)
        return dataclasses.replace(self, nmt_overrides=(*others, NmtOverride(target, values)))

    @property
    def sharing_targets(self) -> tuple[str, ...]:
        """The targets that use the model of ``nmt``, because they have none of their own and no other package translates them."""
        others = {override.target for override in self.nmt_overrides if "model" in dict(override.values)}
        sharing = (target for target in self.languages.translated if target not in {*others, *self.languages.mixed})
        return tuple(target for target in sharing if not self.nmt_for(target).plugged_in)

    def translator(self, source: str, target: str) -> NmtConfig:
        """The options of the translator of a pair, with its models: the configured ones, or those of the table of pairs.

        Raises:
            UsageError: no model is known for the pair.
        """
        pair, nmt = (source, target), self.nmt_for(target)
        return resolve(pair, nmt, one_of_several=target in self.languages.mixed)

    @property
    def translators(self) -> dict[LanguagePair, NmtConfig]:
        """``translator`` of each pair; those from any language are left out, as it is not known which will be spoken.

        Raises:
            UsageError: see ``translator``; or several targets share a model that cannot serve them all.
        """
        languages = self.languages
        check_shared(self.nmt, [languages.pair(target) for target in self.sharing_targets])
        single = [languages.pair(target) for target in languages.translated if target not in languages.mixed]
        named = languages.mixed if languages.conversation or languages.source != AUTO_SOURCE else ()
        mixed = [pair for target in named for pair in languages.pairs(target)]
        return {pair: self.translator(*pair) for pair in (*single, *mixed)}


# Options that belong to a translation model and are not inherited by another one.
_OF_MODEL: dict[str, Any] = {"revision": None, "second": None, "second_revision": None}
_MODEL_KEYS = ("model", "file_suffix", *_OF_MODEL)
_TARGETS_KEY = "target"  # in a file; the field is called ``targets``


def load_config(name_or_path: str | Path = "en-zh") -> PipelineConfig:
    """Load a configuration from a path, or one of ``configs`` by its name, such as "demo".

    A model path is relative to the file if such a directory exists.
    """
    path = Path(name_or_path)
    if path.suffix != ".toml" and len(path.parts) == 1:
        path = CONFIGS / f"{name_or_path}.toml"
        if not os.path.isfile(path):  # Path.is_file raises if the name is too long
            allowed = ", ".join(named_configs())
            raise ConfigError(
                f"there is no configuration {str(name_or_path)!r}; give {allowed}, or the path of a .toml file"
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
    kinds: dict[str, Any] = typing.get_type_hints(PipelineConfig)
    sections: dict[str, Any] = {name: kind for name, kind in kinds.items() if dataclasses.is_dataclass(kind)}
    _reject_unknown(table, sections, path, "section")
    for section in sections:
        if not isinstance(table.get(section, {}), dict):
            raise ConfigError(f"{path}: {section} must be a section, written as [{section}]")
    languages = _languages(table.get("languages", {}), path)
    common, by_target = _divided(table.get("nmt", {}))
    overrides = tuple(_nmt_overrides(by_target, languages.targets, path))
    plain = table | {
        "nmt": common,
        "asr": {key: value for key, value in table.get("asr", {}).items() if key != "draft"},
        "subtitles": _with_preset(table.get("subtitles", {}), path),
    }
    built: dict[str, Any] = {
        section: kind(**_checked(section, kind, plain.get(section, {}), path))
        for section, kind in sections.items()
        if section != "languages"
    }
    built["asr"] = dataclasses.replace(built["asr"], draft=_draft_model(table.get("asr", {}).get("draft", {}), path))
    try:
        config = PipelineConfig(languages=languages, nmt_overrides=overrides, **built)
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from None
    if "model" not in common and len(languages.translated) > 1:
        for target in config.sharing_targets:
            raise ConfigError(
                f"{path}: no translation model is named for the target {target!r}; write [nmt.{target}] model = …, or "
                '[nmt] model = "auto" to look models up in the table of pairs'
            )
    return config


def _checked(section: str, kind: Any, values: dict[str, Any], path: Path) -> dict[str, Any]:
    """The values of a section for the dataclass ``kind``: checked, with absolute paths."""
    values = dict(values)
    hints = typing.get_type_hints(kind)
    _reject_unknown(values, hints, path, f"key in [{section}]")
    options = {option.name: option for option in dataclasses.fields(kind)}
    for key, value in values.items():
        if (problem := mistake(options[key], value, hints[key])) is not None:
            raise ConfigError(f"{path}: {section}.{problem}")
    for key in ("model", "second"):
        model = values.get(key)
        # Path.is_dir raises if the name is too long.
        if model is not None and os.path.isdir(path.parent / model):
            values[key] = str((path.parent / model).resolve())
    for key in {GlossaryOptions: ("file",), CaptionOptions: ("masked",)}.get(kind, ()):
        if key in values:
            values[key] = str((path.parent / values[key]).resolve())
    return values


def _with_preset(values: dict[str, Any], path: Path) -> dict[str, Any]:
    """The section [subtitles] with the values of its preset, if it names one."""
    name = values.get("preset", "netflix")
    if not isinstance(name, str) or name not in PRESETS:
        raise ConfigError(f"{path}: subtitles.preset is {name!r}; allowed are {', '.join(PRESETS)}")
    return {**(PRESETS[name] if "preset" in values else {}), **{key: values[key] for key in values if key != "preset"}}


def _languages(values: dict[str, Any], path: Path) -> LanguageConfig:
    """The section [languages]."""
    _reject_unknown(values, {"source": str, _TARGETS_KEY: str}, path, "key in [languages]")
    source = values.get("source", LanguageConfig.source)
    source = ",".join(source) if isinstance(source, list) and all(isinstance(code, str) for code in source) else source
    if not isinstance(source, str):
        raise ConfigError(f"{path}: languages.source is {source!r}; expected str or a list of str")
    targets = values.get(_TARGETS_KEY, list(LanguageConfig.targets))
    targets = [targets] if isinstance(targets, str) else targets
    if not isinstance(targets, list) or not all(isinstance(target, str) for target in targets):
        raise ConfigError(f"{path}: languages.target is {targets!r}; expected str or a list of str")
    for key, languages in (("source", [source]), (_TARGETS_KEY, targets)):
        if not all(languages):
            raise ConfigError(f"{path}: languages.{key} is empty; give a value or leave the key out")
    try:
        return LanguageConfig(source, tuple(targets))
    except UsageError as error:
        raise ConfigError(f"{path}: [languages] {error}") from None


def _draft_model(values: object, path: Path) -> DraftModel:
    """The section [asr.draft]."""
    if not isinstance(values, dict):
        raise ConfigError(f"{path}: asr.draft must be a section, written as [asr.draft]")
    for key in ("backend", "revision"):
        if key in values and "model" not in values:
            raise ConfigError(
                f"{path}: asr.draft.{key} is given without asr.draft.model; name the model too, or leave the {key} out"
            )
    return DraftModel(**_checked("asr.draft", DraftModel, values, path))


def _divided(values: dict[str, Any]) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """The section [nmt] without its sections for targets, and these."""
    options = vars(NmtConfig())
    by_target = {key: value for key, value in values.items() if isinstance(value, dict) and key not in options}
    return {key: value for key, value in values.items() if key not in by_target}, by_target


def _nmt_overrides(by_target: dict[str, dict[str, Any]], targets: Sequence[str], path: Path) -> Iterator[NmtOverride]:
    """The sections [nmt.TARGET], in the order of the targets. Their names may be written in any notation."""
    sections: dict[str, str] = {}  # target → name of its section
    for name in by_target:
        target = next((target for target in targets if language_tag(target) == language_tag(name)), None)
        if target is None:
            raise ConfigError(
                f"{path}: [nmt.{name}] is not for a target language; the targets are {', '.join(targets)}"
            )
        if target in sections:
            raise ConfigError(f"{path}: [nmt.{sections[target]}] and [nmt.{name}] are for the same target; keep one")
        sections[target] = name
    for target in targets:
        if target in sections:
            name = sections[target]
            values = _checked(f"nmt.{name}", NmtConfig, by_target[name], path)
            yield NmtOverride(target, tuple(((_OF_MODEL if "model" in values else {}) | values).items()))


def with_overrides(
    config: PipelineConfig,
    *,
    source: str | None = None,
    targets: str | Sequence[str] = (),
    asr: str | None = None,
    nmt: str | None = None,
    via: str | None = None,
    bilingual: bool = False,
    mark_uncertain: bool = False,
    preset: str | None = None,
    glossary: str | None = None,
    masked: str | None = None,
    speakers: bool = False,
) -> PipelineConfig:
    """``config`` with the command line's options applied.

    A model other than the configured one gets no pinned revision, no file suffix and no second model. ``nmt`` and
    ``via`` apply to all targets. The options of a configured target are kept for a target of the same language.
    """
    languages = LanguageConfig(source or config.languages.source, as_codes(targets or config.languages.targets))
    for target in () if targets else filter(languages.is_spoken, config.languages.translated):
        raise UsageError(
            f"the configured target {target!r} is the language spoken ({source!r}); give --target {target} for subtitles in "
            "it, or another target"
        )
    asr_config = (
        dataclasses.replace(config.asr, model=asr, revision=None) if asr and asr != config.asr.model else config.asr
    )
    nmt_config = dataclasses.replace(config.nmt, via=via or config.nmt.via)
    if nmt and nmt != config.nmt.model:
        nmt_config = dataclasses.replace(nmt_config, **(_OF_MODEL | {"model": nmt, "file_suffix": ""}))
    overridden = {*(_MODEL_KEYS if nmt else ()), *(("via",) if via else ())}
    subtitles = dataclasses.replace(
        config.subtitles,
        bilingual=config.subtitles.bilingual or bilingual,
        mark_uncertain=config.subtitles.mark_uncertain or mark_uncertain,
        **(PRESETS[preset] if preset else {}),
    )
    return dataclasses.replace(
        config,
        languages=languages,
        asr=asr_config,
        nmt=nmt_config,
        nmt_overrides=tuple(_carried_over(config.nmt_overrides, languages.targets, overridden)),
        subtitles=subtitles,
        glossary=dataclasses.replace(config.glossary, file=glossary or config.glossary.file),
        captions=dataclasses.replace(config.captions, masked=masked or config.captions.masked),
        speakers=dataclasses.replace(config.speakers, auto=speakers or config.speakers.auto),
    )


def _carried_over(overrides: Sequence[NmtOverride], targets: Sequence[str], dropped: set[str]) -> Iterator[NmtOverride]:
    """The overrides for ``targets``, from those for the same language, without the keys ``dropped``."""
    for target in targets:
        tag = language_tag(target)
        same = [override for override in overrides if language_tag(override.target).language == tag.language]
        nearest = min(same, key=lambda override: language_tag(override.target) != tag, default=None)
        values = tuple((key, value) for key, value in (nearest.values if nearest else ()) if key not in dropped)
        if values:
            yield NmtOverride(target, values)


def _reject_unknown(table: dict[str, Any], allowed: dict[str, Any], path: Path, what: str) -> None:
    for key in table:
        if key not in allowed:
            raise ConfigError(f"{path}: unknown {what}: {key!r}; allowed are {', '.join(allowed)}")


def _hears(asr: AsrConfig, spoken: str | None) -> bool:
    """Whether a recogniser is for the language spoken; None: several."""
    only = backend_of(asr.backend).only
    return only is None or (spoken is not None and same_language(spoken, only))


def _conflicts(config: PipelineConfig) -> Iterator[str]:
    """Options that contradict each other: one sentence each, with the names of the keys."""
    yield from config.vad.conflicts()
    yield from config.overload.conflicts()
    by_target = ((f"nmt.{override.target}", config.nmt_for(override.target)) for override in config.nmt_overrides)
    yield from config.asr.conflicts()
    backend = backend_of(config.asr.backend)
    if not _hears(config.asr, spoken := config.languages.only_spoken) and spoken is not None:
        heard = english_name(backend.only or "")
        yield f'asr.backend is "{config.asr.backend}", which hears {heard}, and languages.source is {spoken!r}; use asr.backend = "whisper"'
    if not backend.detects and config.languages.only_spoken is None:
        yield f'languages.source = "{config.languages.source}" is for asr.backend = "whisper"; "{config.asr.backend}" tells no languages apart: name one'
    if config.languages.source == AUTO_SOURCE and not config.languages.conversation:
        from ..backends import student_routes

        into = language_tag(config.languages.targets[0]).language
        if not any(target == into for _, target in student_routes()):
            yield f"no student translates into {into!r} from any language; name those that are spoken in place of {AUTO_SOURCE!r}"
    for section, nmt in (("nmt", config.nmt), *by_target):
        yield from nmt.conflicts(section)
    for conflict in config.subtitles.conflicts():
        yield f"[subtitles] {conflict}"
