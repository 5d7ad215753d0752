"""Language codes: their script and region, normalisation, and tags for file names."""

from __future__ import annotations

import pytest

from pipeline.languages import LanguageTag, file_tag, language_tag, normalized_code


@pytest.mark.parametrize(
    ("code", "tag"),
    [
        ("zh", LanguageTag("zh")),
        ("zh-TW", LanguageTag("zh", "Hant", "TW")),
        ("zh_tw", LanguageTag("zh", "Hant", "TW")),
        ("ZH-HK", LanguageTag("zh", "Hant", "HK")),
        ("zh-SG", LanguageTag("zh", "Hans", "SG")),
        ("zh_Hans_TW", LanguageTag("zh", "Hans", "TW")),
        ("cmn_Hant", LanguageTag("zh", "Hant")),
        ("yue", LanguageTag("yue")),
        ("srp_Latn", LanguageTag("sr", "Latn")),
        ("pt-BR", LanguageTag("pt", None, "BR")),
        ("es-419", LanguageTag("es", None, "419")),
        ("en_el_es_fi", LanguageTag("en_el_es_fi")),
        ("chinese", LanguageTag("chinese")),
        ("", LanguageTag("")),
    ],
)
def test_a_code_is_parsed_into_language_script_and_region(code: str, tag: LanguageTag) -> None:
    assert language_tag(code) == tag


@pytest.mark.parametrize(
    ("code", "normalized"),
    [("zh_TW", "zh-TW"), ("zh-hant", "zh-Hant"), ("ZH_hant_hk", "zh-Hant-HK"), ("zho", "zho"), ("ROMANCE", "ROMANCE")],
)
def test_a_code_with_script_or_region_is_normalized(code: str, normalized: str) -> None:
    assert normalized_code(code) == normalized


def test_a_language_has_a_usual_script() -> None:
    assert [language_tag(code).usual_script for code in ("en", "ru", "zh", "yue", "sr", "srp_Latn", "und")] == [
        "Latn", "Cyrl", "Hans", "Hant", "Cyrl", "Latn", "Latn",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("zh", "zh"),
        ("ZH", "zh"),
        ("eng", "en"),
        ("zho_Hant", "zh-Hant"),
        ("cmn_hans", "zh-Hans"),
        ("zh-tw", "zh-TW"),
        ("zh-Hant-HK", "zh-Hant-HK"),
        ("pt_BR", "pt-BR"),
        ("es-419", "es-419"),
        ("yue", "yue"),
        ("", None),
        ("zh/..", None),
        ("zh\x1b", None),
        ("zh-", None),
        ("1a", None),
    ],
)
def test_the_tag_for_a_file_name_is_the_one_players_expect(code: str, expected: str | None) -> None:
    assert file_tag(code) == expected
