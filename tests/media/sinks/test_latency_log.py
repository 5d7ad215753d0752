"""The content of latency logs, line by line."""

import itertools
import json
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from pipeline.core.notices import TranslationLost
from pipeline.errors import UsageError
from pipeline.events import EndOfInput, PipelineEvent, SourceSentence, SourceText, TargetText
from pipeline.media.sinks.latency_log import LatencyLog, open_latency_log
from tests.media.latency.streams import DURATION_S, REFERENCES, events, written
from tests.streams import translated


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def test_simulstreams_format_has_one_line_per_change(tmp_path):
    written(tmp_path / "run.jsonl", "char")
    header, first, second, third, fourth, *rest, end = lines(tmp_path / "run.jsonl")
    assert header == {"id": 0, "metadata": {"wav_name": "talk0.wav"}}
    assert first == {
        "id": 0,
        "total_audio_processed": 2.5,
        "computation_time": 0.4,
        "generated_tokens": ["早"],
        "deleted_tokens": [],
    }
    assert (second["generated_tokens"], second["computation_time"]) == (["上好"], 0.43)
    assert third["generated_tokens"] == ["。"]
    assert fourth["total_audio_processed"] == 6.0
    assert len(rest) == 3
    assert end == {
        "id": 0,
        "total_audio_processed": DURATION_S,
        "computation_time": 0.0,
        "generated_tokens": [],
        "deleted_tokens": [],
    }


def test_simulstreams_format_marks_spaces_like_sentencepiece(tmp_path):
    written(tmp_path / "run.jsonl", "word")
    tokens = [token for line in lines(tmp_path / "run.jsonl")[1:] for token in line["generated_tokens"]]
    assert "".join(tokens) == "Good▁morning.▁The▁meeting▁is▁upstairs."


DRAFTS = [
    TargetText(0, "zh", "三十", heard_s=1.0),
    TargetText(0, "zh", "三百人", steady=1, heard_s=2.0),
    TargetText(0, "zh", "三百人。", steady=4, heard_s=3.0, complete=True),
]


def test_a_log_has_the_text_as_displayed_or_only_final_text(tmp_path):
    found = {}
    for name, final in (("displayed", False), ("final", True)):
        for suffix in (".jsonl", ".log"):
            log = open_latency_log(tmp_path / (name + suffix), "char", final=final)
            log.start("talk.wav", iter([3.5] if final else [1.5, 2.5, 3.5]).__next__)
            for event in [*DRAFTS, *translated(0, ["三百人。"], heard_s=3.0)[1:], EndOfInput(4.0)]:
                log.write(event)
            log.close()
            found[name + suffix] = lines(tmp_path / (name + suffix))
    streams = {
        name: [(line["total_audio_processed"], line["generated_tokens"], line["deleted_tokens"]) for line in lines[1:]]
        for name, lines in found.items()
        if name.endswith(".jsonl")
    }
    assert streams["displayed.jsonl"] == [
        (1.0, ["三十"], []),
        (2.0, ["三", "百人"], ["三十"]),
        (3.0, ["。"], []),
        (4.0, [], []),
    ]
    assert streams["final.jsonl"] == [(3.0, ["三百人。"], []), (4.0, [], [])]
    assert {name: lines[0]["elapsed"] for name, lines in found.items() if name.endswith(".log")} == {
        "displayed.log": [1500, 2500, 2500, 3500],
        "final.log": [3500, 3500, 3500, 3500],
    }


def test_simulevals_format_has_one_line_per_recording(tmp_path):
    written(tmp_path / "instances.log", "word", streams=2)
    first, second = lines(tmp_path / "instances.log")
    assert first == {
        "index": 0,
        "prediction": "Good morning. The meeting is upstairs.",
        "delays": [2500, 2500, 6000, 6000, 6000, 6000],
        # "morning." is complete with its fourth token, "upstairs." with its sixth.
        "elapsed": [2900, 2990, 6400, 6430, 6460, 6550],
        "prediction_length": 6,
        "reference": REFERENCES["word"],
        "source": ["talk0.wav"],
        "source_length": 7500,
    }
    assert second == first | {"index": 1, "source": ["talk1.wav"]}


def test_a_stream_that_was_stopped_is_logged_as_far_as_it_came(tmp_path):
    log = open_latency_log(tmp_path / "instances.log", "char")
    log.start("talk.wav", iter([3.0, 3.1]).__next__)
    for event in events("char")[:5]:
        log.write(event)
    log.close()
    (line,) = lines(tmp_path / "instances.log")
    assert (line["prediction"], line["source_length"]) == ("早上好", 2500)


@pytest.mark.parametrize("name", ["run.jsonl", "instances.log"])
@pytest.mark.parametrize("unit", ["char", "word"])
def test_a_run_that_produces_nothing_leaves_an_old_log_alone(name, unit, tmp_path):
    (tmp_path / name).write_text("precious")
    log = open_latency_log(tmp_path / name, unit)
    log.start("talk.wav", lambda: 0.0)
    log.close()
    assert (tmp_path / name).read_text() == "precious"


