"""Options shared by commands: configuration, languages, models, bilingual subtitles, audio track."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace

from pipeline.apps.cli import some_text, whole_number
from pipeline.asr.script import script_conversion
from pipeline.config import PipelineConfig, load_config, with_overrides
from pipeline.nmt.pairs import AUTO, described
from pipeline.nmt.routing import needs_route, routed


def add_model_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options for configuration, languages and models."""
    parser.add_argument(
        "--config",
        type=some_text,
        default="en-zh",
        metavar="NAME|FILE",
        help="demo, en-zh (default), zh-en, or a TOML file",
    )
    parser.add_argument("--source", type=some_text, metavar="L", help="language spoken, such as en")
    parser.add_argument("--target", type=some_text, metavar="L", help="language of the subtitles, such as zh or zh-TW")
    parser.add_argument(
        "--asr", type=some_text, metavar="M", help="speech model: a directory, a Whisper size, or a hub id"
    )
    parser.add_argument("--nmt", type=some_text, metavar="M", help="translation model: a directory or a hub id")
    parser.add_argument(
        "--via",
        type=some_text,
        metavar="L",
        help="intermediate language if no model translates directly (default: en); none forbids two steps",
    )


def add_bilingual_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--bilingual", action="store_true", help="show the source with its translation in subtitle files"
    )


def add_audio_track_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--audio-track",
        type=whole_number(1, 9_999),
        metavar="N",
        help="the audio track of a recording to translate, counted from 1 among its audio tracks "
        "(default: one in the source language, else the file's default, else the first that is not silent)",
    )


def configured(options: argparse.Namespace) -> PipelineConfig:
    """The configuration for the options of ``add_model_arguments`` and ``add_bilingual_argument``.

    A model given by an option is taken at the revision at which ``python -m pipeline.models pull`` fetches it. If the
    languages differ from the configured ones and no translation model is given, it comes from the table of pairs and is
    printed on standard error.

    Raises:
        ConfigError: see ``load_config``.
        UsageError: no translation model is known for the languages, or the source language does not use the configured
            script.
    """
    named = load_config(options.config)
    config = with_overrides(
        named,
        source=options.source,
        target=options.target,
        asr=options.asr,
        nmt=options.nmt,
        via=options.via,
        bilingual=getattr(options, "bilingual", False),
    )
    asr, nmt = config.asr, config.nmt
    script_conversion(asr.script, config.languages.source)
    if asr.model != named.asr.model:
        config = replace(config, asr=replace(asr, revision=_pulled_revision(asr.model)))
    if options.nmt in (None, AUTO) and needs_route(named, config):
        config, pairs = routed(config)
        print(described(pairs), file=sys.stderr, flush=True)
    elif nmt.model != named.nmt.model:
        config = replace(config, nmt=replace(nmt, revision=_pulled_revision(nmt.model)))
    return config


def _pulled_revision(model: str) -> str | None:
    from pipeline.apps.catalog import pulled_revision  # slow

    return pulled_revision(model)
