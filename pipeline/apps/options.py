"""The options that commands share: which configuration, languages and models, and whether subtitles are bilingual."""

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
    """The options that choose configuration, languages and models."""
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
        help="language to go through where no model translates directly (default: en); none forbids two steps",
    )


def add_bilingual_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--bilingual", action="store_true", help="subtitle files show the source with its translation")


def add_audio_track_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--audio-track",
        type=whole_number(1, 9_999),
        metavar="N",
        help="of a recording with several audio tracks, the one to translate, counted from 1 among the audio tracks "
        "(default: one in the source language, else the file's default, else the first that is not silent)",
    )


def configured(options: argparse.Namespace) -> PipelineConfig:
    """The configuration that the options of ``add_model_arguments`` and ``add_bilingual_argument`` ask for.

    A model named there is taken at the revision at which ``python -m pipeline.models pull`` fetches it by that name. For
    other languages than the configured ones, the translation model comes from the table of pairs, if none is named; which
    one that is, is said on standard error.

    Raises:
        ConfigError: see ``load_config``.
        UsageError: no translation model is known for the languages; the one spoken is not written in the configured script.
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
    from pipeline.apps.catalog import pulled_revision  # takes a while

    return pulled_revision(model)
