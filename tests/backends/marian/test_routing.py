"""The table of language pairs, and the models chosen if the languages of a configuration are changed."""

import json
from argparse import ArgumentParser

import pytest

from pipeline.apps.known_models import models_called
from pipeline.apps.options import add_model_arguments, configured
from pipeline.backends.marian import pairs
from pipeline.backends.marian.pairs import Pair, all_pairs, direct, route, route_line, student_routes, weights
from pipeline.backends.marian.routing import looked_up, resolve, translates_all
from pipeline.backends.nmt_options import NmtConfig
from pipeline.config import load_config
from pipeline.errors import ConfigError, UsageError
from pipeline.languages import known_language
from tests.conftest import SETTINGS, SHIPPED_TRANSLATORS, TINY


def options(*arguments):
    parser = ArgumentParser()
    add_model_arguments(parser)
    return parser.parse_args(arguments)


def models(config):
    return [step.model for step in config.nmt.steps]


def by_target(config):
    return {target: [step.model for step in config.nmt_for(target).steps] for target in config.languages.targets}


def write(path, *lines):
    path.write_text("\n".join(lines))
    return str(path)


def test_every_row_is_complete_and_no_model_is_listed_twice_for_a_pair():
    rows = all_pairs()
    assert len({(pair.source, pair.target) for pair in rows}) > 115
    assert len({(pair.source, pair.target, pair.repository) for pair in rows}) == len(rows)
    for pair in rows:
        assert pair.repository.count("/") == 1
        assert pair.source != pair.target
        assert pair.layout in ("recurrent", "merged", "split")
        assert pair.precision in ("int8", "fp16", "fp32")
        assert pair.licence
        for code in (pair.source, pair.target):
            assert known_language(code) == code or code == "sh"  # never a long code of a language that has a short one


def test_the_preferred_row_of_a_pair_comes_first():
    def of(source, target):
        return [pair.repository for pair in all_pairs() if (pair.source, pair.target) == (source, target)]

    assert of("es", "eu") == ["TigreGotico/opus-mt-es-eu-onnx", "TigreGotico/mt-hitz-es-eu-onnx"]  # the larger
    assert of("en", "el") == [
        "firefox/en-el",
        "TigreGotico/opus-mt-en-el-onnx",
        "TigreGotico/opus-mt-tc-big-en-el-onnx",
    ]
    best = direct("es", "eu")
    assert best.repository == of("es", "eu")[0]


def test_languages_with_a_common_code_are_found_with_their_script():
    (pair,) = route("en", "sh")
    for target in ("sh", "sh-Latn"):
        assert route("en", target) == (pair,)
    for target in ("sr", "hr", "bs-Latn"):  # have students of their own
        assert route("en", target)[0].target == target[:2]
    assert [found.target for found in route("de", "sr-Latn")] == ["en", "sr"]
    with pytest.raises(UsageError, match="no known model translates from 'haw'"):
        route("haw", "en")


def test_a_language_is_known_by_all_its_codes():
    assert direct("por", "eng") == direct("pt-BR", "en") == direct("pt", "en") is not None
    assert direct("ceb", "en") is not None
    assert direct("en", "jap") == direct("en", "ja") is not None


def test_two_models_are_used_if_there_is_no_direct_model():
    assert [(pair.source, pair.target) for pair in route("pt", "zh")] == [("pt", "en"), ("en", "zh")]
    assert [(pair.source, pair.target) for pair in route("ca", "eu", "es")] == [("ca", "eu")]
    assert [(pair.source, pair.target) for pair in route("pt", "eu", "ca")] == [("pt", "ca"), ("ca", "eu")]
    assert route_line(route("pt", "zh")) == (
        "pt → zh: no direct model; in two steps through English: "
        "firefox/pt-en-tiny (tiny, BLEU 43.8), then firefox/en-zh (base-memory)"
    )
    assert "through ca: " in route_line(route("pt", "eu", "ca"))
    assert route_line(route("pt", "en")) == "pt → en: firefox/pt-en-tiny (tiny, BLEU 43.8)"
    assert "names are made up" in route_line(route("tr", "az", "none"))


def test_a_student_that_is_not_fetched_is_described_as_the_installed_one_that_runs():
    assert weights("firefox/en-pt", "base-memory, BLEU 50.4") == "firefox/en-pt-tiny (tiny, BLEU 46.1)"
    assert weights("firefox/en-pt-tiny") == "firefox/en-pt-tiny (tiny, BLEU 46.1)"
    assert weights("firefox/en-de", "base-memory") == "firefox/en-de (base-memory)"


