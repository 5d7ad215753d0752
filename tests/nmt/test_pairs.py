"""The table of language pairs, and the models chosen if the languages of a configuration are changed."""

from __future__ import annotations

import json
from argparse import ArgumentParser, Namespace
from pathlib import Path

import pytest

from pipeline.apps.options import add_model_arguments, configured
from pipeline.config import ConfigError, PipelineConfig, load_config
from pipeline.errors import UsageError
from pipeline.languages import two_letters
from pipeline.nmt.pairs import all_pairs, described, direct, route
from pipeline.nmt.routing import resolved
from tests.conftest import SETTINGS, TINY


def options(*arguments: str) -> Namespace:
    parser = ArgumentParser()
    add_model_arguments(parser)
    return parser.parse_args(arguments)


def models(config: PipelineConfig) -> list[str]:
    return [step.model for step in config.nmt.steps]


def write(path: Path, *lines: str) -> str:
    path.write_text("\n".join(lines))
    return str(path)


def test_every_row_is_complete_and_no_model_is_listed_twice_for_a_pair() -> None:
    rows = all_pairs()
    assert len({(pair.source, pair.target) for pair in rows}) > 115
    assert len({(pair.source, pair.target, pair.repository) for pair in rows}) == len(rows)
    for pair in rows:
        assert pair.repository.count("/") == 1
        assert pair.source != pair.target
        assert pair.layout in ("merged", "split")
        assert pair.precision in ("fp16", "fp32")
        assert pair.licence
        for code in (pair.source, pair.target):
            assert two_letters(code) in (code, None)  # never a long code of a language that has a short one


def test_the_preferred_row_of_a_pair_comes_first() -> None:
    def of(source: str, target: str) -> list[str]:
        return [pair.repository for pair in all_pairs() if (pair.source, pair.target) == (source, target)]

    assert of("es", "eu") == ["TigreGotico/opus-mt-es-eu-onnx", "TigreGotico/mt-hitz-es-eu-onnx"]  # the larger
    assert of("en", "el") == ["TigreGotico/opus-mt-en-el-onnx", "TigreGotico/opus-mt-tc-big-en-el-onnx"]
    best = direct("es", "eu")
    assert best is not None
    assert best.repository == of("es", "eu")[0]


def test_languages_with_a_common_code_are_found_with_their_script() -> None:
    (pair,) = route("en", "sh")
    for target in ("sr", "sr-Latn", "sr_Cyrl", "hr", "bs-Latn"):
        assert route("en", target) == (pair,)
    assert [found.target for found in route("de", "sr-Latn")] == ["en", "sh"]
    with pytest.raises(UsageError, match="no model is known that translates from 'sr'"):
        route("sr", "en")


def test_a_language_is_known_by_all_its_codes() -> None:
    assert direct("por", "eng") == direct("pt-BR", "en") == direct("pt", "en") is not None
    assert direct("ceb", "en") is not None
    assert direct("en", "jap") == direct("en", "ja") is not None


def test_two_models_are_used_if_there_is_no_direct_model() -> None:
    assert [(pair.source, pair.target) for pair in route("pt", "zh")] == [("pt", "en"), ("en", "zh")]
    assert [(pair.source, pair.target) for pair in route("ca", "eu", "es")] == [("ca", "eu")]
    assert [(pair.source, pair.target) for pair in route("pt", "eu", "ca")] == [("pt", "ca"), ("ca", "eu")]
    assert described(route("pt", "zh")) == (
        "pt → zh: no direct model; in two steps through English: TigreGotico/opus-mt-pt-en-onnx, then Xenova/opus-mt-en-zh"
    )
    assert "through ca: " in described(route("pt", "eu", "ca"))
    assert described(route("pt", "en")) == "pt → en: TigreGotico/opus-mt-pt-en-onnx"
    assert "biblical" in described(route("en", "ja"))


def test_an_uncovered_pair_gives_an_error_that_lists_known_pairs() -> None:
    with pytest.raises(UsageError, match="'pt' into 'zh', and two steps are forbidden .*into 'zh' from en.*--nmt"):
        route("pt", "zh", "none")
    with pytest.raises(
        UsageError, match=r"'pt' into 'xx', nor two through 'en'; there are models from 'pt' into ca, en, gl"
    ):
        route("pt", "xx")


def test_changed_languages_select_another_model(capsys: pytest.CaptureFixture[str]) -> None:
    config = configured(options("--config", "en-zh", "--source", "pt", "--target", "en"))
    assert (models(config), config.nmt.revision) == (["TigreGotico/opus-mt-pt-en-onnx"], None)
    assert capsys.readouterr().err == "pt → en: TigreGotico/opus-mt-pt-en-onnx\n"
    assert (config.languages.source, config.languages.target) == ("pt", "en")


