"""Configuration: every error names the key and the allowed values."""

import dataclasses
from argparse import ArgumentParser
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.apps.known_models import models_called
from pipeline.apps.options import add_model_arguments, configured
from pipeline.backends.asr_options import AsrConfig
from pipeline.backends.nmt_options import NmtConfig
from pipeline.config import PipelineConfig, load_config, parse_config, with_overrides
from pipeline.config.resources import named_configs
from pipeline.core.bounds import allowed_choices, allowed_range
from pipeline.core.run.overload import OverloadOptions
from pipeline.core.vad.endpointing import Endpointer
from pipeline.core.vad.options import VadConfig
from pipeline.errors import ConfigError, UsageError
from pipeline.languages.options import LanguageConfig
from pipeline.media.subtitles.rules import SubtitleRules
from pipeline.store.known import known_model, known_translator
from tests.conftest import ROOT, examples


def load(tmp_path, text):
    path = tmp_path / "my.toml"
    path.write_text(text)
    return load_config(path)


@pytest.mark.parametrize(
    ("name", "source", "target"),
    [
        ("demo", "en", "pt"),
        ("demo-pt-en", "pt", "en"),
        ("demo-zh", "en", "zh"),
        ("demo-zh-en", "zh", "en"),
        ("en-zh", "en", "zh"),
        ("zh-en", "zh", "en"),
    ],
)
def test_the_named_configurations_load(name, source, target):
    config = load_config(name)
    assert name in named_configs()
    assert (config.languages.source, config.languages.targets) == (source, (target,))


@pytest.mark.parametrize("name", ["demo", "demo-pt-en", "demo-zh", "demo-zh-en"])
def test_the_demos_use_models_that_ship_with_the_repository_or_with_packages(name):
    config = load_config(name)
    known = known_model(config.asr.model, config.asr.revision)
    assert known.packages
    translator = known_translator(config.nmt.model)
    assert translator.packages if translator is not None else Path(config.nmt.model).is_dir()


def test_an_empty_file_gives_the_defaults(tmp_path):
    assert load(tmp_path, "") == PipelineConfig()


def test_values_are_taken(tmp_path):
    config = load(tmp_path, "[vad]\nhangover_ms = 700\n[asr]\nlog_probability_threshold = -2\n")
    assert config.vad.hangover_ms == 700
    assert config.asr.log_probability_threshold == -2.0
    assert isinstance(config.asr.log_probability_threshold, float)
    with_mark = load(tmp_path, "\ufeff[vad]\nhangover_ms = 700\n")  # a byte order mark, as some editors write it
    assert with_mark.vad.hangover_ms == 700


def test_a_draft_model_has_the_options_of_the_other_except_its_thresholds(tmp_path):
    (tmp_path / "small-one").mkdir()
    text = "[asr]\nthreads = 3\nprompt = 'Hello.'\nno_speech_threshold = 0.5\n[asr.draft]\nmodel = 'small-one'\n"
    config = load(tmp_path, text)
    expected = AsrConfig(model=str(tmp_path / "small-one"), threads=3, prompt="Hello.")
    assert config.draft_model == config.asr.of_draft_model == expected
    assert with_overrides(config, asr="medium").draft_model == expected
    assert load(tmp_path, text + "[drafts]\nenabled = false\n").draft_model is None
    assert load(tmp_path, text.replace("[asr]", "[asr]\nword_timestamps = false")).draft_model is None
    assert load(tmp_path, "").draft_model is None


WRONG = [
    line.split("\t") for line in (ROOT / "tests" / "config" / "wrong_settings.tsv").read_text("utf-8").splitlines()
]
"""The text of a configuration, with \\n in place of the line ends, and the error that it gives."""


@pytest.mark.parametrize(
    ("text", "message"),
    [
        *((text.replace("\\n", "\n"), message) for text, message in WRONG),
        ("[asr]\nbeam_size = " + "1" * 5000, r"is not a TOML file: Exceeds the limit"),
        ("[asr]\nbeam_size = 0x" + "f" * 5000, r"asr\.beam_size is too large; allowed is 1 to 20"),
        ("x = " + "[" * 5000, r"is not a TOML file"),
    ],
)
def test_the_error_names_the_key_and_the_allowed_values(tmp_path, text, message):
    with pytest.raises(ConfigError, match=message) as caught:
        load(tmp_path, text)
    assert "my.toml" in str(caught.value)