def test_an_uncovered_pair_gives_an_error_that_lists_known_pairs():
    with pytest.raises(UsageError, match="'pt' into 'zh', and two steps are forbidden .*into 'zh' from en.*--nmt"):
        route("pt", "zh", "none")
    with pytest.raises(
        UsageError, match=r"'pt' into 'xx', nor two through 'en'; there are models from 'pt' into ca, en, gl"
    ):
        route("pt", "xx")


def test_changed_languages_select_another_model(capsys):
    config = configured(options("--config", "en-zh", "--source", "pt", "--target", "en"))
    assert (models(config), config.nmt.revision) == (["firefox/pt-en"], None)
    assert capsys.readouterr().err == "pt → en: firefox/pt-en-tiny (tiny, BLEU 43.8)\n"
    assert (config.languages.source, config.languages.targets) == ("pt", ("en",))


def test_students_come_before_other_models_also_two_of_them():
    config = configured(options("--config", "demo-zh", "--source", "pt", "--target", "zh"))
    assert models(config) == ["firefox/pt-en", "firefox/en-zh"]
    assert models(configured(options("--config", "en-zh", "--source", "fr", "--target", "de"))) == [
        "firefox/fr-en",
        "firefox/en-de",
    ]
    assert models(configured(options("--config", "en-zh", "--source", "fr", "--target", "de", "--via", "none"))) == [
        "Xenova/opus-mt-fr-de"
    ]
    assert [pair.repository for pair in route("en", "eu")] == ["TigreGotico/opus-mt-en-eu-onnx"]


def test_the_configured_model_stays_for_its_own_pair(capsys):
    for name in ("demo", "demo-zh", "en-zh", "zh-en"):
        named = load_config(name)
        pair = ("--source", named.languages.source, "--target", ",".join(named.languages.targets))
        assert configured(options("--config", name, *pair)) == named
    assert capsys.readouterr().err == ""


def test_a_directory_is_kept_unless_its_files_name_another_pair(tmp_path):
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


def test_a_model_that_is_named_is_not_looked_up(capsys):
    config = configured(options("--source", "pt", "--target", "zh", "--nmt", "owner/name"))
    assert models(config) == ["owner/name"]
    assert capsys.readouterr().err == ""


def test_via_is_a_language_or_forbids_two_steps():
    config = configured(options("--source", "pt", "--target", "eu", "--via", "ca"))
    assert models(config) == ["TigreGotico/opus-mt-pt-ca-onnx", "TigreGotico/mt-hitz-ca-eu-onnx"]
    assert config.nmt.via == "ca"
    with pytest.raises(UsageError, match="two steps are forbidden"):
        configured(options("--source", "pt", "--target", "zh", "--via", "none"))


@pytest.mark.parametrize(
    ("via", "found"),
    [([], ["one", "two"]), (["--via", "ca"], ["TigreGotico/opus-mt-pt-ca-onnx", "TigreGotico/mt-hitz-ca-eu-onnx"])],
)
def test_two_configured_models_stay_unless_another_language_is_between_them(tmp_path, via, found):
    languages = '[languages]\nsource = "pt"\ntarget = "eu"'
    mine = write(tmp_path / "mine.toml", languages, '[nmt]\nmodel = "one"\nsecond = "two"\nvia = "es"')
    assert models(configured(options("--config", mine, *via))) == found


def test_auto_in_a_configuration_looks_the_model_up(tmp_path):
    mine = write(
        tmp_path / "mine.toml",
        '[languages]\nsource = "pt"\ntarget = "eu"',
        '[nmt]\nmodel = "auto"\nvia = "ca"\nfile_suffix = "_int8"',
    )
    expected = ["TigreGotico/opus-mt-pt-ca-onnx", "TigreGotico/mt-hitz-ca-eu-onnx"]
    assert [step.model for step in load_config(mine).translators["pt", "eu"].steps] == expected
    config = configured(options("--config", mine))
    assert models(config) == expected
    assert [step.file_suffix for step in config.nmt.steps] == ["_int8", "_int8"]
    assert models(configured(options("--config", mine, "--target", "en"))) == ["firefox/pt-en"]