def test_a_model_that_a_bundled_configuration_pins_stays_pinned() -> None:
    config = configured(options("--config", "demo", "--source", "pt", "--target", "zh"))
    real = load_config("en-zh").nmt
    first, second = config.nmt.steps
    assert (first.model, first.revision) == ("TigreGotico/opus-mt-pt-en-onnx", None)
    assert (second.model, second.revision) == (real.model, real.revision)
    assert real.revision
    alone = configured(options("--config", "zh-en", "--source", "en", "--target", "zh")).nmt
    assert (alone.model, alone.revision) == (real.model, real.revision)


def test_the_configured_model_stays_for_its_own_pair(capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("demo", "en-zh", "zh-en"):
        named = load_config(name)
        pair = ("--source", named.languages.source, "--target", named.languages.target)
        assert configured(options("--config", name, *pair)) == named
    assert capsys.readouterr().err == ""


def test_a_directory_is_kept_unless_its_files_name_another_pair(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    for name in SETTINGS:
        (folder / name).symlink_to(TINY / name)  # it translates from English into Chinese
    mine = write(tmp_path / "mine.toml", '[languages]\nsource = "de"\ntarget = "fr"', '[nmt]\nmodel = "model"')
    assert models(configured(options("--config", mine, "--source", "en", "--target", "zh"))) == [str(folder)]
    assert models(configured(options("--config", mine, "--source", "pt", "--target", "en"))) != [str(folder)]
    (folder / "vocab.json").unlink()
    (folder / "vocab.json").write_text(
        json.dumps({">>fra<<": 0, ">>cmn_Hans<<": 1})
    )  # one that translates into several
    for target, stays in (("fr", True), ("zh", True), ("es", False)):
        config = configured(options("--config", mine, "--source", "en", "--target", target))
        assert (models(config) == [str(folder)]) == stays


def test_a_model_that_is_named_is_not_looked_up(capsys: pytest.CaptureFixture[str]) -> None:
    config = configured(options("--source", "pt", "--target", "zh", "--nmt", "owner/name"))
    assert models(config) == ["owner/name"]
    assert capsys.readouterr().err == ""


def test_via_is_a_language_or_forbids_two_steps() -> None:
    config = configured(options("--source", "pt", "--target", "eu", "--via", "ca"))
    assert models(config) == ["TigreGotico/opus-mt-pt-ca-onnx", "TigreGotico/mt-hitz-ca-eu-onnx"]
    assert config.nmt.via == "ca"
    with pytest.raises(UsageError, match="two steps are forbidden"):
        configured(options("--source", "pt", "--target", "zh", "--via", "none"))


def test_auto_in_a_configuration_looks_the_model_up(tmp_path: Path) -> None:
    mine = write(
        tmp_path / "mine.toml",
        '[languages]\nsource = "pt"\ntarget = "eu"',
        '[nmt]\nmodel = "auto"\nvia = "ca"\nfile_suffix = "_int8"',
    )
    expected = ["TigreGotico/opus-mt-pt-ca-onnx", "TigreGotico/mt-hitz-ca-eu-onnx"]
    assert models(resolved(load_config(mine))) == expected
    config = configured(options("--config", mine))
    assert models(config) == expected
    assert [step.file_suffix for step in config.nmt.steps] == ["_int8", "_int8"]
    assert models(configured(options("--config", mine, "--target", "en"))) == ["TigreGotico/opus-mt-pt-en-onnx"]


def test_a_second_model_may_be_named(tmp_path: Path) -> None:
    lines = (
        '[languages]\nsource = "pt"\ntarget = "zh"',
        '[nmt]\nmodel = "a/b"\nsecond = "local"\nsecond_revision = "r"',
    )
    mine = write(tmp_path / "mine.toml", *lines)
    (tmp_path / "local").mkdir()
    first, second = load_config(mine).nmt.steps
    assert (first.model, first.revision) == ("a/b", None)
    assert (second.model, second.revision) == (str(tmp_path / "local"), "r")  # relative to the file
    assert models(configured(options("--config", mine, "--nmt", "c/d"))) == ["c/d"]
    assert models(configured(options("--config", mine))) == ["a/b", str(tmp_path / "local")]
    looked_up = configured(options("--config", mine, "--source", "fr"))  # what is named is for another pair
    assert models(looked_up)[0] == "Xenova/opus-mt-fr-en"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('model = "auto"\nsecond = "a/b"', "nmt.model is auto, which finds both"),
        (
            'model = "a/b"\nsecond = "c/d"\nvia = "none"',
            "nmt.second translates from the language nmt.via, which is none",
        ),
        ("via = 1", "nmt.via is 1; expected str"),
    ],
)
def test_settings_that_contradict_each_other_are_refused(line: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=message):
        load_config(write(tmp_path / "mine.toml", f"[nmt]\n{line}"))
