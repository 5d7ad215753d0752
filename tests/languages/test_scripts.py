"""Targets with a script: target codes of multilingual models, and conversion of simplified to traditional Chinese."""

from argparse import ArgumentParser
from dataclasses import replace
from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline import MarianModel
from pipeline.apps.options import add_model_arguments, configured
from pipeline.backends.marian.pairs import route
from pipeline.backends.marian.pivot import PivotTranslator
from pipeline.backends.marian.search.sentence_text import translated
from pipeline.config import load_config, with_overrides
from pipeline.core.captions.policy import rewritten
from pipeline.core.nmt.translator import TranslationRequest
from pipeline.errors import UsageError
from pipeline.events import SourceSentence, TargetText, Translation
from pipeline.languages import language_tag
from pipeline.languages.chinese import conversion
from pipeline.languages.scripts import choose_code, needed_conversion
from tests.conftest import ROOT, tiny_with
from tests.languages.test_chinese import TEXTS

DEMO = ROOT / "models" / "demo" / "nmt-en-zh"
TEXT = "I want two tickets. Where does the train to Shanghai leave? He has long hair and I need a haircut after the meeting."
BOTH = ["cmn_Hans", "cmn_Hant", "deu", "srp_Cyrl", "srp_Latn", "pt", "pt_br"]


@pytest.fixture(scope="module")
def demo():
    return MarianModel.load(DEMO)


def stream(model, target):
    return list(model.stream(TranslationRequest(SourceSentence(0, "en", TEXT), target)))


@pytest.mark.parametrize(
    ("target", "code"),
    [
        ("zh", "cmn_Hans"), ("zh-TW", "cmn_Hant"), ("zh_TW", "cmn_Hant"), ("zh-hant", "cmn_Hant"), ("zh-HK", "cmn_Hant"),
        ("zh-CN", "cmn_Hans"), ("zh-Hans", "cmn_Hans"), ("cmn-Hant", "cmn_Hant"), ("sr-Latn", "srp_Latn"), ("sr-Cyrl", "srp_Cyrl"),
        ("sr", "srp_Cyrl"), ("de", "deu"), ("de-AT", "deu"), ("de-Latn", "deu"), ("pt-BR", "pt_br"), ("pt-PT", "pt"), ("pt", "pt"),
    ],
)  # fmt: skip
def test_the_target_code_of_a_multilingual_model_names_the_script(target, code):
    assert choose_code(target, BOTH) == code


def test_a_code_in_another_script_is_used_if_it_can_be_converted():
    assert choose_code("zh-TW", ["cmn_Hans", "deu"]) == "cmn_Hans"
    assert choose_code("zh-CN", ["deu", "zho"]) == "zho"
    assert choose_code("yue-Hant", ["yue_Hans", "yue_Hant"]) == "yue_Hant"
    assert choose_code("pt-BR", ["deu", "pob", "por"]) == "pob"
    assert choose_code("pt-BR", ["deu", "por"]) == "por"
    assert choose_code("sh", ["bos_Latn", "hrv", "srp_Cyrl", "srp_Latn"]) == "srp_Latn"


@pytest.mark.parametrize(
    ("target", "codes", "message"),
    [
        ("sr-Latn", ["srp_Cyrl", "deu"], r"does not write 'sr' in the script Latn, as 'sr-Latn' asks; .* it has srp_Cyrl: choose"),
        ("zh-Latn", ["cmn_Hans"], r"does not write 'zh' in the script Latn"),
        ("ja-Hant", ["jpn", "cmn_Hant"], r"does not write 'ja' in the script Hant"),
        ("yue-Hant", ["cmn_Hant"], r"does not translate into 'yue-Hant'; its targets are cmn_Hant"),
    ],
)  # fmt: skip
def test_a_script_that_a_multilingual_model_does_not_have_is_refused(target, codes, message):
    with pytest.raises(UsageError, match=message):
        choose_code(target, codes)


def test_a_script_that_a_bilingual_model_does_not_write_is_refused(tmp_path):
    for language, fine, refused in (
        ("srp_Latn", "sr-Latn", "sr-Cyrl"),
        ("srp", "sr-Cyrl", "sr-Latn"),
        ("eng", "en-US", "en-Cyrl"),
    ):
        model = MarianModel.load(tiny_with(tmp_path / language, "tokenizer_config.json", {"target_lang": language}))
        assert model.target_code(fine) is None
        assert model.conversion(fine) is None
        with pytest.raises(UsageError, match=r"only Chinese can be converted \(to Hans or Hant\); give --target"):
            model.check_languages("en", refused)


@pytest.mark.parametrize("target", ["zh-TW", "zh_TW", "zh-Hant", "zh-HK"])
def test_a_model_that_writes_simplified_gives_traditional(demo, target):
    plain, found = stream(demo, "zh"), stream(demo, target)
    simplified, text = translated(plain), translated(found)
    tag = language_tag(target)
    assert text == conversion("Hant", tag.region)(simplified)
    assert text != simplified
    # One text per token, up to its end: only the characters and the language differ.
    same = [replace(event, text="", language="") for event in found]
    assert same == [replace(event, text="", language="") for event in plain]
    assert [len(event.text) for event in found] == [len(event.text) for event in plain]
    assert all(text.startswith(event.text) for event in found)
    assert found[-2].text == text
    assert {event.language for event in found} == {target}
    assert demo.translate(TEXT, target=target) == text