def test_a_second_model_may_be_named(tmp_path):
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
    assert models(looked_up)[0] == "firefox/fr-en"


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
def test_settings_that_contradict_each_other_are_refused(line, message, tmp_path):
    with pytest.raises(ConfigError, match=message):
        load_config(write(tmp_path / "mine.toml", f"[nmt]\n{line}"))


BILINGUAL = ("source.spm", "target.spm", "tokenizer_config.json", "config.json")  # names English and Chinese


def multilingual(folder, *codes):
    """A directory whose files name target codes."""
    folder.mkdir()
    (folder / "vocab.json").write_text(json.dumps({f">>{code}<<": number for number, code in enumerate(codes)}))
    return folder


def test_a_configured_model_serves_its_target_and_the_others_come_from_the_table(capsys):
    real = load_config("en-zh").nmt
    for targets in ("zh,de", "de,zh"):
        config = configured(options("--config", "en-zh", "--target", targets))
        assert by_target(config) == {"zh": [real.model], "de": ["firefox/en-de"]}
        assert (config.nmt_for("zh").revision, config.nmt_for("de").revision) == (real.revision, None)
        assert config.translators == {("en", target): config.nmt_for(target) for target in config.languages.targets}
    assert capsys.readouterr().err == "en → de: firefox/en-de (base-memory, BLEU 39.7)\n" * 2
    demo = configured(options("--config", "demo-zh", "--target", "zh-TW,de"))
    assert by_target(demo) == {"zh-TW": [load_config("demo-zh").nmt.model], "de": ["firefox/en-de"]}
    both = configured(options("--config", "demo-zh", "--target", "zh-TW,zh-CN"))  # one model writes both scripts
    assert by_target(both) == {"zh-TW": [load_config("demo-zh").nmt.model], "zh-CN": [load_config("demo-zh").nmt.model]}


def test_a_model_without_languages_serves_only_the_configured_target(tmp_path):
    (tmp_path / "unnamed").mkdir()
    mine = write(tmp_path / "mine.toml", '[nmt]\nmodel = "unnamed"')
    config = configured(options("--config", mine, "--target", "de,zh"))
    assert by_target(config) == {"de": ["firefox/en-de"], "zh": [str(tmp_path / "unnamed")]}
    assert by_target(configured(options("--config", mine, "--target", "de"))) == {"de": [str(tmp_path / "unnamed")]}


def test_two_directions_have_a_model_each():
    config = configured(options("--config", "en-zh", "--source", "auto", "--target", "en,zh"))
    assert by_target(config) == {"en": ["firefox/zh-en"], "zh": ["firefox/en-zh"]}
    assert config.nmt_for("zh") == load_config("en-zh").nmt
    again = configured(options("--config", "en-zh", "--source", "auto", "--target", "en,zh", "--nmt", "auto"))
    assert by_target(again) == {"en": ["firefox/zh-en"], "zh": ["firefox/en-zh"]}


def test_a_target_without_a_known_model_is_named():
    with pytest.raises(UsageError, match=r"translates from 'en' into 'haw'.*\[nmt\.haw\] model = …"):
        configured(options("--config", "en-zh", "--target", "zh,haw"))


def test_sections_for_targets_name_their_models(tmp_path, capsys):
    lines = (
        '[languages]\ntarget = ["zh", "de"]',
        '[nmt.zh]\nmodel = "a/zh"\nrevision = "r"',
        '[nmt.de]\nmodel = "a/de"',
    )
    mine = write(tmp_path / "mine.toml", *lines)
    config = configured(options("--config", mine))
    assert config == load_config(mine)
    assert by_target(config) == {"zh": ["a/zh"], "de": ["a/de"]}
    assert capsys.readouterr().err == ""
    alone = configured(options("--config", mine, "--target", "zh_hant"))
    assert (by_target(alone), alone.nmt_for("zh-Hant").revision) == ({"zh-Hant": ["a/zh"]}, "r")
    more = configured(options("--config", mine, "--target", "de,fr"))
    assert by_target(more) == {"de": ["a/de"], "fr": ["firefox/en-fr"]}
    other = configured(options("--config", mine, "--source", "fr"))  # what is named is for other pairs
    assert by_target(other) == {"zh": ["firefox/fr-en", "firefox/en-zh"], "de": ["firefox/fr-en", "firefox/en-de"]}