_VAD_TIMES = {
    option.name: (int(bounds[0]), int(bounds[1]))
    for option in dataclasses.fields(VadConfig)
    if option.name.endswith("_ms") and (bounds := allowed_range(option)) is not None
}


@settings(max_examples=examples(150))
@given(
    st.fixed_dictionaries(
        {key: st.integers(low, high) for key, (low, high) in _VAD_TIMES.items()}
        | {"frame_ms": st.sampled_from([10, 20, 30])}
    )
)
def test_accepted_timings_give_segments_with_speech(vad):
    """The minimum speech between two silences is in segments, and every segment contains some of it."""
    try:
        config = parse_config({"vad": vad}, Path("my.toml"))
    except ConfigError:
        return
    frame = config.vad.frame_ms
    silent, spoken = 3_000 // frame, (config.vad.min_speech_ms + config.vad.trigger_ms) // frame + 5
    endpointer = Endpointer(config.vad)
    segments = [
        segment
        for number in range(silent + spoken + 40_000 // frame)
        for segment in endpointer.push(np.zeros(16 * frame, np.int16), silent <= number < silent + spoken)
    ]
    bounds = [(round(1000 * s.start_s), round(1000 * s.end_s)) for s in [*segments, *endpointer.flush()]]
    begin, end = silent * frame, (silent + spoken) * frame
    assert all(first < end and last > begin for first, last in bounds)
    assert bounds[0][0] <= begin
    assert bounds[-1][1] >= end


def test_the_error_for_an_unknown_name_lists_the_configurations(tmp_path):
    with pytest.raises(
        ConfigError, match="there is no configuration 'dmeo'; give demo, demo-pt-en, demo-zh, demo-zh-en, en-zh, zh-en"
    ):
        load_config("dmeo")
    with pytest.raises(ConfigError, match="no such configuration file"):
        load_config(tmp_path / "none.toml")


def test_every_number_has_a_range():
    for section in dataclasses.fields(PipelineConfig):
        if section.name == "nmt_overrides":
            continue
        for key in dataclasses.fields(getattr(PipelineConfig(), section.name)):
            value = getattr(getattr(PipelineConfig(), section.name), key.name)
            if isinstance(value, int | float) and not isinstance(value, bool):
                assert allowed_range(key) or allowed_choices(key)


def test_a_model_from_the_command_line_does_not_get_the_configured_revision():
    config = with_overrides(load_config("en-zh"), asr="small", targets=("de",))
    assert (config.asr.model, config.asr.revision, config.languages.targets) == ("small", None, ("de",))
    assert config.nmt == load_config("en-zh").nmt
    again = load_config("en-zh")
    assert with_overrides(again, asr=again.asr.model, nmt=again.nmt.model) == again
    pinned = dataclasses.replace(PipelineConfig(), nmt=NmtConfig(revision="a" * 40, file_suffix="_q4"))
    nmt = with_overrides(pinned, nmt="x/y").nmt
    assert (nmt.model, nmt.revision, nmt.file_suffix) == ("x/y", None, "")


@pytest.mark.parametrize(
    ("kind", "name", "pinned"),
    [
        ("asr", "small", True),
        ("asr", "Systran/faster-whisper-small", True),
        ("asr", "tiny.en", True),
        ("asr", "medium", False),
        ("asr", "owner/other", False),
        ("nmt", "Xenova/opus-mt-en-zh", False),
        ("nmt", "firefox/en-zh", False),
        ("nmt", "Xenova/opus-mt-de-en", False),
    ],
)
def test_the_command_line_and_pull_use_the_same_model_for_a_name(kind, name, pinned):
    parser = ArgumentParser()
    add_model_arguments(parser)
    config = configured(parser.parse_args(["--config", "demo-zh", f"--{kind}", name]))
    (fetched,) = models_called(name)
    named, other = (config.asr, config.nmt) if kind == "asr" else (config.nmt, config.asr)
    assert (named.model, named.revision) == (name, fetched.ref.revision)
    assert (fetched.ref.revision is not None) == pinned
    assert other == getattr(load_config("demo-zh"), "nmt" if kind == "asr" else "asr")


TWO_TARGETS = """
[languages]
target = ["zh_tw", "de"]
[nmt]
model = "a/common"
revision = "r"
second = "a/second"
file_suffix = "_q4"
beam_size = 2
[nmt.de]
model = "local"
beam_size = 4
time_limit_s = 1
"""


def test_a_target_may_have_translation_options_of_its_own(tmp_path):
    (tmp_path / "local").mkdir()
    config = load(tmp_path, TWO_TARGETS)
    assert config.languages.targets == ("zh-TW", "de")
    assert config.nmt_for("zh-TW") == config.nmt
    assert (config.nmt.model, config.nmt.second, config.nmt.beam_size) == ("a/common", "a/second", 2)
    german = config.nmt_for("de")
    assert (german.model, german.beam_size, german.time_limit_s) == (str(tmp_path / "local"), 4, 1.0)
    assert isinstance(german.time_limit_s, float)
    # Revision and second model belong to the common model; other options are inherited.
    assert (german.revision, german.second, german.file_suffix) == (None, None, "_q4")
    assert config.sharing_targets == ("zh-TW",)
    assert hash(config) == hash(load(tmp_path, TWO_TARGETS))
    faster = dataclasses.replace(config, nmt=dataclasses.replace(config.nmt, max_tokens=9, beam_size=1))
    assert (faster.nmt_for("zh-TW").beam_size, faster.nmt_for("de").beam_size) == (1, 4)
    assert faster.nmt_for("de").max_tokens == 9


def test_a_section_of_a_target_may_be_in_another_notation(tmp_path):
    config = load(tmp_path, "[languages]\ntarget = 'zh-TW'\n[nmt.zh_tw]\nbeam_size = 3\n")
    assert (config.nmt.beam_size, config.nmt_for("zh-TW").beam_size) == (1, 3)
    assert config.nmt_for("zh-TW").model == config.nmt.model


def test_with_two_directions_each_target_is_translated_from_the_other(tmp_path):
    config = load(tmp_path, "[languages]\nsource = 'auto'\ntarget = ['en', 'zh']\n[nmt]\nmodel = 'auto'\n")
    assert config.languages.spoken == ("en", "zh")
    assert config.languages.only_spoken is None
    assert [config.languages.pair(target) for target in ("en", "zh")] == [("zh", "en"), ("en", "zh")]
    one = load_config("demo-zh").languages
    assert (one.spoken, one.only_spoken, one.pair("zh")) == (("en",), "en", ("en", "zh"))


def test_languages_may_be_one_code_or_a_list_of_codes_in_code_too():
    one = LanguageConfig("en", ("zh-TW",))
    assert LanguageConfig("en", "zh-TW") == LanguageConfig("en", ["zh-TW"]) == one
    assert dataclasses.replace(one, targets="de").targets == ("de",)
    assert with_overrides(PipelineConfig(), targets="zh_tw").languages == one
    assert hash(LanguageConfig("auto", ["en", "zh"])) == hash(LanguageConfig("auto", ("en", "zh")))


def test_several_languages_may_be_spoken(tmp_path):
    one = load(tmp_path, "[languages]\nsource = ['en', 'PT_br', 'spa']\ntarget = ['en', 'de']\n").languages
    assert one == LanguageConfig("en, pt-BR,es", ("en", "de"))
    assert (one.spoken, one.only_spoken, one.translated) == (("en", "pt-BR", "es"), None, ("en", "de"))
    assert one.pairs("en") == [("pt-BR", "en"), ("es", "en")]
    assert one.mixed == ("en", "de")
    any_language = LanguageConfig("auto", "en")
    assert any_language.spoken[0] == "en"
    assert {"pt", "es", "zh"} < set(any_language.spoken)
    assert len(set(any_language.spoken)) == len(any_language.spoken) > 40
    assert LanguageConfig("en", ("en", "de")).mixed == LanguageConfig("auto", ("en", "de")).mixed == ()


def test_the_options_of_a_target_follow_its_language_on_the_command_line(tmp_path):
    (tmp_path / "local").mkdir()
    config = load(tmp_path, TWO_TARGETS)
    other = with_overrides(config, targets=("de-AT", "fr"))
    assert (other.nmt_for("de-AT"), other.nmt_for("fr")) == (config.nmt_for("de"), config.nmt)
    assert with_overrides(config) == config
    named = with_overrides(config, nmt="x/y", via="fr")
    assert [(named.nmt_for(target).model, named.nmt_for(target).via) for target in ("zh-TW", "de")] == [
        ("x/y", "fr")
    ] * 2
    assert named.nmt_for("de").beam_size == 4
    with pytest.raises(UsageError, match="the target 'zho-TW' is given twice, first as 'zh_TW'"):
        with_overrides(config, targets=("zh_TW", "zho-TW"))
    with pytest.raises(UsageError, match="different languages as targets"):
        with_overrides(config, source="auto", targets=("zh-TW", "zh-CN"))
    with pytest.raises(UsageError, match="the configured target 'zh' is the language spoken"):
        with_overrides(load_config("demo-zh"), source="zh")
    captions = with_overrides(load_config("demo-zh"), source="zh", targets=("zh-TW", "en"))
    assert (captions.languages.translated, captions.sharing_targets) == (("en",), ("en",))


def test_options_given_to_one_target_leave_the_others(tmp_path):
    (tmp_path / "local").mkdir()
    config = load(tmp_path, TWO_TARGETS)
    nmt = NmtConfig(model="x/y", beam_size=7)
    changed = config.with_nmt("zh-TW", nmt)
    assert (changed.nmt_for("zh-TW"), changed.nmt_for("de")) == (nmt, config.nmt_for("de"))
    assert changed.sharing_targets == ()
    assert config.with_nmt("zh-TW", config.nmt).sharing_targets == ()  # the common model, but its own from now on
    alone = with_overrides(config, targets=("de",)).with_nmt("de", nmt)
    assert (alone.nmt, alone.nmt_overrides) == (nmt, ())


SET = """[subtitles]
bilingual = true
mark_uncertain = true
preset = "bbc"
line_columns = 30
[glossary]
file = "terms.tsv"
[captions]
masked = "masked.txt"
[speakers]
auto = true
[nmt]
via = "en"
"""


@pytest.mark.parametrize(
    ("given", "section", "key", "configured", "default"),
    [
        ({"bilingual": True}, "subtitles", "bilingual", True, False),
        ({"mark_uncertain": True}, "subtitles", "mark_uncertain", True, False),
        ({"preset": "bbc"}, "subtitles", "characters_per_second", 15.0, SubtitleRules().characters_per_second),
        ({"glossary": "other.tsv"}, "glossary", "file", "terms.tsv", None),
        ({"masked": "other.txt"}, "captions", "masked", "masked.txt", None),
        ({"speakers": True}, "speakers", "auto", True, False),
        ({"via": "de"}, "nmt", "via", "en", NmtConfig().via),
    ],
)
def test_an_option_of_the_command_line_replaces_its_key_alone(given, section, key, configured, default, tmp_path):
    def value(config: PipelineConfig) -> object:
        found = getattr(getattr(config, section), key)
        return Path(found).name if isinstance(found, str) else found

    files, (wanted,) = load(tmp_path, SET), given.values()
    assert (files.captions.masked, files.glossary.file) == tuple(
        str(tmp_path / name) for name in ("masked.txt", "terms.tsv")
    )
    wanted = 15.0 if wanted == "bbc" else wanted
    assert (value(files), value(PipelineConfig())) == (configured, default)
    assert value(with_overrides(files)) == configured
    assert value(with_overrides(PipelineConfig(), **given)) == wanted
    assert value(with_overrides(files, **given)) == wanted
    others = [name for name in vars(files) if name != section]
    assert [getattr(with_overrides(files, **given), name) for name in others] == [
        getattr(files, name) for name in others
    ]


def test_a_value_of_a_file_counts_more_than_its_preset(tmp_path):
    rules = load(tmp_path, SET).subtitles
    assert (rules.line_columns, rules.linger_ms, rules.gap_ms) == (30, 1_500, 0)
    plain = load(tmp_path, "[subtitles]\nline_columns = 30\n").subtitles
    assert plain == SubtitleRules(line_columns=30)


def test_the_options_of_the_nearest_target_are_carried_over(tmp_path):
    sections = "".join(f"[nmt.{tag}]\nbeam_size = {size}\n" for tag, size in (("zh-TW", 3), ("zh-CN", 4)))
    config = load(tmp_path, f"[languages]\ntarget = ['zh-TW', 'zh-CN']\n[nmt]\nmodel = 'auto'\n{sections}")
    for target, size in (("zh-TW", 3), ("zh-CN", 4), ("zh-HK", 3), ("de", 1)):
        assert with_overrides(config, targets=(target,)).nmt_for(target).beam_size == size


@pytest.mark.parametrize(
    ("enabled", "timestamps", "drafts"), [(True, True, True), (True, False, False), (False, True, False)]
)
def test_there_are_drafts_where_they_are_wanted_and_words_have_times(enabled, timestamps, drafts, tmp_path):
    text = f"[drafts]\nenabled = {str(enabled).lower()}\n[asr]\nword_timestamps = {str(timestamps).lower()}\n"
    assert load(tmp_path, text).has_drafts is drafts


@pytest.mark.parametrize("threads", [0, 256])
def test_the_ends_of_a_range_are_allowed(threads):
    assert AsrConfig(threads=threads).threads == threads


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: AsrConfig(word_timestamps=1), r"AsrConfig\.word_timestamps is 1; expected bool"),
        (lambda: AsrConfig(beam_size=None), r"AsrConfig\.beam_size is None; expected int"),
        (lambda: AsrConfig(threads=-1), r"AsrConfig\.threads is -1; allowed is 0 to 256"),
        (lambda: AsrConfig(beam_size=0), r"AsrConfig\.beam_size is 0; allowed is 1 to 20"),
        (lambda: AsrConfig(beam_size="5"), r"AsrConfig\.beam_size is '5'; expected int"),
        (lambda: AsrConfig(threads=300), r"AsrConfig\.threads is 300; allowed is 0 to 256"),
        (lambda: AsrConfig(draft="tiny"), r"AsrConfig\.draft is 'tiny'; expected DraftModel"),
        (lambda: NmtConfig(weights="int16"), r"NmtConfig\.weights is 'int16'; allowed are auto, fp32"),
        (lambda: NmtConfig(model=""), r"NmtConfig\.model is empty"),
        (lambda: VadConfig(threshold=float("nan")), r"VadConfig\.threshold is nan; allowed is 0\.01 to 0\.99"),
        (lambda: dataclasses.replace(VadConfig(), mode=True), r"VadConfig\.mode is True; expected int"),
        (lambda: PipelineConfig(asr={"beam_size": 1}), r"PipelineConfig\.asr is \{.*\}; expected AsrConfig"),
        (
            lambda: PipelineConfig(nmt=NmtConfig(second="x", via="none")),
            r"nmt\.second translates from the language nmt\.via",
        ),
        (lambda: PipelineConfig(subtitles=SubtitleRules(gap_ms=900)), r"\[subtitles\] gap_ms \(900\) must be less"),
        (lambda: LanguageConfig(source=5), r"LanguageConfig\.source is 5; expected language codes"),
        (
            lambda: LanguageConfig(targets=("zh", None)),
            r"LanguageConfig\.targets is \('zh', None\); expected language codes",
        ),
        (lambda: LanguageConfig(targets=7), r"LanguageConfig\.targets is 7; expected language codes"),
    ],
)
def test_options_given_in_code_are_checked_as_those_of_a_file(make, message):
    with pytest.raises(UsageError, match=message) as caught:
        make()
    assert "\n" not in str(caught.value)


def test_an_integer_in_code_is_a_float_where_the_option_is_one():
    found = OverloadOptions(behind_s=6)
    assert (found, type(found.behind_s)) == (OverloadOptions(behind_s=6.0), float)