def test_simplified_is_as_the_model_writes_it(demo):
    plain = stream(demo, "zh")
    for target in ("zh-CN", "zh-Hans"):
        assert [replace(event, language="zh") for event in stream(demo, target)] == plain


def test_the_second_of_two_models_decides_the_script(demo):
    both = PivotTranslator(MarianModel.load(ROOT / "models" / "demo" / "nmt-zh-en"), demo, "en")
    sentence = SourceSentence(0, "zh", "我想买两张票。火车从哪里出发？")
    plain, found = (translated(both.stream(TranslationRequest(sentence, target))) for target in ("zh", "zh-TW"))
    assert found == conversion("Hant")(plain) != plain


def test_a_models_own_traditional_is_left_alone(tmp_path):
    model = MarianModel.load(tiny_with(tmp_path, "tokenizer_config.json", {"target_lang": "zho_Hant"}))
    assert model.conversion("zh-TW") is None
    assert model.conversion("zh-CN") is not None
    model.tokenizer.target_codes = ["cmn_Hans", "cmn_Hant"]
    assert model.conversion("zh-TW") is None
    model.tokenizer.target_codes = ["cmn_Hans"]
    assert model.conversion("zh-TW") is not None


def events_of(texts):
    """The events of a translation whose text is each of ``texts`` in turn; at last it ends."""
    last = texts[-1] if texts else ""
    ended = TargetText(0, "zh", last, len(last), complete=True)
    return [*(TargetText(0, "zh", text) for text in texts), ended, Translation(0, "zh", last)]


@given(TEXTS.filter(bool), st.lists(st.integers(1, 4), min_size=1))
def test_each_text_is_the_beginning_of_the_converted_whole(text, sizes):
    ends = [end for end in accumulate(sizes * len(text)) if end < len(text)]
    given = events_of([*(text[:end] for end in ends), text])
    converted = conversion("Hant")(text)
    assert list(rewritten(given, conversion("Hant"))) == [
        replace(event, text=converted[: len(event.text)]) for event in given
    ]


def test_texts_come_before_the_sentence_ends():
    handed: list[str] = []

    def watched():
        for event in events_of(["今天", "今天出", "今天出发", "今天出发，", "今天出发，理"]):
            handed.append(event.text)
            yield event

    found = rewritten(watched(), conversion("Hant"))
    assert [next(found).text for _ in range(4)] == ["今天", "今天出", "今天出發", "今天出發，"]
    assert handed == ["今天", "今天出", "今天出发", "今天出发，"]
    assert [one.text for one in found] == ["今天出發，理"] * 3


@given(st.lists(st.tuples(TEXTS, st.integers(0, 5)), max_size=6))
def test_text_that_takes_back_some_is_converted_too(changes):
    texts = list(
        accumulate(changes, lambda before, change: before[: max(0, len(before) - change[1])] + change[0], initial="")
    )
    given = events_of(texts)
    *_, whole, end = rewritten(given, conversion("Hant"))
    assert whole.complete
    assert whole.steady_text == whole.text == conversion("Hant")(texts[-1]) == end.text


def test_a_character_before_withdrawn_text_is_converted_again():
    found = rewritten(events_of(["发", "发现，", "发型。"]), conversion("Hant"))
    assert [each.text for each in found] == ["發", "發現，", "髮型。", "髮型。", "髮型。"]


@pytest.mark.parametrize(("asked", "kept"), [("zh_TW", "zh-TW"), ("zh-hant", "zh-Hant"), ("zh-HK", "zh-HK")])
def test_the_configuration_keeps_the_script_and_the_model_stays(asked, kept, tmp_path):
    config = load_config("demo-zh")
    assert with_overrides(config, targets=(asked,)).languages.targets == (kept,)
    parser = ArgumentParser()
    add_model_arguments(parser)
    other = configured(parser.parse_args(["--config", "demo-zh", "--target", asked]))
    assert (other.languages.targets, other.nmt) == ((kept,), config.nmt)
    assert route("en", asked) == route("en", "zh")
    path = tmp_path / "my.toml"
    path.write_text(f'[languages]\ntarget = "{asked}"\n')
    assert load_config(path).languages.targets == (kept,)


@pytest.mark.parametrize(
    ("target", "written", "converts"),
    [
        ("zh", None, False),
        ("zh-Hant", None, True),
        ("zh-TW", "Hant", False),
        ("zh-TW", "Hans", True),
        ("zh-Hans", None, True),  # a model may write mixed scripts
        ("yue-Hant", None, False),  # as it is usually written
        ("yue-Hans", None, True),
        ("sr-Latn", None, False),
    ],
)
def test_a_script_is_converted_if_the_model_may_write_another(target, written, converts):
    assert (needed_conversion(target, written) is not None) is converts