def test_audio_faster_than_real_time_is_reported(tmp_path, caplog):
    log = open_latency_log(tmp_path / "run.jsonl", "char")
    log.start("talk.wav", lambda: 1.0)
    log.write(events("char")[3])
    with caplog.at_level(logging.WARNING):
        log.close()
        log.close()
    assert caplog.text.count("faster than real time") == 1
    assert lines(tmp_path / "run.jsonl")[-1]["computation_time"] == 0
    caplog.clear()
    written(tmp_path / "other.jsonl", "char")
    assert not caplog.text


def test_the_suffix_selects_the_format(tmp_path):
    with pytest.raises(UsageError, match=r"\.jsonl for simulstream's form"):
        open_latency_log(tmp_path / "run.txt", "char")
    with pytest.raises(UsageError, match="cannot write"):
        open_latency_log(tmp_path / "nowhere" / "run.jsonl", "char")


def replayed(path: Path) -> str:
    """The text that the lines of simulstream's format add up to."""
    text = ""
    for line in lines(path)[1:]:
        deleted, appended = "".join(line["deleted_tokens"]), "".join(line["generated_tokens"])
        assert text.endswith(deleted)
        text = text.removesuffix(deleted) + appended
    return text


AHEAD = [
    SourceText(0, "en", "Hello", heard_s=1.0),
    TargetText(0, "zh", "你好", heard_s=1.0),
    SourceText(1, "en", "Thanks", heard_s=2.0),
    TargetText(1, "zh", "谢谢", heard_s=2.0),
]


def logged(path: Path, events: Sequence[PipelineEvent]) -> LatencyLog:
    log = open_latency_log(path, "char", "zh")
    log.start("talk.wav", itertools.count(10.0).__next__)
    for event in events:
        log.write(event)
    return log


def test_a_draft_of_the_next_sentence_is_logged_when_the_one_before_is_finished(tmp_path):
    path = tmp_path / "run.jsonl"
    log = logged(path, AHEAD)
    assert replayed(path) == "你好"
    for event in translated(0, ["你好。"], heard_s=3.0):
        log.write(event)
    assert replayed(path) == "你好。谢谢"


def test_a_draft_waits_for_the_sentence_right_before_it(tmp_path):
    path = tmp_path / "run.jsonl"
    later = [SourceText(2, "en", "Bye", heard_s=2.5), TargetText(2, "zh", "再见", heard_s=2.5)]
    log = logged(path, [*AHEAD, *later, *translated(0, ["你好。"], heard_s=3.0)])
    assert replayed(path) == "你好。谢谢"
    for event in translated(1, ["谢谢。"], heard_s=4.0):
        log.write(event)
    assert replayed(path) == "你好。谢谢。再见"
    assert [*log._text._sentences] == [2]  # what is finished is not kept


def test_of_final_text_no_draft_is_logged_that_waited(tmp_path):
    log = open_latency_log(tmp_path / "run.jsonl", "char", "zh", final=True)
    log.start("talk.wav", itertools.count(10.0).__next__)
    for event in [*AHEAD, *translated(0, ["你好。"], heard_s=3.0)]:
        log.write(event)
    assert replayed(tmp_path / "run.jsonl") == "你好。"
    log.close()
    assert replayed(tmp_path / "run.jsonl") == "你好。"


def test_nothing_waits_for_a_sentence_that_later_ones_have_passed(tmp_path):
    path = tmp_path / "run.jsonl"
    last = [SourceText(2, "en", "Bye", heard_s=4.0), TargetText(2, "zh", "再见", heard_s=4.0)]
    logged(path, [AHEAD[0], *AHEAD[2:], *translated(1, ["谢谢。"], heard_s=3.0), *last])
    assert replayed(path) == "谢谢。再见"


@pytest.mark.parametrize("name", ["run.jsonl", "instances.log"])
def test_what_waits_is_logged_if_the_stream_is_stopped(name, tmp_path):
    logged(tmp_path / name, AHEAD).close()
    if name == "run.jsonl":
        assert replayed(tmp_path / name) == "你好谢谢"
        assert len(lines(tmp_path / name)) == 3  # a header and two texts, and no end
    else:
        assert lines(tmp_path / name)[0]["prediction"] == "你好谢谢"


def test_a_sentence_in_the_target_language_is_withdrawn_before_the_next(tmp_path):
    path = tmp_path / "run.jsonl"
    log = logged(path, [*AHEAD, SourceSentence(0, "zh", "你好。", heard_s=3.0)])
    assert replayed(path) == "你好"
    log.write(TargetText(0, "zh", "", heard_s=3.0, complete=True))
    assert replayed(path) == "谢谢"


def test_nothing_waits_for_a_language_that_was_lost(tmp_path):
    log = logged(tmp_path / "run.jsonl", [*AHEAD, TranslationLost("de", "full")])
    assert replayed(tmp_path / "run.jsonl") == "你好"  # another language
    log.write(TranslationLost("zh", "full"))
    assert replayed(tmp_path / "run.jsonl") == "你好谢谢"
    log.write(SourceText(2, "en", "Bye", heard_s=4.0))
    assert log._unfinished == set()  # no translation of it comes
