"""The languages of a run: what is spoken, what is translated, and from what."""

import pytest

from pipeline.errors import UsageError
from pipeline.languages.options import _ANY, MOST_SPOKEN, LanguageConfig


@pytest.mark.parametrize(
    ("source", "targets", "spoken", "only", "conversation", "mixed"),
    [
        ("en", ("zh",), ("en",), "en", False, ()),
        ("en", ("zh", "en"), ("en",), "en", False, ()),
        ("en,pt", ("zh",), ("en", "pt"), None, False, ("zh",)),
        ("auto", ("en", "zh"), ("en", "zh"), None, True, ()),
        ("auto", ("en", "zh", "pt"), ("en", "zh", "pt"), None, True, ("en", "zh", "pt")),
        ("auto", ("pt-BR",), ("pt-BR", *(code for code in _ANY if code != "pt")), None, False, ("pt-BR",)),
    ],
)
def test_what_is_spoken_and_whose_translators_are_several(source, targets, spoken, only, conversation, mixed):
    languages = LanguageConfig(source, targets)
    assert (languages.spoken, languages.only_spoken) == (spoken, only)
    assert (languages.conversation, languages.mixed) == (conversation, mixed)


@pytest.mark.parametrize(
    ("source", "targets", "translated", "pairs"),
    [
        ("en", ("zh", "en-GB"), ("zh",), [("en", "zh")]),
        ("en", ("en-GB",), (), [("en", "en-GB")]),  # the transcript
        ("en,pt", ("en",), ("en",), [("pt", "en")]),  # what is said in it stays as it is
        ("auto", ("en", "zh"), ("en", "zh"), [("zh", "en")]),
    ],
)
def test_what_is_translated_and_from_what(source, targets, translated, pairs):
    languages = LanguageConfig(source, targets)
    assert languages.translated == translated
    assert [languages.is_spoken(target) for target in targets] == [target not in translated for target in targets]
    assert languages.pairs(targets[-1] if source == "en" and not translated else targets[0]) == pairs


def test_so_many_languages_may_be_named_as_spoken():
    assert len(LanguageConfig(",".join(_ANY[:MOST_SPOKEN]), ("zh",)).spoken) == MOST_SPOKEN
    with pytest.raises(UsageError, match=f"{MOST_SPOKEN + 1} languages are named as spoken, and {MOST_SPOKEN} may be"):
        LanguageConfig(",".join(_ANY[: MOST_SPOKEN + 1]), ("zh",))


@pytest.mark.parametrize(
    ("source", "targets", "said"),
    [
        ("en", ("zh-TW", "zh-CN"), None),  # one language in two scripts
        ("en", ("zh-TW", "zh_tw"), "the target 'zh_tw' is given twice, first as 'zh-TW'"),
        ("en", ("zh", "zh"), "the target 'zh' is given twice"),
        ("en,en-GB", ("zh",), "the spoken language 'en-GB' is given twice"),
        ("en", (), "no target language is given"),
        (
            "auto",
            ("zh-TW", "zh-CN"),
            "give different languages as targets, such as en and zh, instead of zh-TW and zh-CN",
        ),
    ],
)
def test_languages_that_contradict_each_other_are_refused(source, targets, said):
    if said is None:
        assert LanguageConfig(source, targets).targets == targets
        return
    with pytest.raises(UsageError) as error:
        LanguageConfig(source, targets)
    assert said in str(error.value)
