"""Options shared by commands: configuration, languages, models, bilingual subtitles, audio track."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ..backends import AUTO, is_same_pair, looked_up, may_translate, names_pair, script_conversions, translates_all
from ..config import PipelineConfig, load_config, named_configs, with_overrides
from ..console import some_path, some_text, tell, whole_number
from ..errors import HubUnreachableError, UsageError
from ..glossary import load_masked
from ..languages import AUTO_SOURCE
from ..media import PRESETS

if TYPE_CHECKING:
    from ..glossary import Glossary

_DEFAULT_CONFIG = "en-zh"
AUTO_SPEAKERS = "auto"
"""Tell speakers by their voices."""


def add_model_arguments(parser: argparse.ArgumentParser, *, several: bool = False) -> None:
    """Add the options for configuration, languages and models, as a group of the help.

    ``several``: --config may be given more than once.
    """
    group = parser.add_argument_group("languages and models")
    group.add_argument(
        "--config",
        type=some_text,
        action="append" if several else "store",
        default=None if several else _DEFAULT_CONFIG,
        metavar="NAME|FILE",
        help=f"{', '.join(named_configs())} (default: {_DEFAULT_CONFIG}), or a TOML file"
        + (
            "; give it again for each further spoken language, from which clients then choose (models that are the same "
            "are loaded once)"
            if several
            else ""
        ),
    )
    group.add_argument(
        "--source",
        type=some_text,
        metavar="L",
        help=f"language spoken, such as en, or several (en,pt,es), recognised as they are spoken; {AUTO_SOURCE}: one of the targets or, "
        "with one target, any language that is translated into it",
    )
    group.add_argument(
        "--target",
        type=some_languages,
        default=(),
        metavar="L,…",
        help="languages of the subtitles, such as zh, zh-TW or zh,de",
    )
    group.add_argument(
        "--asr", type=some_text, metavar="M", help="speech model: a directory, a Whisper size, or a hub id"
    )
    group.add_argument("--nmt", type=some_text, metavar="M", help="translation model: a directory or a hub id")
    group.add_argument(
        "--models",
        type=some_path,
        metavar="FOLDER",
        help="take models from here first: a folder of python -m pipeline.models fetch",
    )
    group.add_argument(
        "--via",
        type=some_text,
        metavar="L",
        help="intermediate language if no model translates directly (default: en); none forbids two steps",
    )
    group.add_argument(
        "--glossary",
        type=some_path,
        metavar="FILE",
        help="names and terms to recognise and translate as given (TSV or CSV, see docs/glossary.md); may change while running",
    )
    group.add_argument(
        "--masked",
        type=some_path,
        metavar="FILE",
        help="words to show as a letter and asterisks, one a line (docs/glossary.md)",
    )


def some_languages(text: str) -> tuple[str, ...]:
    """Argument type: language codes separated by commas."""
    codes = tuple(code.strip() for code in some_text(text).split(","))
    if not all(codes):
        raise argparse.ArgumentTypeError(
            f"{text!r} has an empty entry; separate language codes with single commas, such as zh,de"
        )
    return codes


def add_layout_arguments(parser: argparse._ActionsContainer) -> None:
    add_preset_argument(parser)
    parser.add_argument(
        "--bilingual", action="store_true", help="show the source with its translation in subtitle files"
    )
    parser.add_argument(
        "--mark-uncertain", action="store_true", help="put [?] after what may be misheard in subtitle files"
    )


def add_preset_argument(parser: argparse._ActionsContainer) -> None:
    parser.add_argument(
        "--preset",
        choices=PRESETS,
        metavar="NAME",
        help=f"the layout rules of {', '.join(PRESETS)} (default: as configured, which is netflix)",
    )


def add_audio_track_argument(parser: argparse._ActionsContainer) -> None:
    parser.add_argument(
        "--audio-track",
        type=whole_number(1, 9_999),
        metavar="N",
        help="the audio track of a recording to translate, counted from 1 among its audio tracks "
        "(default: one in the source language, else the file's default, else the first that is not silent)",
    )


def configured(options: argparse.Namespace) -> PipelineConfig:
    """The configuration for the options of ``add_model_arguments`` and ``add_layout_arguments``.

    A model given by an option is taken at the revision at which ``python -m pipeline.models pull`` fetches it. If the
    languages differ from the configured ones and no translation model is given, it comes from the table of pairs and is
    printed on standard error.
    """
    if options.models is not None:
        if not options.models.is_dir():
            raise UsageError(
                f"there is no folder {options.models}; make it with: python -m pipeline.models fetch --demo --models {options.models}"
            )
        from ..store import MODELS

        os.environ[MODELS] = str(options.models.resolve())  # processes that are started look there, too
    named = load_config(options.config)
    config = with_overrides(
        named,
        source=options.source,
        targets=options.target,
        asr=options.asr,
        nmt=options.nmt,
        via=options.via,
        bilingual=getattr(options, "bilingual", False),
        mark_uncertain=getattr(options, "mark_uncertain", False),
        preset=getattr(options, "preset", None),
        glossary=str(options.glossary) if options.glossary is not None else None,
        masked=str(options.masked) if options.masked is not None else None,
        speakers=getattr(options, "speakers", None) == AUTO_SPEAKERS,
    )
    load_masked(config.captions.masked)  # name mistakes before models are loaded
    if config.glossary.file is not None:
        from ..glossary import load_glossary

        _announce(load_glossary(Path(config.glossary.file)), config)  # name mistakes before models are loaded
    asr, nmt = config.asr, config.nmt
    script_conversions(asr.script, config.languages.spoken)  # name mistakes before models are loaded
    if asr.model != named.asr.model:
        config = replace(config, asr=replace(asr, revision=_pulled_revision(asr.model)))
    if options.nmt in (None, AUTO):
        return _with_known_models(config, named)
    pairs = [pair for target in config.languages.translated for pair in config.languages.pairs(target)]
    if not translates_all(nmt, pairs):
        raise UsageError(
            f"--nmt gives one translation model, {options.nmt}, for the targets {', '.join(config.languages.translated)}, and "
            "it is not the directory of a model that translates into all of them; leave it out to look models up in the "
            "table of pairs, or name one for each target in a configuration: "
            + ", ".join(f"[nmt.{target}] model = …" for target in config.languages.translated)
        )
    if nmt.model != named.nmt.model:
        config = replace(config, nmt=replace(nmt, revision=_pulled_revision(nmt.model)))
    return config


@contextmanager
def naming_demo(options: argparse.Namespace) -> Iterator[None]:
    """Name the demo in errors of models that cannot be fetched, if the default configuration names these models."""
    try:
        yield
    except HubUnreachableError as error:
        if options.config not in (None, _DEFAULT_CONFIG) or options.source or options.target:
            raise
        raise type(error)(f"{error}, or give --config demo, which needs no network") from error


def configured_several(options: argparse.Namespace) -> list[PipelineConfig]:
    """The configurations for the options of ``add_model_arguments`` with ``several``, in their order."""
    names: list[str] = options.config or [_DEFAULT_CONFIG]
    of_one = {"--source": options.source, "--target": options.target, "--nmt": options.nmt, "--via": options.via}
    if len(names) > 1 and (given := [name for name, value in of_one.items() if value]):
        raise UsageError(
            f"{given[0]} is for one configuration, and there are {len(names)}: write it into the file of the configuration "
            "that it is for"
        )
    return [configured(argparse.Namespace(**{**vars(options), "config": name})) for name in names]


def _announce(glossary: Glossary, config: PipelineConfig) -> None:
    """Say if recognition is not told all terms at once, or if the glossary is for other languages."""
    expected = config.glossary.prompt_terms
    if len(glossary.terms) > expected:
        tell(
            f"glossary: {len(glossary.terms)} terms; recognition expects {expected} at a time, those said lately and then "
            "the first of the file"
        )
    pairs = [pair for target in config.languages.targets for pair in config.languages.pairs(target)]
    if glossary.terms and not any(glossary.is_for(*pair) for pair in pairs):
        tell(
            f"glossary: it is for {' and '.join(glossary.languages or ())}; in this run, only the terms that keep their "
            "spelling are used"
        )


def _with_known_models(config: PipelineConfig, named: PipelineConfig) -> PipelineConfig:
    """``config`` with models from the table for the pairs that the models of ``named``, the file, are not for."""
    for target in config.languages.translated:
        if target not in config.languages.mixed and _needs_route(config, named, target):
            from ..backends import route, route_line

            pair, nmt = config.languages.pair(target), config.nmt_for(target)
            config = config.with_nmt(target, looked_up(pair, nmt))
            tell(route_line(route(*pair, nmt.via)))
    for pair, nmt in config.translators.items():
        if pair[1] in config.languages.mixed:
            tell(f"{' → '.join(pair)}: {', then '.join(step.model for step in nmt.steps) or nmt.backend}")
    return config


def _needs_route(config: PipelineConfig, named: PipelineConfig, target: str) -> bool:
    """Whether models have to be looked up for ``target``; the languages of ``named``, the file, may be others."""
    nmt, pair = config.nmt_for(target), config.languages.pair(target)
    if nmt.plugged_in:
        return False
    if nmt.model == AUTO:
        return True
    configured = [tag for tag in named.languages.targets if is_same_pair(named.languages.pair(tag), pair)]
    if nmt.second is not None:
        return not configured or nmt.via != named.nmt_for(configured[0]).via
    # With several targets, a model whose files name no languages is for the configured target alone.
    serves = may_translate if len(config.languages.translated) == 1 else names_pair
    return not configured and not serves(nmt.model, pair)


def _pulled_revision(model: str) -> str | None:
    from .known_models import pulled_revision  # slow

    return pulled_revision(model)
