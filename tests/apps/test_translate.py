"""Subtitle files from recordings: what is found, what is kept, and what is resumed after an interruption."""

import atexit
import errno
import io
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partialmethod
from pathlib import Path
from typing import Any, cast

import av
import numpy as np
import pytest
import srt
from av.audio.frame import AudioFrame
from rich.console import Console

from pipeline import PipelineConfig, TargetText, Transcript, Translation
from pipeline.apps import translate
from pipeline.archives.outputs import JOURNAL_SUFFIX, OutputName, OutputNames
from pipeline.archives.recordings import Begin, Job, begin, find_recordings, plan
from pipeline.archives.results import Result, plain_lines, results_table
from pipeline.config import load_config
from pipeline.config.resources import CONFIGS
from pipeline.core.asr.recognizer import RecognitionOptions
from pipeline.core.nmt.translator import TranslationRequest
from pipeline.errors import PipelineError, UsageError
from pipeline.events import Samples, SpeechSegment
from pipeline.media.audio.recording import Recording
from pipeline.media.sinks.block_file import BlockFile, in_use
from tests.archives.archives import hold, scripted, wait_until
from tests.commands import command, run
from tests.conftest import EXAMPLES, HANG_S, PHRASES, read_wav, spoken_texts, write_wav
from tests.fixtures.scripted.loading import Models, Recognizer, Translator, load_models
from tests.media.audio.films import Sound, film, tones

__all__ = ["hold", "scripted"]

KINDS = "srt,vtt,ass,jsonl,txt"
ONE_TARGET = {"zh": ""}
COUNT = len(spoken_texts()["phrases"])
ONE_BY_ONE = Path(tempfile.mkdtemp(prefix="config-")) / "demo.toml"
"""The demo's configuration in which each segment is a group and a sentence: most tests interrupt a run between two segments."""
ONE_BY_ONE.write_text(
    (CONFIGS / "demo-zh.toml").read_text("utf-8").replace("../models", str(CONFIGS.parent / "models"))
    + "\n[sentences]\nlong_pause_ms = 0\n"
)  # fmt: skip
atexit.register(shutil.rmtree, ONE_BY_ONE.parent, ignore_errors=True)


class FaultError(PipelineError):
    """Simulates a fault that ends a run at once."""


class Counting:
    """Models that count their calls and fail at a given segment or token."""

    def __init__(self, models: Any, fail_at_segment: int = -1, fail_at_token: int = -1) -> None:
        self.models = models
        self.segments = self.tokens = 0
        self.fail_at_segment, self.fail_at_token = fail_at_segment, fail_at_token

    def transcribe(self, segments: Sequence[SpeechSegment], options: RecognitionOptions) -> list[Transcript]:
        if 0 <= self.fail_at_segment < self.segments + len(segments):
            raise FaultError
        self.segments += len(segments)
        found: list[Transcript] = self.models.recognizer.transcribe(segments, options)
        return found

    def stream(self, request: TranslationRequest) -> Iterator[TargetText | Translation]:
        for event in self.models.translations["zh"].stream(request):
            if isinstance(event, TargetText):
                if self.tokens == self.fail_at_token:
                    raise FaultError
                self.tokens += 1
            yield event


@pytest.fixture
def models() -> Any:
    """Those of the runs: scripted ones."""
    return Models(Recognizer(), {"zh": Translator()})


