"""python -m pipeline.bench live: recordings played in real time, and the report."""

import gc
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipeline.bench.__main__ import arguments, run
from pipeline.bench.measures import measured
from pipeline.bench.play import Stats
from pipeline.bench.words import ReceivedEvent
from pipeline.errors import AudioError, UsageError
from pipeline.events import SAMPLE_RATE, TargetText
from tests.conftest import EXAMPLES, PHRASE_SECONDS, read_wav, spoken_texts, write_wav
from tests.streams import spoken

pytestmark = pytest.mark.usefixtures("loaded")

TRAVEL = str(EXAMPLES / "travel.wav")
arguments()  # imports all commands, before a test takes away what loads models


SRT = "1\n00:00:00,500 --> 00:00:04,000\n东京来的飞机晚上七点到达。\n\n2\n00:00:04,500 --> 00:00:05,000\n哪\n"


@pytest.mark.slow
def test_a_recording_is_measured_in_real_time(phrase, tmp_path, capsys):
    recording = tmp_path / "talk.wav"
    recording.write_bytes(phrase.read_bytes())
    recording.with_suffix(".txt").write_text(" ".join(spoken_texts()["phrases"][:2]), "utf-8")
    (tmp_path / "reference.srt").write_text(SRT, "utf-8")
    options = ["--reference", str(tmp_path / "reference.srt")]
    gc.unfreeze()
    assert run(["live", str(recording), "--config", "demo-zh", "--json", *options]) == 0
    # The models must be frozen: a garbage collection over them would block the loop for too long.
    assert gc.get_freeze_count() > 10_000
    gc.unfreeze()
    (measured,) = json.loads(capsys.readouterr().out)
    assert measured["duration_s"] == PHRASE_SECONDS
    assert measured["policy"] == "drafts"
    assert measured["has_reference"]
    assert measured["source"]["unit"] == "word"
    assert measured["target"]["unit"] == "char"
    for text in (measured["source"], measured["target"]):
        check_figures(text)
    for against in ("against_offline", "against_text"):
        assert measured[against]["units"] > 5
        assert 0 <= measured[against]["rate"] < 0.5
    assert measured["real_time_factor"] == pytest.approx(sum(measured["busy_s"].values()) / PHRASE_SECONDS)
    assert measured["real_time_factor"] > 0
    assert 0 < measured["cpu_share"] < 1.05
    assert measured["backlog_s"] >= 0
    assert measured["drained_s"] > 0
    assert measured["memory_peak_mb"] >= measured["memory_mb"] > 0


def check_figures(text: dict[str, Any]) -> None:
    """What holds at any speed of the machine."""
    assert text["units"] > 0
    first, settled, final = text["first_shown"], text["settled"], text["final"]
    assert first["count"] == settled["count"] == final["count"] > 0
    for figure in ("mean_s", "p50_s", "p90_s"):
        assert final[figure] >= settled[figure] >= first[figure]
    assert final["mean_s"] > 0
    assert 0 <= text["erasure"] < 1
    assert 0 <= text["changed_late"] <= text["changed"] < 1
    for lagging in (text["displayed_lagging"], text["final_lagging"]):
        assert lagging["computation_aware_laal_ms"] > lagging["laal_ms"] > 0
    assert text["final_lagging"]["computation_aware_laal_ms"] >= text["displayed_lagging"]["computation_aware_laal_ms"]


@pytest.mark.slow
def test_a_run_without_drafts_is_compared_on_the_same_recording(phrase, tmp_path, capsys):
    recording = tmp_path / "talk.wav"
    write_wav(recording, read_wav(phrase)[: 5 * SAMPLE_RATE // 2])
    assert run(["live", str(recording), "--config", "demo-zh", "--compare"]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith(f"{recording}: 2.5 s\n")
    rows = [line.split()[:2] for line in printed.splitlines()]
    assert [row for row in rows if row[1:] in (["source"], ["translation"])] == 2 * [
        ["none", "source"], ["none", "translation"], ["drafts", "source"], ["drafts", "translation"],
    ]  # fmt: skip


def test_without_a_recording_read_speech_is_played(monkeypatch):
    monkeypatch.delattr("pipeline.config.loading.load_models")
    played: list[Path] = []
    monkeypatch.setattr("pipeline.bench.live._play_all", lambda paths, *_: nothing(played.extend(paths)))
    assert run(["live", "--config", "demo-zh"]) == 0
    assert played == [EXAMPLES / "novel.wav"]


async def nothing(_: None) -> None:
    pass


def test_sentences_without_text_are_counted_as_empty():
    events = [event for number in range(2) for event in spoken(number, "Yes.", 3.0 * number, 3.0 * number + 2)]
    events.append(TargetText(0, "zh", "是。", steady=2, heard_s=2.5, complete=True))
    scores = measured([ReceivedEvent(event, 6.0) for event in events], ("en", "zh"), 8.0).target.displayed_lagging
    assert scores is not None
    assert (scores.sentences, scores.empty) == (1, 1)
    assert (scores.laal_ms, scores.computation_aware_laal_ms) == (2_500, 6_000)


def test_a_sentence_that_takes_no_time_has_no_delay():
    events = [*spoken(0, "Yes.", 0.0, 2.0), *spoken(1, "No.", 2.0, 2.0)]
    found = measured([ReceivedEvent(event, 3.0) for event in events], ("en", "zh"), 3.0).source
    assert found.units == 2
    assert found.final_lagging is not None
    assert found.final_lagging.sentences == 1


def test_the_backlog_at_the_end_is_the_lag_when_the_last_audio_came():
    now_s = 0.5
    stats = Stats(clock=lambda: now_s)
    stats.received(SAMPLE_RATE // 2)
    now_s = 4.0
    stats.audio_samples = SAMPLE_RATE  # the voice activity detection has seen one second of four
    stats.received(7 * SAMPLE_RATE // 2)
    now_s = 9.0
    assert stats.backlog_at_end_s == 3.0


WRONG = [
    (["live", TRAVEL, TRAVEL, "--reference", "a.srt"], "1 references for 2 recordings"),
    (["live", "talk.wav"], "cannot read talk.txt, the text of talk.wav"),
    (["live", TRAVEL, "nowhere.wav"], "no such file: nowhere.wav"),
]


@pytest.mark.parametrize(("options", "message"), WRONG, ids=[message for _, message in WRONG])
def test_a_mistake_is_reported_before_a_model_is_loaded(options, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delattr("pipeline.config.loading.load_models")
    Path("talk.wav").symlink_to(TRAVEL)
    Path("talk.txt").write_bytes(b"\xff")
    with pytest.raises(UsageError, match=message):
        run([*options, "--config", "demo-zh"])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["talk.txt", "talk.wav"]


@pytest.mark.slow
@pytest.mark.parametrize("options", [[], ["--json"]], ids=["text", "JSON"])
def test_results_before_a_failure_are_printed(options, tmp_path, capsys):
    files = [tmp_path / name for name in ("quiet.wav", "empty.wav")]
    for path, samples in zip(files, (8_000, 0), strict=True):
        write_wav(path, np.zeros(samples, np.int16))
    with pytest.raises(AudioError, match="empty.wav holds no audio"):
        run(["live", *map(str, files), "--config", "demo-zh", *options])
    printed = capsys.readouterr().out
    assert str(files[0]) in printed
    if options:
        (measured,) = json.loads(printed)
        assert measured["duration_s"] == 0.5
    else:
        assert "real-time factor" in printed


def test_the_commands_are_listed():
    assert "live" in arguments().format_help()
