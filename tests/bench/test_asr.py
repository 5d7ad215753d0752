"""The recognition benchmark: error counts, withheld transcripts, and the peer."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

from pipeline.bench import __main__ as bench
from pipeline.bench.asr import Clip, Row, as_text
from pipeline.bench.play import segments_of
from pipeline.bench.quick_turns import Count, joined_clips
from pipeline.bench.words import edits, scored_units, spelt
from pipeline.core.vad.options import VadConfig
from pipeline.errors import UsageError
from pipeline.events import SAMPLE_RATE, Transcript
from tests.conftest import PHRASES, read_wav, spoken_texts, write_wav
from tests.core.vad.test_stage import cut


@pytest.mark.parametrize(
    ("digits", "words"),
    [
        ("0", "zero"), ("7", "seven"), ("13", "thirteen"), ("40", "forty"), ("45", "forty five"), ("212", "two hundred twelve"),
        ("1020", "one thousand twenty"), ("2000", "two thousand"), ("007", "zero zero seven"),
        ("55512", "five five five one two"),
    ],
)  # fmt: skip
def test_numbers_are_spelt(digits, words):
    assert spelt(digits) == words


def test_texts_are_split_into_units_without_case_and_punctuation():
    assert scored_units("Don't pay $1,250, please!", "en") == [
        "dont",
        "pay",
        "one",
        "thousand",
        "two",
        "hundred",
        "fifty",
        "please",
    ]
    assert scored_units("你好，ＡＢ 吗？", "zh") == ["你", "好", "a", "b", "吗"]
    assert scored_units("Où êtes-vous ?", "fr") == ["où", "êtes", "vous"]


def test_edits_are_substitutions_insertions_and_deletions():
    assert edits(["a", "b", "c"], ["a", "x", "c", "d"]) == 2
    assert edits([], ["a"]) == edits(["a"], []) == 1
    assert edits("kitten", "sitting") == 3


def test_a_row_counts_errors_and_right_transcripts_that_are_withheld():
    clip = Clip(Path("x.wav"), "We go home. It is late.", np.zeros(16_000, np.int16), [])
    found = [Transcript(0, 0, 1, "We go home.", "en"), Transcript(1, 1, 2, "It is late.", "en", rejected="uncertain")]
    row = Row("one way", lambda clip: found)
    row.score(clip, "en")
    assert (row.words, row.wrong, row.wrong_if_all) == (6, 3, 0)
    assert (row.transcripts, row.withheld, row.right_withheld) == (2, 1, 1)
    assert row.by_clip == {"x.wav": ["We go home.", "It is late. (uncertain)"]}
    assert re.search(r"one way +50\.0% +0\.0% +1 +1 ", as_text([row], [clip]))


@pytest.mark.slow
def test_the_command_compares_windows_hypotheses_and_the_peer(tmp_path, capsys):
    write_wav(tmp_path / "some.wav", read_wav(PHRASES)[: 16_000 * 8])
    (tmp_path / "some.txt").write_text(" ".join(spoken_texts()["phrases"][:2]))
    (tmp_path / "without.wav").write_bytes((tmp_path / "some.wav").read_bytes())
    arguments = ["asr", str(tmp_path), "--asr", "tiny.en", "--hypotheses", "1", "--windows", "10,30"]
    assert bench.run([*arguments, "--json", str(tmp_path / "out.json")]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("1 recordings, 16 words")
    rows = {row["name"]: row for row in json.loads((tmp_path / "out.json").read_text())}
    assert list(rows) == [
        "faster-whisper, 30 s, 1 hypotheses, whole recordings",
        "faster-whisper, 30 s, 1 hypotheses, segments",
        "10 s window, 1 hypotheses",
        "30 s window, 1 hypotheses",
        "packed to 28 s, 1 hypotheses",
    ]
    for name, row in rows.items():
        assert name in printed
        assert row["wrong"] <= 3
        assert row["seconds"] > 0
        assert len(row["by_clip"][str(tmp_path / "some.wav")]) == (1 if "whole" in name else row["transcripts"])
    for name in list(rows)[2:]:
        assert set(rows[name]["parts_s"]) == {"features", "encode", "generate", "align"}
        assert all(seconds > 0 for seconds in rows[name]["parts_s"].values())


def test_a_folder_without_texts_is_a_usage_error(tmp_path):
    (tmp_path / "alone.wav").touch()
    with pytest.raises(
        UsageError, match=r"has no recording with a text file beside it; expected pairs such as talk.wav and talk.txt"
    ):
        bench.run(["asr", str(tmp_path)])


def test_words_of_turns_that_are_lost_or_doubled_in_runs_are_counted():
    found = Count("one way")
    found.add([*"abcdefghij"], [*"aefghijxyz"])
    assert (found.lost, found.doubled, found.wrong, found.words) == (["b c d"], ["x y z"], 6, 10)
    assert found.line.split()[:3] == ["3", "3", "6"]


def test_turns_have_all_clips_at_several_speeds():
    tone = (8000 * np.sin(np.arange(2 * SAMPLE_RATE) / 8)).astype(np.int16)
    clips = [(tone, f"word{number}") for number in range(4)]
    turns, again = joined_clips(clips, 3), joined_clips(clips, 3)
    assert sorted(turns.text.split()) == [text for _, text in clips]
    assert np.array_equal(turns.samples, again.samples)
    loud = np.abs(turns.samples.astype(np.int32)) > 1000
    assert 4 * 2 / 1.3 < loud.mean() * len(loud) / SAMPLE_RATE / 0.92 < 4 * 2 / 0.8
    assert len(joined_clips(clips, 1, long=True).samples) > len(joined_clips(clips, 1).samples)


@pytest.mark.slow
def test_the_command_counts_words_in_turns(tmp_path, capsys):
    for number, (segment, text) in enumerate(zip(cut(read_wav(PHRASES), 1600), spoken_texts()["phrases"], strict=True)):
        write_wav(tmp_path / f"{number}.wav", segment.samples)
        (tmp_path / f"{number}.txt").write_text(text)
    assert bench.run(["asr", str(tmp_path), "--turns", "1", "--live", "--json", str(tmp_path / "out.json")]) == 0
    peer, recorded, live = json.loads((tmp_path / "out.json").read_text())
    assert [each["name"] for each in (peer, recorded, live)] == [
        "faster-whisper, transcribe",
        "recordings",
        "live, real pace",
    ]
    for each in (peer, recorded, live):
        assert each["words"] == len(scored_units(" ".join(spoken_texts()["phrases"]), "en"))
        assert each["wrong"] <= 0.2 * each["words"]
    assert "live, real pace" in capsys.readouterr().out


def test_the_segments_equal_those_of_the_stage():
    samples = read_wav(PHRASES)[: 16_000 * 12]
    found, expected = segments_of(samples, VadConfig()), cut(samples, 1600)
    assert len(found) > 1
    assert [(s.start_s, s.end_s, s.heard_s) for s in found] == [(s.start_s, s.end_s, s.heard_s) for s in expected]