@pytest.fixture
def translated(models: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    """Runs the command in this process with models that may fail; returns status, output and counts."""

    def run(*arguments: str | Path, **failures: int) -> tuple[int, str, Counting]:
        counting = Counting(models, **failures)

        async def loaded(config: PipelineConfig) -> Any:
            return replace(models, recognizer=counting, translations=dict.fromkeys(config.languages.targets, counting))

        monkeypatch.setattr(translate, "_load", loaded)
        config = () if "--config" in arguments else ("--config", str(ONE_BY_ONE))
        status = translate.run([*map(str, arguments), *config])
        printed = capsys.readouterr()
        return status, printed.out + printed.err, counting

    return run


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """What an uninterrupted run writes for the phrases: suffix → content."""
    folder = tmp_path_factory.mktemp("whole")

    async def loaded(config: PipelineConfig) -> Any:
        return load_models(config)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(translate, "_load", loaded)
        given = [str(PHRASES), "--output-dir", str(folder), "--format", KINDS, "--config", str(ONE_BY_ONE)]
        assert translate.run(given) == 0
    return {path.suffix: path.read_bytes() for path in folder.iterdir()}


def files(folder: Path) -> dict[str, bytes]:
    return {
        path.suffix: path.read_bytes() for path in folder.glob("phrases.*") if not path.name.endswith(JOURNAL_SUFFIX)
    }


def finished(journal: Path | None) -> tuple[int, int]:
    """The number of transcripts, and of tokens of finished translations, in a journal."""
    lines = journal.read_text("utf-8").splitlines() if journal else []
    types = [json.loads(line)["type"] for line in lines]
    last = max((at for at, kind in enumerate(types) if kind == "translation"), default=0)
    return types.count("transcript"), types[:last].count("delta")


@pytest.mark.slow
@pytest.mark.parametrize("failures", [{"fail_at_segment": 0}, {"fail_at_segment": 3}, {"fail_at_token": 17}], ids=str)
def test_a_run_resumes_where_the_previous_one_failed(translated, tmp_path, whole, failures):
    arguments = (PHRASES, "--output-dir", tmp_path, "--format", KINDS)
    status, said, _ = translated(*arguments, **failures)
    assert status == 1
    assert "stage failed" in said
    for suffix, content in files(tmp_path).items():
        assert whole[suffix].startswith(content)
    transcripts, tokens = finished(next(tmp_path.glob(f"*{JOURNAL_SUFFIX}"), None))
    status, said, second = translated(*arguments)
    assert status == 0, said
    assert files(tmp_path) == whole
    assert not list(tmp_path.glob(f"*{JOURNAL_SUFFIX}"))
    # Finished work is not repeated.
    assert second.segments == COUNT - transcripts
    assert second.tokens == sum(b'"type": "delta"' in line for line in whole[".jsonl"].splitlines()) - tokens


@pytest.mark.parametrize("method", ["transcribe", "stream"])
def test_a_failed_call_costs_one_sentence_until_the_next_run(translated, tmp_path, whole, monkeypatch, method):
    calls, call = 0, getattr(Counting, method)

    def failing(self: Counting, *arguments: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == 3:
            raise ValueError("busy")
        return call(self, *arguments)

    arguments = (PHRASES, "--output-dir", tmp_path, "--format", KINDS)
    with monkeypatch.context() as context:
        context.setattr(Counting, method, failing)
        status, said, _ = translated(*arguments)
    assert status == 1
    assert "stage failed: busy; the next run tries what is missing again" in " ".join(said.split())
    kept = files(tmp_path)[".jsonl"]
    assert kept.count(b'"rejected": "failed"') == (method == "transcribe")
    assert kept.count(b'"error": "busy"') == (method == "stream")
    assert kept.splitlines()[-1] == whole[".jsonl"].splitlines()[-1]
    status, said, second = translated(*arguments)
    assert status == 0, said
    now = files(tmp_path)
    if method == "transcribe":  # the segment after it was recognised without its context, which changes the confidence
        del now[".jsonl"]
    assert now == {suffix: whole[suffix] for suffix in now}
    assert second.segments == (method == "transcribe")


def broken_after(reads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make recordings unreadable after a number of tenths of a second, as if the disk were gone."""
    left = iter(range(reads))

    def read(self: Recording, real: Any = Recording.read) -> Samples | None:
        if next(left, None) is None:
            raise OSError(errno.EIO, "Input/output error")
        return cast("Samples | None", real(self))

    monkeypatch.setattr(Recording, "read", read)


def test_a_recording_that_breaks_during_speech_is_finished_by_the_next_run(translated, tmp_path, whole, monkeypatch):
    segments = [json.loads(line) for line in whole[".jsonl"].splitlines() if line.startswith(b'{"type": "transcript"')]
    inside = int(5 * (segments[2]["start_s"] + segments[2]["end_s"]))
    arguments = (PHRASES, "--output-dir", tmp_path, "--format", KINDS)
    with monkeypatch.context() as context:
        broken_after(inside, context)
        status, said, _ = translated(*arguments)
    assert status == 1
    assert "Input/output error" in said
    assert finished(next(tmp_path.glob(f"*{JOURNAL_SUFFIX}")))[0] == 3  # the third is cut off
    status, said, second = translated(*arguments)
    assert (status, second.segments) == (0, COUNT - 2), said
    assert files(tmp_path) == whole


@pytest.mark.slow
@pytest.mark.parametrize("at", ["speech", "pause"])
def test_a_recording_that_breaks_earlier_loses_nothing(translated, tmp_path, whole, monkeypatch, at):
    segments = [json.loads(line) for line in whole[".jsonl"].splitlines() if line.startswith(b'{"type": "transcript"')]
    arguments = (PHRASES, "--output-dir", tmp_path, "--format", KINDS)
    assert translated(*arguments, fail_at_segment=4)[0] == 1
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    ends = {
        "speech": segments[1]["start_s"] + segments[1]["end_s"],
        "pause": segments[1]["end_s"] + segments[2]["start_s"],
    }
    with monkeypatch.context() as context:
        broken_after(int(5 * ends[at]), context)
        status, said, _ = translated(*arguments)
    assert status == 1
    assert "Input/output error" in said
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
    assert translated(*arguments)[0] == 0
    assert files(tmp_path) == whole


@pytest.mark.slow
def test_groups_are_resumed_too(translated, tmp_path):
    arguments = (PHRASES, "--format", KINDS, "--config", "demo-zh", "--output-dir")
    status, said, first = translated(*arguments, tmp_path / "whole")
    assert (status, first.segments) == (0, COUNT), said
    assert translated(*arguments, tmp_path / "cut", fail_at_segment=COUNT - 1)[0] == 1
    done = finished(next((tmp_path / "cut").glob(f"*{JOURNAL_SUFFIX}")))[0]
    assert 2 <= done < COUNT
    status, said, second = translated(*arguments, tmp_path / "cut")
    assert (status, second.segments) == (0, COUNT - done), said
    assert files(tmp_path / "cut") == files(tmp_path / "whole")


@pytest.mark.slow
def test_a_sentence_with_a_pause_in_it_is_translated_as_one(translated, models, tmp_path):
    models.recognizer.said = "It was the best of times, it was late.".split()  # in and between pauses
    (tmp_path / "joined.toml").write_text(
        ONE_BY_ONE.read_text("utf-8").replace("long_pause_ms = 0", "long_pause_ms = 3_000")
    )
    apart = (PHRASES, "--format", "srt,jsonl", "--output-dir", tmp_path / "apart")
    assert translated(*apart)[0] == 0
    assert sum(not text.endswith(".") for text in sources(tmp_path / "apart")) >= 3
    joined = (*apart[:-1], tmp_path / "joined", "--config", tmp_path / "joined.toml")
    assert translated(*joined)[0] == 0
    found = sources(tmp_path / "joined")
    assert len(found) > 2
    assert all(text.endswith(".") for text in found[:-1])
    assert " ".join(found).split() == " ".join(sources(tmp_path / "apart")).split()
    # A run that was cut in such a sentence goes on.
    before = files(tmp_path / "joined")
    assert translated(*joined, "--overwrite", fail_at_token=20)[0] == 1
    status, said, second = translated(*joined)
    assert status == 0, said
    assert files(tmp_path / "joined") == before
    assert second.tokens < before[".jsonl"].count(b'"delta"')


@pytest.mark.parametrize(
    ("guess", "name", "said"),
    [
        ({"es": 0.9, "en": 0.1}, "talk.wav", "it is in Spanish, not in English: give --source es"),
        ({"es": 0.7, "en": 0.3}, "talk.wav", "is --source right?"),
        ({}, "talk.es.wav", "it is in Spanish, not in English: give --source es"),
    ],
)
def test_speech_in_another_language_is_named(guess, name, said, translated, tmp_path, monkeypatch):
    monkeypatch.setattr(Counting, "transcribe", partialmethod(doubted, rejected="language"))
    monkeypatch.setattr(Counting, "guess", lambda *_: guess, raising=False)
    (tmp_path / name).symlink_to(PHRASES)
    status, printed, _ = translated(tmp_path / name)
    assert (status, said in printed) == (0, True), printed


def test_a_name_alone_says_nothing_of_speech_that_is_understood(translated, tmp_path, monkeypatch):
    (tmp_path / "talk.es.wav").symlink_to(PHRASES)
    monkeypatch.setattr(Counting, "guess", lambda *_: {"es": 0.0, "en": 1.0}, raising=False)
    assert "Spanish" not in translated(tmp_path / "talk.es.wav")[1]


def sources(folder: Path) -> list[str]:
    lines = (folder / "phrases.jsonl").read_text("utf-8").splitlines()
    return [record["text"] for record in map(json.loads, lines) if record["type"] == "source_sentence"]


def doubted(
    self: Counting, segments: Sequence[SpeechSegment], options: object, rejected: str = "uncertain"
) -> list[Transcript]:
    """Replaces ``Counting.transcribe``: the results as for speech in another language than the expected one."""
    return [Transcript(one.id, one.start_s, one.end_s, "What?", "en", rejected=rejected) for one in segments]


def test_withheld_speech_is_reported_with_its_time_and_reason(translated, tmp_path, monkeypatch):
    monkeypatch.setattr(Counting, "transcribe", doubted)
    status, said, _ = translated(PHRASES, "--output-dir", tmp_path, "--format", "srt,jsonl")
    assert status == 0
    assert re.search(r"heard and not shown", said)
    assert re.search(r"1\d\.\d s: uncertain 0:0.*and 3 more before", said)
    assert "no subtitles: everything heard was withheld; is --source right? The next run tries again" in said
    assert "done" not in said
    records = [json.loads(line) for line in (tmp_path / "phrases.jsonl").read_text("utf-8").splitlines()]
    assert [r["rejected"] for r in records if r["type"] == "transcript"] == ["uncertain"] * COUNT
    assert all(r["start_s"] < r["end_s"] for r in records if r["type"] == "transcript")


def test_gaps_in_a_recording_or_translation_are_in_the_outcome(translated, tmp_path, monkeypatch):
    save(tmp_path / "whole.flac", read_wav(PHRASES))
    content = (tmp_path / "whole.flac").read_bytes()
    (tmp_path / "half.flac").write_bytes(content[: len(content) // 2])
    status, said, _ = translated(tmp_path / "half.flac", "--output-dir", tmp_path)
    assert status == 0
    length = len(read_wav(PHRASES)) / 16_000
    assert re.search(rf"done, but the recording is damaged in places and cut off after \d+ s of {length:.0f} s", said)

    def cut_off(self: Counting, request: TranslationRequest) -> Iterator[TargetText | Translation]:
        for event in self.models.translations["zh"].stream(request):
            yield replace(event, truncated=True) if isinstance(event, Translation) else event

    monkeypatch.setattr(Counting, "stream", cut_off)
    status, said, _ = translated(PHRASES, "--output-dir", tmp_path)
    assert status == 0
    assert f"done, but {COUNT} translations were cut short" in said


@pytest.mark.slow
def test_existing_subtitles_are_kept_and_reported(translated, tmp_path, whole):
    (tmp_path / "phrases.srt").write_text("precious")
    status, said, counting = translated(PHRASES, "--output-dir", tmp_path)
    assert (status, counting.segments) == (0, 0)
    assert "already there" in said
    assert (tmp_path / "phrases.srt").read_text() == "precious"
    # A missing format is added.
    status, _, counting = translated(PHRASES, "--output-dir", tmp_path, "--format", "srt,txt")
    assert (status, counting.segments) == (0, COUNT)
    assert (tmp_path / "phrases.srt").read_text() == "precious"
    assert (tmp_path / "phrases.txt").read_bytes() == whole[".txt"]
    status, _, _ = translated(PHRASES, "--output-dir", tmp_path, "--overwrite")
    assert status == 0
    assert (tmp_path / "phrases.srt").read_bytes() == whole[".srt"]
    # Also if that run was interrupted.
    arguments = (PHRASES, "--output-dir", tmp_path / "cut", "--format", "srt,vtt")
    (tmp_path / "cut").mkdir()
    (tmp_path / "cut" / "phrases.srt").write_text("precious")
    assert translated(*arguments, fail_at_segment=2)[0] == 1
    status, said, counting = translated(*arguments)
    assert (status, counting.segments) == (0, COUNT - 2), said
    assert files(tmp_path / "cut") == {".srt": b"precious", ".vtt": whole[".vtt"]}
    # A folder with that name does not count as subtitles.
    (tmp_path / "phrases.vtt").mkdir()
    status, said, _ = translated(PHRASES, "--output-dir", tmp_path, "--format", "vtt")
    assert status == 1
    assert "already there" not in said


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--bilingual",), "was begun with subtitles.bilingual = False, which is now True"),
        (("--format", "srt,vtt"), "was begun with --format srt"),
        (("--audio-track", "1"), "was begun with no --audio-track;"),
    ],
)
def test_a_run_with_other_options_is_not_resumed(translated, tmp_path, arguments, message):
    translated(PHRASES, "--output-dir", tmp_path, fail_at_segment=2)
    before = (tmp_path / "phrases.srt").read_bytes()
    status, said, _ = translated(PHRASES, "--output-dir", tmp_path, *arguments)
    assert status == 1
    assert message in said
    assert "--overwrite" in said
    assert (tmp_path / "phrases.srt").read_bytes() == before
    status, said, counting = translated(PHRASES, "--output-dir", tmp_path, "--overwrite", *arguments)
    assert (status, counting.segments) == (0, COUNT), said


def test_the_audio_track_is_reported_and_can_be_chosen(translated, tmp_path):
    said = read_wav(PHRASES)[: 4 * 16_000]
    tracks = Sound(tones(len(said), 1), language="rus"), Sound(said[None], language="eng")
    path = film(tmp_path / "film.mkv", *tracks)
    status, printed, _ = translated(path, "--audio-track", "9")
    assert status == 1
    assert "has no audio track 9; choose from its 2 tracks: 1 (rus, mono), 2 (eng, mono)" in printed
    assert translated(path, "--audio-track", "1")[0] == 0
    assert not (tmp_path / "film.srt").read_text("utf-8").strip()
    (tmp_path / "film.srt").unlink(missing_ok=True)
    status, printed, _ = translated(path)
    assert status == 0
    assert "film.mkv: audio track 2 (eng, mono), one of 2, is used because" in printed
    assert (tmp_path / "film.srt").read_text("utf-8").strip()


def test_overwriting_includes_formats_that_an_interrupted_run_began(translated, tmp_path, whole):
    translated(PHRASES, "--output-dir", tmp_path, "--format", "srt,vtt", fail_at_segment=2)
    assert files(tmp_path)[".vtt"] != whole[".vtt"]
    status, said, _ = translated(PHRASES, "--output-dir", tmp_path, "--format", "srt", "--overwrite")
    assert status == 0, said
    assert files(tmp_path) == {suffix: whole[suffix] for suffix in (".srt", ".vtt")}


@pytest.mark.parametrize("name", ["x" * 255, "会议" * 41 + "录.wav"], ids=["no suffix", "Chinese"])
def test_a_name_of_255_bytes_is_shortened_and_its_run_is_resumed(translated, tmp_path, whole, name):
    recording = tmp_path / name
    shutil.copy(PHRASES, recording)
    arguments = (recording, "--output-dir", tmp_path / "out", "--format", "srt,jsonl", "--lang-suffix")
    assert translated(*arguments, fail_at_segment=2)[0] == 1
    status, said, counting = translated(*arguments)
    assert (status, counting.segments) == (0, COUNT - 2), said
    assert "finished, under a shorter name" in said
    made = {path.suffix: path for path in (tmp_path / "out").iterdir()}
    assert {suffix: path.read_bytes() for suffix, path in made.items()} == {s: whole[s] for s in (".srt", ".jsonl")}
    assert re.fullmatch(rf"{name[:70]}.*~[0-9a-f]{{12}}\.zh\.srt", made[".srt"].name)
    assert 238 < len(os.fsencode(made[".srt"].name)) <= 255
    status, said, counting = translated(*arguments)
    assert (status, counting.segments) == (0, 0), said
    assert "already there" in said


def test_a_name_with_room_for_subtitles_and_none_for_the_journal_keeps_its_own(translated, tmp_path):
    recording = tmp_path / ("会" * 80 + ".wav")
    shutil.copy(PHRASES, recording)
    assert translated(recording, fail_at_segment=2)[0] == 1
    (journal,) = tmp_path.glob(f"*{JOURNAL_SUFFIX}")
    assert len(os.fsencode(journal.name)) <= 255
    assert translated(recording)[2].segments == COUNT - 2
    assert {path.name for path in tmp_path.iterdir()} == {recording.name, "会" * 80 + ".srt"}


def test_an_output_folder_whose_path_is_too_long_fails_only_its_recording(translated, tmp_path):
    deep = tmp_path / "in" / ("x" * 255)
    deep.mkdir(parents=True)
    shutil.copy(PHRASES, deep / "a.wav")
    shutil.copy(PHRASES, tmp_path / "in" / "b.wav")
    # So deep that its subfolder's path exceeds the system's limit.
    out = tmp_path / "out"
    while len(str(out)) < 3_900:
        out /= "y" * 100
    out.mkdir(parents=True)
    status, said, _ = translated(tmp_path / "in", "--output-dir", out)
    assert status == 1
    assert "File name too long" in said
    assert [path.name for path in out.iterdir()] == ["b.srt"]
    assert not [thread for thread in threading.enumerate() if thread.name == "subtitles"]


def test_another_recording_of_the_same_name_does_not_resume(translated, tmp_path):
    translated(PHRASES, "--output-dir", tmp_path, fail_at_segment=2)
    other = tmp_path / "other" / "phrases.wav"
    other.parent.mkdir()
    other.write_bytes((EXAMPLES / "travel.wav").read_bytes())
    status, said, _ = translated(other, "--output-dir", tmp_path)
    assert status == 1
    assert "was begun from another recording of this name" in said


def test_a_terminal_shows_only_the_current_recordings_progress(translated, tmp_path, monkeypatch):
    recordings = [tmp_path / f"{number}.wav" for number in range(6)]
    for recording in recordings:
        save(recording, np.zeros(16_000, np.int16))
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    monkeypatch.setenv("LINES", "4")
    status, said, _ = translated(*recordings)
    assert status == 0
    assert all(re.search(rf"\b{recording.name}.*━", said) for recording in recordings)
    assert "..." not in said  # drawn by rich if there is no room


def test_a_failure_does_not_affect_other_recordings(translated, tmp_path):
    broken = tmp_path / "broken.wav"
    broken.write_text("no audio")
    silent = tmp_path / "silent.wav"
    save(silent, np.zeros(16_000, np.int16))
    status, said, _ = translated(broken, silent, PHRASES, "--output-dir", tmp_path / "out")
    assert status == 1
    rows = [line for line in said.splitlines() if ".wav" in line and "error" not in line]
    assert re.findall(r"\b(done|failed|no subtitles)\b", "".join(rows)) == ["failed", "no subtitles", "done"]
    assert "no subtitles: no speech was found; the next run tries again" in rows[1]
    length = f"{len(read_wav(PHRASES)) / 16_000:.0f}"
    assert re.search(rf"^3 of 3, phrases\.wav: {length} s of {length} s, [\d.]+ times real time$", said, re.MULTILINE)
    assert "; 1 s of audio, 0 sentences, " in rows[1]
    assert f"phrases.wav: done; {length} s of audio, {COUNT} sentences, " in rows[2]
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["phrases.srt", "silent.srt"]
    assert len(list(srt.parse((tmp_path / "out" / "phrases.srt").read_text("utf-8")))) == COUNT
    assert (tmp_path / "out" / "silent.srt").read_text() == ""


def test_long_paths_are_not_wrapped_without_a_terminal(translated, tmp_path):
    folder = tmp_path / ("long" * 60) / ("longer" * 40)
    folder.mkdir(parents=True)
    save(folder / "silent.wav", np.zeros(16_000, np.int16))
    status, said, _ = translated(folder / "silent.wav", "--output-dir", folder / "out")
    assert status == 0
    (line,) = [line for line in said.splitlines() if line.startswith(f"{folder / 'silent.wav'}: no subtitles")]
    assert line.endswith(f"; {folder / 'out' / 'silent.srt'}")


@pytest.fixture
def results(tmp_path, monkeypatch):
    """The results of three recordings: translated, failed and not begun."""
    monkeypatch.chdir(tmp_path)
    Path("talk.srt").touch()
    names = ("talk", "[b]bad", "later")
    jobs = [Job(tmp_path / f"{name}.wav", {}, OutputNames(OutputName(tmp_path, name))) for name in names]
    files = {("srt", "zh"): tmp_path / "talk.srt", ("vtt", "zh"): tmp_path / "none.vtt"}
    done = Result(jobs[0], "done", False, 60.0, 12.0, 7, "4.2 s: uncertain", files)
    return [done, Result(jobs[1], "failed", True, error="it is damaged"), Result(jobs[2])]


def test_a_terminal_of_80_columns_has_room_for_each_recordings_outcome_and_speed(results):
    shown = io.StringIO()
    Console(file=shown, width=80).print(results_table(results))
    lines = [line.split() for line in shown.getvalue().splitlines() if line.strip(" ─")]
    assert lines == [
        ["recording", "audio", "sentences", "speed", "outcome"],
        ["talk.wav", "60", "s", "7", "5.0", "×", "done"],
        ["heard", "and", "not", "shown:", "4.2", "s:", "uncertain"],
        ["talk.srt"],
        ["[b]bad.wav", "failed"],
        ["later.wav", "not", "begun"],
        ["3", "recordings", "60", "s", "7", "5.0", "×", "1", "done,", "1", "failed,", "1", "not", "begun"],
    ]


def test_formats_are_named_in_any_case_and_those_of_other_packages_as_they_are(monkeypatch):
    assert translate.formats("SRT, vtt,Srt") == ["srt", "vtt"]
    monkeypatch.setattr(translate, "SINKS", {"srt": "", "Acme": ""})
    assert translate.formats("Srt, Acme") == ["srt", "Acme"]
    with pytest.raises(UsageError, match="unknown format 'acme'; allowed are srt, Acme"):
        translate.formats("acme")


def test_a_file_gets_a_line_for_each_recording(results):
    assert plain_lines(results) == [
        "talk.wav: done; 60 s of audio, 7 sentences, 5.0 × real time; heard and not shown: 4.2 s: uncertain; talk.srt",
        "[b]bad.wav: failed: it is damaged",
        "later.wav: not begun",
        "3 recordings: 1 done, 1 failed, 1 not begun; 60 s of audio, 7 sentences, 5.0 × real time",
    ]


def test_both_languages_are_in_the_files(translated, tmp_path):
    status, said, _ = translated(PHRASES, "--output-dir", tmp_path, "--bilingual", "--format", "srt,vtt,txt")
    assert status == 0, said
    cues = list(srt.parse((tmp_path / "phrases.srt").read_text("utf-8")))
    assert len(cues) == COUNT
    for cue in cues:
        translation, *source = cue.content.splitlines()
        assert not translation.isascii()
        assert source
        assert all(line.isascii() for line in source)
    assert (tmp_path / "phrases.vtt").read_text("utf-8").count("<c.source>") == COUNT
    assert len((tmp_path / "phrases.txt").read_text("utf-8").split("\n\n")) == COUNT + 1


def save(path: Path, samples: Samples, rate: int = 16_000, codec: str | None = None) -> None:
    """Encode in the format of the suffix."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with av.open(str(path), "w") as container:
        stream = container.add_stream(codec or container.default_audio_codec, rate=rate)
        resampler = av.AudioResampler(format=stream.format, layout=stream.layout, rate=rate, frame_size=1024)
        for start in range(0, len(samples), 16_000):
            frame = AudioFrame.from_ndarray(samples[None, start : start + 16_000], format="s16", layout="mono")
            frame.sample_rate = 16_000
            for part in resampler.resample(frame):
                container.mux(stream.encode(part))
        for part in resampler.resample(None):
            container.mux(stream.encode(part))
        container.mux(stream.encode(None))


def test_folders_are_searched_and_mirrored(tmp_path):
    folder = tmp_path / "talks"
    for name in ("b.MP4", "a.wav", "2024/day 1/c.opus", "2024/notes.txt", ".hidden.wav", ".trash/d.wav", "2024/e.srt"):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    os.mkfifo(folder / "pipe.wav")  # without a writer
    (folder / "loop.wav").symlink_to("loop.wav")  # which the run reports
    found = find_recordings([folder, folder / "a.wav"])
    assert [(str(path.relative_to(folder)), str(below)) for path, below in found] == [
        ("2024/day 1/c.opus", "2024/day 1"),
        ("a.wav", "."),
        ("b.MP4", "."),
        ("loop.wav", "."),
    ]
    jobs = plan([folder], ["srt"], tmp_path / "out", ONE_TARGET)
    assert [str(job.outputs["srt", "zh"].relative_to(tmp_path / "out")) for job in jobs] == [
        "2024/day 1/c.srt",
        "a.srt",
        "b.srt",
        "loop.srt",
    ]
    beside = plan([folder], ["srt"], None, ONE_TARGET)
    assert beside[0].outputs["srt", "zh"] == folder / "2024" / "day 1" / "c.srt"
    (folder / "empty").mkdir()
    with pytest.raises(UsageError, match="has no recordings; their names end in"):
        find_recordings([folder / "empty"])
    with pytest.raises(UsageError, match=r"no such file: .*nowhere"):
        find_recordings([tmp_path / "nowhere"])


@pytest.mark.slow
def test_recordings_with_the_same_stem_get_different_subtitle_names(translated, tmp_path, whole):
    shutil.copy(PHRASES, tmp_path / "ep.wav")
    assert translated(tmp_path)[0] == 0
    (tmp_path / "ep.srt").write_text("precious")
    # A second one is added: the output of the first is now ambiguous, and stays.
    save(tmp_path / "ep.mp3", np.zeros(16_000, np.int16))
    assert translated(tmp_path / "ep.mp3")[0] == 0
    status, said, _ = translated(tmp_path)
    assert status == 0, said
    assert (tmp_path / "ep.srt").read_text() == "precious"
    assert (tmp_path / "ep.mp3.srt").read_bytes() == b""
    assert (tmp_path / "ep.wav.srt").read_bytes() == whole[".srt"]
    # Regardless of the other names and their spelling.
    status, said, counting = translated(tmp_path / ".." / tmp_path.name / "ep.wav")
    assert (status, counting.segments) == (0, 0), said
    assert "already there" in said


def test_work_begun_before_a_recording_with_the_same_stem_was_added_is_finished(translated, tmp_path, whole):
    shutil.copy(PHRASES, tmp_path / "ep.wav")
    assert translated(tmp_path / "ep.wav", fail_at_segment=2)[0] == 1
    save(tmp_path / "ep.mp3", np.zeros(16_000, np.int16))
    status, said, counting = translated(tmp_path)
    assert (status, counting.segments) == (0, COUNT - 2), said
    assert (tmp_path / "ep.srt").read_bytes() == whole[".srt"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["ep.mp3", "ep.mp3.srt", "ep.srt", "ep.wav"]


def test_recordings_with_the_same_name_are_not_written_to_one_folder(tmp_path):
    for name in ("x/ep.wav", "y/ep.wav"):
        save(tmp_path / name, np.zeros(160, np.int16))
    named = [tmp_path / "x" / "ep.wav", tmp_path / "y" / "ep.wav"]
    with pytest.raises(
        UsageError, match=r"x/ep\.wav and .*y/ep\.wav would both write .*ep\.srt; give their common parent"
    ):
        plan(named, ["srt"], tmp_path / "out", ONE_TARGET)
    assert len(plan([tmp_path], ["srt"], tmp_path / "out", ONE_TARGET)) == 2


@pytest.mark.slow
def test_each_language_has_files_and_a_journal_of_its_own(translated, tmp_path, whole):
    shutil.copy(PHRASES, tmp_path / "film.wav")
    (tmp_path / "other.toml").write_text(ONE_BY_ONE.read_text("utf-8").replace('"zh"', '"zho_Hant"'))
    other = (tmp_path / "film.wav", "--lang-suffix", "--config", tmp_path / "other.toml")
    assert translated(*other, fail_at_segment=2)[0] == 1
    assert (tmp_path / f"film.zh-Hant{JOURNAL_SUFFIX}").is_file()
    status, said, counting = translated(tmp_path / "film.wav", "--lang-suffix")
    assert (status, counting.segments) == (0, COUNT), said
    assert (tmp_path / "film.zh.srt").read_bytes() == whole[".srt"]
    status, said, counting = translated(*other)
    assert (status, counting.segments) == (0, COUNT - 2), said
    assert "already there" in translated(tmp_path / "film.wav", "--lang-suffix")[1]
    assert {path.name for path in tmp_path.glob("film.*")} == {"film.wav", "film.zh.srt", "film.zh-Hant.srt"}


@pytest.mark.parametrize(
    "damage", [lambda path: path.unlink(), lambda path: path.write_bytes(b"")], ids=["none", "empty"]
)
def test_a_format_without_a_cue_is_written_again_and_the_others_stay(translated, tmp_path, whole, damage):
    arguments = (PHRASES, "--output-dir", tmp_path, "--format", KINDS)
    assert translated(*arguments)[0] == 0
    (tmp_path / "phrases.srt").write_text("precious")
    damage(tmp_path / "phrases.vtt")
    assert translated(*arguments)[0] == 0
    assert files(tmp_path) == whole | {".srt": b"precious"}


def test_subtitles_without_a_cue_do_not_count_as_done(translated, tmp_path, whole, monkeypatch):
    arguments = (PHRASES, "--output-dir", tmp_path, "--format", KINDS)
    with monkeypatch.context() as context:
        context.setattr(Counting, "transcribe", doubted)
        assert translated(*arguments)[0] == 0
    assert sorted(files(tmp_path)) == sorted(whole)
    assert b'"rejected"' in files(tmp_path)[".jsonl"]
    status, said, counting = translated(*arguments)
    assert (status, counting.segments) == (0, COUNT), said
    assert files(tmp_path) == whole


def test_a_pipe_named_like_the_subtitles_does_not_block(tmp_path):
    os.mkfifo(tmp_path / "talk.srt")
    found: list[bool] = []
    looking = threading.Thread(target=lambda: found.append(in_use(tmp_path / "talk.srt")), daemon=True)
    looking.start()
    looking.join(timeout=HANG_S)
    assert found == [False]


def denied(call: Callable[..., Any], part: str) -> Callable[..., Any]:
    """``call`` without the permission for paths that have ``part``: tests may run as root, who has every permission."""

    def refused(path: Any, *arguments: Any, **options: Any) -> Any:
        if part in str(path):
            raise PermissionError(13, "Permission denied", str(path))
        return call(path, *arguments, **options)

    return refused


def test_a_folder_that_cannot_be_searched_is_reported(tmp_path, monkeypatch):
    (tmp_path / "closed").mkdir()
    shutil.copy(PHRASES, tmp_path / "open.wav")
    monkeypatch.setattr(os, "scandir", denied(os.scandir, "/closed"))
    with pytest.raises(UsageError, match=r"closed cannot be searched \(Permission denied\); check its permissions"):
        find_recordings([tmp_path])


def test_a_listed_file_without_permission_is_reported_by_the_run(tmp_path, monkeypatch):
    (tmp_path / "a.wav").touch()
    monkeypatch.setattr(os, "stat", denied(os.stat, "a.wav"))
    assert find_recordings([tmp_path]) == [(tmp_path / "a.wav", Path())]


def test_a_recording_without_permission_is_not_reported_as_missing(tmp_path, monkeypatch):
    monkeypatch.setattr(Path, "stat", denied(Path.stat, "hidden"))
    with pytest.raises(UsageError, match="permission denied: .*hidden"):
        find_recordings([tmp_path / "hidden.wav"])


def test_an_unwritable_folder_is_reported_with_what_to_do(tmp_path, monkeypatch, demo_config):
    (job,) = plan([PHRASES], ["srt"], tmp_path, ONE_TARGET)
    monkeypatch.setattr(os, "access", lambda *_: False)
    for overwrite in (False, True):
        with pytest.raises(UsageError, match="is not writable; choose another with --output-dir"):
            begin(job, demo_config, overwrite=overwrite)
    job.outputs["srt", "zh"].write_text("precious")  # nothing to do, so nothing is written
    assert begin(job, demo_config, overwrite=False) == (Begin.SKIP, {})


def test_an_output_folder_without_permission_fails_only_its_recording(translated, tmp_path, monkeypatch):
    (tmp_path / "in" / "closed").mkdir(parents=True)
    shutil.copy(PHRASES, tmp_path / "in" / "closed" / "a.wav")
    shutil.copy(PHRASES, tmp_path / "in" / "b.wav")
    for call in (os.stat, os.mkdir):
        monkeypatch.setattr(os, call.__name__, denied(call, "out/closed"))
    status, printed, _ = translated(tmp_path / "in", "--output-dir", tmp_path / "out", "--format", "txt")
    assert status == 1
    assert "out/closed (Permission denied); choose another with --output-dir" in printed
    assert (tmp_path / "out" / "b.txt").read_text("utf-8")


@pytest.mark.parametrize("name", ["a.mp3", "f.talk.2024.mov"])
def test_any_container_is_read(demo_models, tmp_path, name, monkeypatch):
    async def loaded(config: PipelineConfig) -> Models:
        return demo_models

    monkeypatch.setattr(translate, "_load", loaded)
    speech = read_wav(EXAMPLES / "travel.wav")[: 16_000 * 3]  # one sentence
    save(tmp_path / name, speech, 48_000)
    assert translate.run([str(tmp_path), "--config", str(ONE_BY_ONE)]) == 0
    (cue,) = srt.parse((tmp_path / name).with_suffix(".srt").read_text("utf-8"))
    assert cue.content == "去柏林的火车几点出发？"


@pytest.mark.skipif(sys.platform == "win32", reason="no locks there that leave a file readable")
def test_two_runs_never_write_the_same_subtitles(translated, tmp_path):
    other = BlockFile(tmp_path / f"phrases{JOURNAL_SUFFIX}", "the other run's")
    with pytest.raises(UsageError, match=r"is being written by another run; wait for it to end"):
        translated(PHRASES, "--output-dir", tmp_path)
    other.close()
    other = BlockFile(tmp_path / "phrases.srt")
    with pytest.raises(UsageError, match=r"phrases\.srt is being written by another run"):
        translated(PHRASES, "--output-dir", tmp_path, "--overwrite")
    other.close()


def arguments(folder: Path, *audio: str | Path) -> tuple[str | Path, ...]:
    return (*(audio or (PHRASES,)), "--output-dir", folder, "--format", KINDS, "--config", ONE_BY_ONE)


@pytest.mark.slow
@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_keeps_finished_work_and_says_how_to_resume(translated, hold, tmp_path, whole, sent):
    with subprocess.Popen(
        command("translate", *arguments(tmp_path)), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        wait_until(lambda: process.poll() is not None or any(path.stat().st_size for path in tmp_path.glob("*.srt")))
        process.send_signal(sent)
        assert process.stdout is not None
        said = process.stdout.readline()
        hold.unlink()
        out, error = process.communicate(timeout=HANG_S)
    assert process.returncode == 130, error.decode()
    assert "Traceback" not in error.decode()
    assert "the same command resumes the run" in error.decode()
    assert "interrupted" in (said + out).decode()
    assert 0 < len(files(tmp_path)[".srt"]) < len(whole[".srt"])
    status, said, _ = translated(*arguments(tmp_path))
    assert status == 0
    assert "finished" in said
    assert files(tmp_path) == whole


@pytest.mark.parametrize(
    ("option", "again"),
    [
        ([], "the same command resumes the run"),
        (
            ["--overwrite"],
            "the same command without --overwrite resumes the run; it keeps old subtitles of recordings that were not begun",
        ),
    ],
)
def test_an_interrupt_names_the_command_that_resumes(option, again, tmp_path, monkeypatch, capsys):
    async def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(translate, "translate_all", interrupted)
    assert translate.run([str(PHRASES), "--config", "demo-zh", "--output-dir", str(tmp_path), *option]) == 130
    assert capsys.readouterr().err == f"interrupted: {again}\n"


@pytest.mark.slow
def test_a_full_disk_is_reported_and_the_next_run_resumes(scripted, translated, tmp_path, whole):
    """A file size limit simulates a full disk."""
    limited = f"ulimit -f 4; exec {shlex.join(command('translate', *arguments(tmp_path)))}"
    done = subprocess.run(["bash", "-c", limited], capture_output=True, timeout=HANG_S, check=False)
    assert done.returncode == 1
    assert "File too large" in done.stderr.decode()
    assert "Traceback" not in done.stderr.decode()
    for suffix, content in files(tmp_path).items():
        assert whole[suffix].startswith(content)
    assert translated(*arguments(tmp_path))[0] == 0
    assert files(tmp_path) == whole


@pytest.mark.slow
def test_closed_output_loses_nothing(scripted, tmp_path, whole):
    shell = shlex.join(command("translate", *arguments(tmp_path)))
    done = subprocess.run(["bash", "-c", shell + " >&- 2>&-"], timeout=HANG_S, check=False)
    assert done.returncode in (0, 1)
    assert files(tmp_path) == whole


@pytest.mark.slow
def test_the_samples_of_a_recording_are_not_kept(translated, tmp_path, monkeypatch):
    """Those of 20 s would be 640 KB. What is recognised at a time comes and goes; what the last minute had is held longer."""
    samples = read_wav(PHRASES)[: 16_000 * 20]
    write_wav(tmp_path / "long.wav", np.tile(samples, 6))
    sizes: dict[int, list[int]] = {part: [] for part in range(6)}

    def count(self: Result, stats: Any, real: Any = Result.count) -> None:
        real(self, stats)
        sizes[min(int(stats.audio_s / 20), 5)].append(tracemalloc.get_traced_memory()[0])

    monkeypatch.setattr(Result, "count", count)
    tracemalloc.start()
    try:
        assert translated(tmp_path / "long.wav")[0] == 0
    finally:
        tracemalloc.stop()
    assert min(sizes[5][:-1]) - min(sizes[4]) < 300_000


def test_names_with_markup_or_undecodable_bytes_are_shown_literally(scripted, tmp_path):
    recording = write_wav(tmp_path / "plain.wav", read_wav(EXAMPLES / "travel.wav")[: 16_000 * 4])
    recording = recording.rename(tmp_path / "[bold] \udcff.wav")
    done = run("translate", recording, "--config", ONE_BY_ONE)
    assert done.returncode == 0, done.stderr.decode()
    assert rf"{tmp_path}/[bold] \xff.wav" in done.stdout.decode()
    assert rf"{tmp_path}/[bold] \xff.srt" in done.stdout.decode()
    assert r"[bold] \xff.wav: " in done.stderr.decode()
    assert recording.with_suffix(".srt").stat().st_size > 0


def test_pauses_are_heard_as_far_as_other_options_leave_room():
    vad = load_config("demo").vad
    assert vad.filled_ms == 6_000
    for most_ms, filled_ms in ((3_500, 2_659), (1_000, 159)):
        assert replace(vad, max_segment_ms=most_ms, cut_search_ms=500).filled_ms == filled_ms
    assert replace(vad, fill_ms=0).filled_ms == 0


def test_no_draft_model_is_loaded_for_recordings(tmp_path, monkeypatch):
    asked: list[PipelineConfig] = []

    def load_models(config: PipelineConfig) -> Models:
        asked.append(config)
        raise UsageError("enough")

    monkeypatch.setattr("pipeline.config.loading.load_models", load_models)
    path = tmp_path / "my.toml"
    path.write_text(ONE_BY_ONE.read_text("utf-8") + '[asr.draft]\nmodel = "tiny.en"\n')
    with pytest.raises(UsageError, match="enough"):
        translate.run([str(PHRASES), "--config", str(path), "--output-dir", str(tmp_path)])
    assert [(config.asr.draft.model, config.draft_model) for config in asked] == [("tiny.en", None)]