@pytest.mark.parametrize("model", ["a/b", "bilingual", "other", "half"])
def test_one_model_for_two_targets_is_refused(tmp_path, model):
    (tmp_path / "bilingual").mkdir()
    for name in BILINGUAL:
        (tmp_path / "bilingual" / name).symlink_to(TINY / name)
    (tmp_path / "other").mkdir()  # its files name no language
    multilingual(tmp_path / "half", "cmn_Hans", "fra")
    mine = write(tmp_path / "mine.toml", '[languages]\ntarget = ["zh", "de"]', f'[nmt]\nmodel = "{model}"')
    message = r"only translation model for the targets zh and de, .*\[nmt\.zh\] model = … and \[nmt\.de\] model = …"
    with pytest.raises(UsageError, match=message):
        _ = load_config(mine).translators
    with pytest.raises(UsageError, match=message):
        configured(options("--config", mine))
    with pytest.raises(
        UsageError, match=r"--nmt gives one translation model.*: \[nmt\.zh\] model = …, \[nmt\.de\] model"
    ):
        configured(options("--config", mine, "--nmt", model if "/" in model else str(tmp_path / model)))


def test_a_multilingual_directory_serves_all_its_targets(tmp_path, capsys):
    folder = str(multilingual(tmp_path / "several", "cmn_Hans", "deu", "eng"))
    mine = write(tmp_path / "mine.toml", '[languages]\ntarget = ["zh", "de"]', '[nmt]\nmodel = "several"')
    assert by_target(configured(options("--config", mine))) == {"zh": [folder], "de": [folder]}
    assert {nmt.model for nmt in load_config(mine).translators.values()} == {folder}
    for arguments in (["--target", "de,zh"], ["--source", "auto", "--target", "en,de"]):
        assert set(map(tuple, by_target(configured(options("--config", mine, *arguments))).values())) == {(folder,)}
        named = configured(options("--config", "en-zh", "--nmt", folder, *arguments))
        assert set(map(tuple, by_target(named).values())) == {(folder,)}
    assert capsys.readouterr().err == ""
    more = configured(options("--config", mine, "--target", "zh,fr"))
    assert by_target(more) == {"zh": [folder], "fr": ["firefox/en-fr"]}


def test_a_second_model_into_several_languages_serves_all_its_targets(tmp_path):
    multilingual(tmp_path / "several", "cmn_Hans", "deu")
    lines = ('[languages]\nsource = "pt"\ntarget = ["zh", "de"]', '[nmt]\nmodel = "a/pt-en"\nsecond = "several"')
    mine = write(tmp_path / "mine.toml", *lines)
    expected = ["a/pt-en", str(tmp_path / "several")]
    assert by_target(configured(options("--config", mine))) == {"zh": expected, "de": expected}
    (tmp_path / "several" / "vocab.json").write_text(json.dumps({">>deu<<": 0}))
    with pytest.raises(UsageError, match="several is the only translation model for the targets zh and de"):
        _ = load_config(mine).translators


def test_auto_looks_up_a_model_for_each_target(tmp_path):
    mine = write(
        tmp_path / "mine.toml",
        '[languages]\ntarget = ["zh", "de", "fr"]',
        '[nmt]\nmodel = "auto"\nbeam_size = 2',
        '[nmt.de]\nmodel = "a/b"',
    )
    found = load_config(mine).translators
    assert {target: nmt.model for (_, target), nmt in found.items()} == {
        "zh": "firefox/en-zh",
        "de": "a/b",
        "fr": "firefox/en-fr",
    }
    assert {nmt.beam_size for nmt in found.values()} == {2}
    config = configured(options("--config", mine))
    assert {pair: config.nmt_for(pair[1]) for pair in found} == found


def test_pull_and_list_know_the_models_of_all_targets(tmp_path):
    mine = write(
        tmp_path / "mine.toml",
        '[languages]\nsource = "pt"\ntarget = ["en", "zh", "eu"]',
        '[nmt]\nmodel = "auto"\n[nmt.eu]\nmodel = "a/b"\nrevision = "r"',
    )
    found = [(model.ref.source, model.ref.revision) for model in models_called(mine) if model.kind == "translation"]
    assert found == [  # the first step into Chinese is the model into English
        ("firefox/pt-en", None),
        ("firefox/en-zh", None),
        ("a/b", "r"),
    ]


STUDENTS = {"de-en": "firefox/de-en", "en-fr": "firefox/en-fr"}
OTHERS = {"de-en": "x/de-en", "en-fr": "x/en-fr", "de-fr": "x/de-fr"}


