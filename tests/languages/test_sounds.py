"""Captions of sounds in many languages."""

from pipeline.languages.sounds import _TABLE, sound_label


def test_the_caption_is_in_the_language_and_script():
    assert sound_label("music", "en") == "[music]"
    assert sound_label("singing", "pt-BR") == "[cantando]"
    codes = ("zh", "zh-CN", "zh-TW", "nb", "sr", "sr-Latn")
    labels = ["[音乐]", "[音乐]", "[音樂]", "[musikk]", "[музика]", "[muzika]"]
    assert [sound_label("music", code) for code in codes] == labels
    assert sound_label("music", "xh") == "[♪]"


def test_each_row_of_the_table_is_whole_and_the_only_one_of_its_language():
    rows = [line.split("\t") for line in _TABLE.read_text("utf-8").splitlines()]
    assert len({row[0] for row in rows}) == len(rows) > 40
    assert all(len(row) == 3 and all(cell.strip() == cell != "" for cell in row) for row in rows)
