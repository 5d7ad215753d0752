"""Language tags: what clients write, their script and region, the nearest of several."""

import gc
import itertools
import subprocess
import sys
import tracemalloc

import pytest

from pipeline.errors import UsageError
from pipeline.languages.tags import (
    _PLAIN,
    LanguageTag,
    _parsed,
    confusable,
    english_name,
    is_tag_of,
    known_language,
    language_tag,
    named_language,
    nearest,
    normalized_code,
    same_text,
    sets_sentences_apart,
    spaced,
)


@pytest.mark.parametrize(
    ("code", "normalized", "tag"),
    [
        ("zh", "zh", LanguageTag("zh")),
        ("zh-TW", "zh-TW", LanguageTag("zh", "Hant", "TW")),
        ("zh_tw", "zh-TW", LanguageTag("zh", "Hant", "TW")),
        ("ZH-HK", "zh-HK", LanguageTag("zh", "Hant", "HK")),
        ("zh-SG", "zh-SG", LanguageTag("zh", "Hans", "SG")),
        ("zh-CN", "zh-CN", LanguageTag("zh", "Hans", "CN")),
        ("zh_Hans_TW", "zh-Hans-TW", LanguageTag("zh", "Hans", "TW")),
        ("zh-hant-tw", "zh-Hant-TW", LanguageTag("zh", "Hant", "TW")),
        ("cmn_Hant", "zh-Hant", LanguageTag("zh", "Hant")),
        ("chi", "zh", LanguageTag("zh")),
        ("yue", "yue", LanguageTag("yue")),
        ("en-US", "en-US", LanguageTag("en", None, "US")),
        ("EN", "en", LanguageTag("en")),
        ("eng", "en", LanguageTag("en")),
        (" en ", "en", LanguageTag("en")),
        ("srp_Latn", "sr-Latn", LanguageTag("sr", "Latn")),
        ("sh", "sr-Latn", LanguageTag("sr", "Latn")),
        ("pt-BR", "pt-BR", LanguageTag("pt", None, "BR")),
        ("pob", "pt-BR", LanguageTag("pt", None, "BR")),
        ("pb", "pt-BR", LanguageTag("pt", None, "BR")),
        ("zt", "zh-Hant", LanguageTag("zh", "Hant")),
        ("es-419", "es-419", LanguageTag("es", None, "419")),
        ("nb", "nb", LanguageTag("no")),
        ("nob", "nb", LanguageTag("no")),
        ("nn", "nn", LanguageTag("nn")),
        ("fil", "fil", LanguageTag("tl")),
        ("tl", "fil", LanguageTag("tl")),
        ("iw", "he", LanguageTag("he")),
        ("in", "id", LanguageTag("id")),
        ("jw", "jv", LanguageTag("jv")),
        ("jap", "ja", LanguageTag("ja")),
    ],
)
def test_a_tag_is_understood_as_clients_write_it(code, normalized, tag):
    assert normalized_code(code) == normalized
    assert language_tag(code) == language_tag(normalized) == tag


@pytest.mark.parametrize(
    "code",
    [
        "",
        "zh/..",
        "zh\x1b",
        "zh-",
        "1a",
        "xx",
        "auto",
        "en-XQ9",
        "en-x-any",
        "en-u-ca-buddhist",
        "x-any",
        "ROMANCE",
        "en_el_es_fi",
    ],
)
def test_what_is_no_tag_is_refused_and_stays_as_it_is_in_a_models_files(code):
    with pytest.raises(UsageError, match="is not a language code; give one of BCP 47, such as en, zh-Hant or pt-BR"):
        normalized_code(code)
    assert language_tag(code) == LanguageTag(code)
    assert known_language(code) is None


LONG = ("en-" + "-".join(f"{number:05d}" for number in range(170_000)), "q" * 1_000_000, " " * 1_000_000, "(" * 100_000)


@pytest.mark.parametrize("text", [*LONG, "en" + " " * 100])
def test_long_text_is_no_language_and_is_not_parsed(text):
    with pytest.raises(UsageError) as error:
        normalized_code(text)
    assert len(str(error.value)) < 200
    assert (known_language(text), named_language(text), same_text(text, ["en"])) == (None, None, None)
    assert language_tag(text) == LanguageTag(text)
    assert not nearest(text, ["en", "pt"])


