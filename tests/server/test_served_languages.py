"""Which configuration serves what a client asks for."""

import pytest

from pipeline import Models, PipelineConfig
from pipeline.errors import UsageError
from pipeline.languages.options import LanguageConfig
from pipeline.server.chains import Chain
from pipeline.server.languages.served import ServedLanguages, narrowed
from pipeline.server.protocol import ProtocolError

EN = LanguageConfig("en", ("zh", "de"))
ZH = LanguageConfig("zh", ("en",))
BOTH = LanguageConfig("auto", ("en", "fr"))
SERVED = ServedLanguages((EN, ZH, BOTH))


@pytest.mark.parametrize(
    ("source", "targets", "found"),
    [
        (None, [], EN),
        ("en", [], EN),
        ("EN-us", ["de"], EN),
        ("zh", [], ZH),
        ("cmn", ["en"], ZH),
        ("auto", [], BOTH),
        ("auto", ["en", "fr"], BOTH),
        ("fr", [], BOTH),  # by the configuration that tells it from English
        ("fr", ["en"], BOTH),
        (None, ["de"], EN),
        (None, ["de", "zh"], EN),
        (None, ["en"], ZH),
        ("en", ["en"], EN),
        (None, ["zh", "en"], EN),
        ("fr", ["fr", "en"], BOTH),
        (None, ["fr"], BOTH),
        ("eng", ["ZH-cn"], EN),
        ("en", ["zh-TW", "ger"], EN),
    ],
)
def test_the_first_configuration_with_these_languages_is_found(source, targets, found):
    assert SERVED.configured[SERVED.find(source, targets)] is found


def test_a_configuration_for_several_languages_is_found_by_each_of_them():
    some, other = LanguageConfig("en,pt", ("en", "de")), LanguageConfig("auto", ("it",))
    served = ServedLanguages((ZH, some, other))
    for source, targets, found in [
        ("en", [], 1), ("pt-BR", ["en"], 1), ("en,pt", [], 1), (None, ["de"], 1), ("es", [], 2), ("auto", ["it"], 2),
    ]:  # fmt: skip
        assert served.find(source, targets) == found
    assert narrowed(some, ["en"]) == LanguageConfig("en,pt", ("en",))
    assert served.described() == "zh into en, en,pt into en and de, any language into it"
    assert narrowed(LanguageConfig("auto", ("en", "pt", "de")), ["de", "en"]).targets == ("en", "de")


def test_a_configuration_that_names_a_target_comes_before_one_that_has_it_in_another_script():
    served = ServedLanguages((EN, LanguageConfig("fr", ("zh-TW",))))
    assert [served.find(None, [target]) for target in ("zh", "zh-TW", "zh-HK")] == [0, 1, 0]


@pytest.mark.parametrize(
    ("languages", "source", "targets", "code", "message"),
    [
        (SERVED, "it", [], "unknown-source", 'does not recognise "it"; it recognises en, zh, fr, auto'),
        (ServedLanguages((EN,)), "auto", [], "unknown-source", 'does not recognise "auto"; it recognises en'),
        (ServedLanguages((EN,)), None, ["it"], "unknown-target", 'does not translate into "it"; choose from zh, de'),
        (
            SERVED,
            None,
            ["zh", "it"],
            "unknown-target",
            'into "it"; it translates en into zh and de, zh into en, en and fr',
        ),
        (SERVED, "zh", ["de"], "unknown-target", 'does not translate "zh" into "de"; it translates en into zh and de'),
        (SERVED, None, ["de", "fr"], "unknown-target", 'into "de, fr" at once; it translates'),
        (SERVED, None, ["it"] * 33, "unknown-target", "33 targets; at most 32 may be named"),
        (SERVED, "i" * 999, [], "unknown-source", f'recognise "{"i" * 59}…; it recognises'),
    ],
)
def test_errors_say_what_is_offered(languages, source, targets, code, message):
    with pytest.raises(ProtocolError) as error:
        languages.find(source, targets)
    assert error.value.code == code
    assert message in str(error.value)


def test_a_target_is_not_taken_for_the_language_that_is_spoken():
    """English speech for the target zh went to a recogniser of Chinese, and the answer was an empty text."""
    served = ServedLanguages(
        (LanguageConfig("en", ("pt",)), LanguageConfig("pt", ("en",)), LanguageConfig("zh", ("en",)))
    )
    with pytest.raises(ProtocolError, match='does not translate into "zh"; it translates en into pt') as error:
        served.find(None, ["zh"])
    assert error.value.code == "unknown-target"
    assert served.find("zh", ["zh"]) == 2
    assert ServedLanguages((LanguageConfig("zh", ("en",)),)).find(None, ["zh"]) == 0


def test_each_configuration_has_a_model_if_there_are_several():
    assert ServedLanguages((EN,)).models == {"speech-translation": None}
    assert SERVED.models == {
        "speech-translation": None,
        "speech-translation-en": "en",
        "speech-translation-zh": "zh",
        "speech-translation-auto": "auto",
    }


@pytest.mark.parametrize("second", [LanguageConfig("en", ("fr",)), LanguageConfig("eng", ("zh",))])
def test_a_spoken_language_has_one_configuration(second):
    with pytest.raises(UsageError, match=f"language '{second.source}'; name all targets in one of them"):
        ServedLanguages((EN, ZH, second))


def test_targets_are_narrowed_in_their_own_order():
    assert narrowed(EN, []) == EN
    assert narrowed(EN, ["de", "zh"]) == EN
    assert narrowed(EN, ["de"]) == LanguageConfig("en", ("de",))
    assert narrowed(EN, ["en-GB"]) == LanguageConfig("en", ("en-GB",))
    assert narrowed(EN, ["en", "de"]) == LanguageConfig("en", ("de", "en"))
    assert narrowed(BOTH, ["fr", "en"]) == BOTH
    with pytest.raises(ProtocolError, match="needs two languages of en, fr"):
        narrowed(BOTH, ["fr"])


def test_a_target_has_the_script_and_region_that_are_asked_for():
    assert narrowed(EN, ["DE", "zh_tw"]) == LanguageConfig("en", ("zh-TW", "de"))
    assert narrowed(BOTH, ["fra", "en-GB"]) == LanguageConfig("auto", ("en-GB", "fr"))
    assert ServedLanguages((EN, LanguageConfig("fr", ("zh-TW",)))).find(None, ["zh-TW"]) == 1
    with pytest.raises(ProtocolError, match='does not translate into "zh/.."; choose from zh, de'):
        ServedLanguages((EN,)).find(None, ["zh/.."])


class Picky:
    """A translator whose files name another pair."""

    def check_languages(self, source: str, target: str) -> None:
        raise UsageError(f"it does not translate {source} into {target}")


def test_the_model_of_a_configured_target_is_taken_and_one_for_another_script_is_checked():
    chain = Chain(PipelineConfig(EN), Models(None, translations={"zh": Picky(), "de": Picky()}))
    assert list(chain.narrowed(["zh"]).models.translations) == ["zh"]
    with pytest.raises(ProtocolError, match="en into zh-TW"):
        chain.narrowed(["zh-TW"])
