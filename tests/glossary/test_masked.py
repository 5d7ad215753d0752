"""Lists of words to mask: what a file means, and that its mistakes are named by line."""

import pytest

from pipeline.errors import ConfigError
from pipeline.glossary.masked import load_masked


def test_words_belong_to_the_language_above_them(tmp_path):
    path = tmp_path / "masked.txt"
    path.write_text("\ufeffdarn\n\n# mild\n[EN]\n  go   to hell \ndarn\ndarn\n[zho_Hant]\n討厭\n", "utf-8")
    assert load_masked(str(path)) == (("", "darn"), ("en", "go to hell"), ("en", "darn"), ("zh-Hant", "討厭"))
    path.write_text("", "utf-8")
    assert load_masked(str(path)) == load_masked(None) == ()


def test_mistakes_are_named_by_line(tmp_path):
    path = tmp_path / "masked.txt"
    with pytest.raises(ConfigError, match=r"cannot read the list of masked words .*masked\.txt: No such file"):
        load_masked(str(path))
    path.write_bytes("darn\ncafé".encode("latin-1"))
    with pytest.raises(ConfigError, match=r"list of masked words .* is not UTF-8: line 2; save it as UTF-8"):
        load_masked(str(path))
    path.write_text(f"***\n[klingonish]\nok\na\u202eb\n{'a' * 101}\n", "utf-8")
    with pytest.raises(ConfigError) as caught:
        load_masked(str(path))
    said = str(caught.value)
    assert 'line 1: "***" has no letters or digits; line 2: ' in said
    assert "line 4: " in said
    assert "control or invisible characters" in said
    assert "line 5: " in said
    assert "\n" not in said