@pytest.mark.slow
def test_codes_that_clients_write_take_no_memory_for_ever():
    languages, regions = ("en", "fr", "es", "de", "it", "nl", "sv", "da"), [f"{number:03d}" for number in range(1, 80)]

    def look_up(scripts: tuple[str, ...]) -> None:
        for language, script, region in itertools.product(languages, scripts, regions):
            nearest(f"{language}-{script}-{region}", ["pt", f"{language}-001", language])

    look_up(("Latn", "Cyrl"))
    gc.collect()
    tracemalloc.start()
    try:
        look_up(("Grek", "Arab"))
        for number in range(20):
            same_text(f"{number}{LONG[1]}", ["en", "pt"])
        gc.collect()
        assert tracemalloc.get_traced_memory()[0] < 1 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("code", ["en_el", "fi_nb_no_nn_ru_sv_en"])
def test_a_model_of_several_source_languages_is_not_taken_for_the_first(code):
    assert known_language(code) is None
    assert [known_language(one) for one in ("zho_Hans", "pt_BR", "nob", "yue")] == ["zh", "pt", "no", "yue"]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("EN", "en"),
        ("zh-CN", "zh-CN"),
        ("Chinese", "zh"),
        ("Simplified Chinese", "zh"),
        ("english (US)", "en"),
        ("Greek", "el"),
        ("Malay", "ms"),
        ("cat", None),
        ("Source", None),
        ("Notes", None),
        ("猫", None),
        ("", None),
    ],
)
def test_a_language_is_known_by_its_english_name(text, code):
    assert named_language(text) == code


def test_a_language_has_a_usual_script():
    assert [language_tag(code).usual_script for code in ("en", "ru", "zh", "yue", "sr", "srp_Latn", "und", "?")] == [
        "Latn", "Cyrl", "Hans", "Hant", "Cyrl", "Latn", "Latn", "Latn",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("wanted", "offered", "found"),
    [
        ("pt-BR", ["por", "pob"], "pob"),
        ("pt-PT", ["pob", "por"], "por"),
        ("pt", ["pob", "por"], "por"),
        ("es-MX", ["es_ES", "es_419", "spa"], "es_419"),
        ("zh", ["cmn", "cmn_Hans", "cmn_Hant"], "cmn_Hans"),
        ("zh-HK", ["zh", "zh-TW"], "zh-TW"),
        ("nb", ["nno", "nob"], "nob"),
        ("iw", ["de", "heb"], "heb"),
        ("fil", ["tgl"], "tgl"),
        ("en", ["en-GB", "eng"], "eng"),
        ("zh-TW", ["zh_TW", "zh-TW"], "zh-TW"),  # as it is written, before another way to write it
        ("und-US", ["en", "de"], None),
    ],
)
def test_the_nearest_tag_is_chosen(wanted, offered, found):
    assert next(iter(nearest(wanted, offered)), None) == found


def test_readers_of_one_script_are_not_offered_another():
    assert same_text("zh-CN", ["en", "zh"]) == "zh"
    assert same_text("zh-TW", ["en", "zh"]) is None
    assert same_text("zh-TW", ["zh", "zh-Hant"]) == "zh-Hant"
    assert same_text("EN", ["en-GB"]) == "en-GB"


@pytest.mark.slow
def test_common_codes_need_no_look_up():
    """langcodes takes longer to import than this project's options."""
    for code in _PLAIN:
        parsed = _parsed(code)
        assert parsed is not None
        assert parsed.to_tag() == code
    program = "import sys; from pipeline import *; load_models(load_config('demo')); print('langcodes' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True).stdout == "False\n"


@pytest.mark.parametrize(
    ("language", "words", "sentences"),
    [("en", True, True), ("zh-TW", False, False), ("yue", False, False), ("ja", False, False), ("ko", True, True)]
    + [(code, False, True) for code in ("th", "lo", "km", "my")],
)
def test_whether_blanks_are_between_words_and_between_sentences(language, words, sentences):
    assert (spaced(language), sets_sentences_apart(language)) == (words, sentences)


def test_a_language_has_a_name_in_english_or_its_code():
    names = [english_name(code) for code in ("pt-BR", "zh_TW", "nb", "xx")]
    assert names == ["Portuguese", "Chinese", "Norwegian", "xx"]


@pytest.mark.parametrize("tag", ["eng", "en-US", "de,en", "de; eng", "ger/eng", "de en"])
def test_a_containers_tag_may_name_several_languages(tag):
    assert is_tag_of(tag, "en")
    assert not is_tag_of(tag, "fr")
    assert not is_tag_of("", "en")


@pytest.mark.parametrize(
    ("first", "second", "alike"),
    [("no", "da", True), ("sr", "hr", True), ("gl", "es", True), ("es", "pt", False), ("en", "de", False)],
)
def test_some_languages_are_taken_for_each_other(first, second, alike):
    assert confusable(first, second) == confusable(second, first) == alike