@pytest.mark.parametrize(
    ("rows", "via", "found"),
    [
        ([STUDENTS["de-en"], STUDENTS["en-fr"], OTHERS["de-fr"]], "en", ["firefox/de-en", "firefox/en-fr"]),
        ([STUDENTS["de-en"], OTHERS["en-fr"], OTHERS["de-fr"]], "en", ["x/de-fr"]),  # one student alone
        ([OTHERS["de-en"], STUDENTS["en-fr"], OTHERS["de-fr"]], "en", ["x/de-fr"]),
        ([OTHERS["de-en"], OTHERS["en-fr"]], "en", ["x/de-en", "x/en-fr"]),
        ([STUDENTS["de-en"], STUDENTS["en-fr"], "firefox/de-fr"], "en", ["firefox/de-fr"]),
        ([STUDENTS["de-en"], STUDENTS["en-fr"], OTHERS["de-fr"]], "none", ["x/de-fr"]),
        ([STUDENTS["de-en"], STUDENTS["en-fr"]], "none", None),
        ([STUDENTS["de-en"], "firefox/de-en-tiny", OTHERS["en-fr"]], "en", ["firefox/de-en", "x/en-fr"]),
        ([STUDENTS["de-en"], "firefox/en-de", OTHERS["de-fr"]], "en", ["x/de-fr"]),
    ],
)
def test_of_several_routes_students_are_preferred_and_then_one_model(monkeypatch, rows, via, found):
    table = tuple(Pair(*row.partition("/")[2].split("-")[:2], row, "merged", "fp32", None, "MIT") for row in rows)
    monkeypatch.setattr(pairs, "all_pairs", lambda: table)
    if found is None:
        with pytest.raises(UsageError, match="two steps are forbidden"):
            route("de", "fr", via)
        return
    assert [pair.repository for pair in route("de", "fr", via)] == found
    of_students = student_routes.__wrapped__("en")
    assert of_students[("de", "en")][0] == table[0] if table[0].is_student else ("de", "en") not in of_students
    assert ("de", "de") not in of_students


def test_a_suffix_is_of_the_models_that_are_named_and_of_those_of_the_table():
    assert looked_up(("en", "de"), NmtConfig("x/en-fr", file_suffix="_q4")).file_suffix == ""
    assert looked_up(("en", "de"), NmtConfig("auto", file_suffix="_q4")).file_suffix == "_q4"


@pytest.mark.parametrize(
    ("model", "second", "kept"),
    [
        ("firefox/en-de", None, True),
        ("firefox/en-de-tiny", None, True),
        ("firefox/en-fr", None, False),
        ("firefox/en-de", "firefox/de-fr", False),  # its second model is for another target
        ("x/any", None, False),
    ],
)
def test_of_several_pairs_a_model_is_kept_for_the_one_that_it_names(model, second, kept):
    nmt = NmtConfig(model, second=second, via="de")
    assert (resolve(("en", "de"), nmt, one_of_several=True) is nmt) == kept
    assert resolve(("en", "de"), nmt) is nmt


def test_two_models_in_sequence_serve_several_targets_of_one_source():
    nmt = NmtConfig("x/any", second=str(SHIPPED_TRANSLATORS["demo-en-zh"]))
    assert translates_all(nmt, [("de", "zh-TW"), ("de", "zh")])
    assert not translates_all(nmt, [("de", "zh"), ("fr", "zh")])
    assert not translates_all(nmt, [("de", "zh"), ("de", "pt")])


def test_each_of_two_models_has_a_revision_of_its_own():
    one, two = NmtConfig("x/a", "rev-a", "x/b", "rev-b", beam_size=3).steps
    assert (one.model, one.revision, one.second, one.second_revision, one.beam_size) == ("x/a", "rev-a", None, None, 3)
    assert (two.model, two.revision, two.second, two.second_revision, two.beam_size) == ("x/b", "rev-b", None, None, 3)
    assert NmtConfig("x/a", "rev-a").steps == (NmtConfig("x/a", "rev-a"),)


@pytest.mark.parametrize(("limit_s", "conflicts"), [(0.0, 0), (0.0005, 1), (0.001, 0), (5.0, 0)])
def test_a_time_limit_leaves_time_for_a_sentence_or_is_none(limit_s, conflicts):
    assert len(list(NmtConfig(time_limit_s=limit_s).conflicts("nmt"))) == conflicts
