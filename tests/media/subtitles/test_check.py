"""The checker finds what breaks the rules, and nothing in what this package writes at an easy pace."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.errors import UsageError
from pipeline.media.subtitles.check import ReadCue, _languages, both_languages, read_cues, violations
from pipeline.media.subtitles.rules import PRESETS, SubtitleRules

DEFAULT = SubtitleRules()


def srt_of(*cues: tuple[int, int, str]) -> str:
    """SubRip with these times in ms and texts."""
    stamp = lambda ms: f"{ms // 3_600_000:02}:{ms // 60_000 % 60:02}:{ms // 1000 % 60:02},{ms % 1000:03}"  # noqa: E731
    return "\n".join(f"{n}\n{stamp(a)} --> {stamp(b)}\n{text}\n" for n, (a, b, text) in enumerate(cues, 1))


def found(text: str, rules: SubtitleRules = DEFAULT) -> list[tuple[int, str]]:
    return [(each.cue.line, each.what) for each in violations(read_cues(text), rules)]


@pytest.mark.parametrize(
    ("cues", "what"),
    [
        ([(0, 2_000, "Good morning.")], []),
        ([(0, 800, "Yes.")], ["lasts 800 ms; 833 to 7000 ms are allowed"]),
        ([(0, 7_001, "Yes.")], ["lasts 7001 ms; 833 to 7000 ms are allowed"]),
        ([(0, 6_000, "a b\nc d\ne f")], ["3 lines; 2 are allowed"]),
        ([(0, 6_000, "a" * 43)], ["a line of 43 characters; 42 are allowed"]),
        ([(0, 6_000, "字" * 17)], ["a line of 17 characters; 16 are allowed"]),
        ([(0, 6_000, "の" * 14)], ["a line of 14 characters; 13 are allowed"]),
        ([(0, 2_000, "a" * 40)], ["20.0 characters a second; 17.0 are allowed"]),
        ([(0, 1_000, "字" * 10)], ["10.0 characters a second; 9.0 are allowed"]),
        ([(0, 2_000, "の" * 10)], ["5.0 characters a second; 4.0 are allowed"]),
        ([(0, 1_000, "Yes."), (1_000, 2_000, "No.")], ["0 ms after the one before; at least 83 ms are asked"]),
        ([(0, 1_000, "Yes."), (990, 2_000, "No.")], ["begins 10 ms before the one before it ends"]),
        ([(0, 1_000, "Yes."), (1_083, 2_000, "Yes.")], ["repeats the one before"]),
        ([(0, 1_000, "Yes."), (2_000, 3_000, "Yes.")], []),
    ],
)
def test_each_rule(cues, what):
    assert [said for _, said in found(srt_of(*cues))] == what


def test_markup_and_invisible_characters_do_not_count():
    text = "<i>" + "a" * 20 + "</i> {\\an8}\u202b" + "b" * 20 + "\u202c\u2060"
    assert found(srt_of((0, 3_000, text))) == []
    vtt = "WEBVTT\n\nNOTE a note\n\nfirst\n00:01.000 --> 00:03.000 line:0\n&lt;b&gt; &amp; <00:02.000><c.source>c</c>\n"
    (cue,) = read_cues(vtt)
    assert (cue.line, cue.start_ms, cue.end_ms, cue.lines) == (6, 1_000, 3_000, ("<b> & c",))


def test_each_language_of_a_bilingual_file_has_its_own_lines_and_speed():
    rules = SubtitleRules(bilingual=True)
    both = srt_of((0, 3_000, "去柏林的火车几点出发？\n我们走吧。\nWhen does the train to Berlin leave?\nLet us go."))
    assert found(both, rules) == []
    assert next(what for _, what in found(both)) == "4 lines; 2 are allowed"
    latin = srt_of((0, 2_000, "Wann fährt der Zug?\nLos.\n" + "a" * 40))
    assert [what for _, what in found(latin, rules)] == ["20.0 characters a second; 17.0 are allowed"]


def test_two_cues_with_the_same_times_are_the_languages_of_one_subtitle():
    times = (0, 3_000), (3_100, 6_100)
    text = srt_of(*((*each, text) for each in times for text in ("a" * 43, "b\nb\nb")))
    cues = both_languages(read_cues(text))
    assert [(cue.line, cue.lines, cue.second_at) for cue in cues] == [
        (2, ("a" * 43, "b", "b", "b"), 1),
        (12, ("a" * 43, "b", "b", "b"), 1),
    ]
    assert [each.what for each in violations(cues[:1], SubtitleRules(bilingual=True))] == [
        "a line of 43 characters; 42 are allowed",
        "3 lines; 2 are allowed",
    ]


def test_of_three_cues_with_the_same_times_two_are_a_subtitle():
    cues = both_languages(read_cues(srt_of((0, 3_000, "a"), (0, 3_000, "b"), (0, 3_000, "c"))))
    assert [cue.lines for cue in cues] == [("a", "b"), ("c",)]


@pytest.mark.parametrize(
    ("lines", "first", "second"),
    [
        (("字", "字", "a"), ("字", "字"), ("a",)),  # where the script changes first
        (("字", "a", "字"), ("字",), ("a", "字")),
        (("a" * 30, "b" * 10, "c" * 10), ("a" * 30,), ("b" * 10, "c" * 10)),  # where both are read in the least time
        (("a",), ("a",), ()),
        ((), (), ()),
    ],
)
def test_the_languages_of_a_subtitle_are_told_apart(lines, first, second):
    assert _languages(ReadCue(1, 0, 3_000, lines), DEFAULT) == [first, second]


@pytest.mark.parametrize(
    ("rules", "conflict"),
    [
        ({"min_duration_ms": 7_000, "max_duration_ms": 7_000}, None),
        ({"min_duration_ms": 7_001, "max_duration_ms": 7_000}, "min_duration_ms (7001) must not exceed"),
        ({"gap_ms": 832}, None),
        ({"gap_ms": 833}, "gap_ms (833) must be less than min_duration_ms (833)"),
        ({"line_columns": 60}, "2 lines of line_columns (60) take 7059 ms"),
        ({"cjk_characters_per_second": 4.0}, "2 lines of line_cjk_characters (16) take 8000 ms"),
        ({"japanese_characters_per_second": 3.0}, "2 lines of line_japanese_characters (13) take 8667 ms"),
        ({"max_lines": 4, "line_columns": 29, "line_cjk_characters": 15, "line_japanese_characters": 7}, None),
    ],
)
def test_rules_that_contradict_each_other_are_named(rules, conflict):
    said = list(SubtitleRules(**rules).conflicts())
    assert [each.startswith(conflict or "") for each in said] == [True] * (conflict is not None)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "it has no subtitles"),
        ("1\n00:00:01,000 -> 00:00:02,000\nYes.\n", "it has no subtitles"),
        ("1\n00:00:01 --> 00:00:02\nYes.\n", "line 2 is '00:00:01 --> 00:00:02'; expected times such as"),
    ],
)
def test_what_is_no_subtitle_file(text, said):
    with pytest.raises(UsageError) as error:
        read_cues(text)
    assert said in str(error.value)


@given(st.text(st.sampled_from("0123456789:,.->\n\r\ufeff WEBVTTa<{\\}&;字の")), st.booleans())
def test_any_text_is_read_or_refused(text, bilingual):
    try:
        cues = read_cues(text)
    except UsageError:
        return
    list(violations(both_languages(cues) if bilingual else cues, SubtitleRules(bilingual=bilingual)))


def test_presets_are_valid_rules_and_netflix_is_the_default():
    assert SubtitleRules(**PRESETS["netflix"]) == DEFAULT
    text = srt_of((0, 3_000, "字" * 15))
    assert found(text) == []
    assert found(text, SubtitleRules(**PRESETS["broadcast-zh"])) == [(2, "a line of 15 characters; 14 are allowed")]
    assert [what for _, what in found(srt_of((0, 6_000, "a" * 40)), SubtitleRules(**PRESETS["bbc"]))] == [
        "a line of 40 characters; 37 are allowed"
    ]
