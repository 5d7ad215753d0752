"""Calls with a speaker in each channel: who said what, in order of time, in files and after an interruption."""

import json
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from pipeline import PipelineConfig
from pipeline.apps import translate
from pipeline.archives.journal import JournalSink
from pipeline.archives.speakers import in_order_of_time
from pipeline.core.nmt.translator import TextTranslator, TranslationRequest
from pipeline.errors import SinkError
from pipeline.events import (
    EndOfInput,
    PipelineEvent,
    Samples,
    SourceSentence,
    SourceText,
    TargetText,
    Transcript,
    Translation,
)
from pipeline.media.audio.recording import Recording
from tests.conftest import PHRASES, read_wav
from tests.fixtures.scripted.loading import Models, Recognizer, Translator
from tests.media.audio.films import Sound, film
from tests.streams import spoken, translated

TURNS_S = (0.0, 4.7, 7.1, 10.4, 13.2, 19.6)
"""Where the speaker changes in a call made of the phrases."""
TURNS = [
    ("Ana", "The plane from Tokyo arrives"),
    ("Ben", "Where is the post office"),
    ("Ana", "This umbrella costs"),
    ("Ben", "My brother likes noodles"),
    ("Ana", "I want to go to Shanghai"),
    ("Ana", "The museum is closed"),
]


def call(leak_db: float = -100.0, ben_db: float = 0.0, lead_s: float = 0.0) -> Samples:
    """The channels [2, n] of Ana and Ben, each with a late and quieter copy of the other one. ``lead_s``: Ben speaks so much
    sooner, into what Ana says."""
    said = read_wav(PHRASES).astype(np.float64)
    channels = np.zeros((2, len(said)))
    for number, (begin_s, end_s) in enumerate(pairwise(TURNS_S)):
        turn = slice(round(begin_s * 16_000), round(end_s * 16_000))
        channels[number % 2, turn] = said[turn]
    channels[1] = 10 ** (ben_db / 20) * np.roll(channels[1], -round(lead_s * 16_000))
    heard = channels + 10 ** (leak_db / 20) * np.roll(channels[::-1], 800, axis=1)
    noise = np.random.default_rng(0).normal(0, 10, heard.shape)
    return to_samples(heard + noise)


def to_samples(sound: npt.NDArray[Any]) -> Samples:
    return np.clip(np.rint(sound), -32_768, 32_767).astype(np.int16)


def recorded(path: Path, channels: Samples) -> Path:
    return film(path, Sound(channels, layout="stereo" if len(channels) == 2 else "mono"))


class Counted:
    """A translator that counts its sentences."""

    def __init__(self, model: TextTranslator) -> None:
        self.model, self.count = model, 0

    def stream(self, request: TranslationRequest) -> Iterator[TargetText | Translation]:
        self.count += 1
        return self.model.stream(request)


@pytest.fixture
def counted() -> list[Counted]:
    """The translator of each run: that of a run that was cut may still be called."""
    return []


@pytest.fixture
def run(counted: list[Counted], monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    """Runs the command with scripted models; ``cut_at``: the journal's event that cannot be written."""

    def load() -> Models:
        counted.append(Counted(Translator()))
        return Models(Recognizer(), {"zh": counted[-1]})

    return running(monkeypatch, load)


def running(patch: pytest.MonkeyPatch, load: Callable[[], Models]) -> Callable[..., int]:
    write = JournalSink.write

    async def loaded(config: PipelineConfig) -> Models:
        models = load()
        return replace(models, translations=dict.fromkeys(config.languages.targets, models.translations["zh"]))

    def called(*arguments: str | Path, cut_at: int = -1) -> int:
        left = iter(range(cut_at, -1, -1) if cut_at >= 0 else ())

        def limited(sink: JournalSink, event: PipelineEvent) -> None:
            if next(left, None) == 0:
                raise SinkError("the disk was full for a moment")
            write(sink, event)

        patch.setattr(JournalSink, "write", limited)
        return translate.run([*map(str, arguments), "--config", "demo-zh", "--speakers", "Ana, Ben"])

    patch.setattr(translate, "_load", loaded)
    return called


def records(path: Path, kind: str) -> list[dict[str, Any]]:
    return [record for record in map(json.loads, path.read_text("utf-8").splitlines()) if record["type"] == kind]


def who_said(path: Path, turns: Sequence[tuple[str, str]] = TURNS) -> list[tuple[str, str]]:
    """Speaker and the beginning of each sentence, as long as that of ``turns``."""
    said = [(record["speaker"], record["text"]) for record in records(path, "source_sentence")]
    return [(name, text[: len(turn)]) for (name, text), (_, turn) in zip(said, turns, strict=True)]


def who_spoke(path: Path) -> list[tuple[str, float, float]]:
    """Speaker, start and end of each segment in which words were heard."""
    return [(heard["speaker"], heard["start_s"], heard["end_s"]) for heard in records(path, "transcript")]


def assert_each_turn_is_heard(path: Path, lead_s: float = 0.0) -> None:
    """A turn is a segment or two, which may have some of the pauses around it. ``lead_s``: see ``call``."""
    unexpected = spoken = who_spoke(path)
    for number, turn in enumerate(pairwise(TURNS_S)):
        name, sooner_s = [("Ana", 0.0), ("Ben", lead_s)][number % 2]
        begin_s, end_s = (time_s - sooner_s for time_s in turn)
        own = [each for each in spoken if each[0] == name and begin_s - 0.3 < each[1] < each[2] < end_s + 0.3]
        assert sum(end_s - start_s for _, start_s, end_s in own) > 0.5 * (end_s - begin_s), (name, begin_s, spoken)
        unexpected = [each for each in unexpected if each not in own]
    assert unexpected == [], "said by another speaker"


@pytest.mark.slow
def test_each_channel_of_a_call_is_a_speaker(demo_models, monkeypatch, tmp_path):
    """With real models."""
    turns, end_s = TURNS[:3], TURNS_S[3]
    path = recorded(tmp_path / "call.wav", call(leak_db=-30)[:, : round(end_s * 16_000)])
    assert running(monkeypatch, lambda: demo_models)(path, "--format", "jsonl,vtt,txt") == 0
    assert who_said(tmp_path / "call.jsonl", turns) == turns  # each sentence once
    sentences = records(tmp_path / "call.jsonl", "source_sentence")
    assert [sentence["sentence"] for sentence in sentences] == list(range(len(turns)))
    starts = [sentence["start_s"] for sentence in sentences]
    assert all(begin < start < end for start, begin, end in zip(starts, TURNS_S, TURNS_S[1:], strict=False))
    assert len(records(tmp_path / "call.jsonl", "translation")) == len(turns)
    (end,) = records(tmp_path / "call.jsonl", "end")
    assert end["duration_s"] == pytest.approx(end_s, abs=0.1)
    vtt = (tmp_path / "call.vtt").read_text("utf-8")
    assert [line[3:6] for line in vtt.splitlines() if line.startswith("<v ")] == ["Ana", "Ben", "Ana"]
    lines = (tmp_path / "call.txt").read_text("utf-8").splitlines()
    assert [line.partition("：")[0] for line in lines if "：" in line] == ["Ana", "Ben", "Ana"]
    assert len(lines) == len(turns)


CALLS = {
    "apart": call(),
    "microphones in one room": call(leak_db=-12),
    "mixed for headphones": to_samples(np.array([[0.7, 0.3], [0.3, 0.7]]) @ call()),
}


@pytest.mark.parametrize("name", CALLS)
def test_what_others_say_in_a_channel_is_not_its_speaker_s(run, tmp_path, name):
    assert run(recorded(tmp_path / "call.wav", CALLS[name]), "--format", "jsonl") == 0
    assert_each_turn_is_heard(tmp_path / "call.jsonl")


def test_both_are_heard_where_they_speak_at_once(run, tmp_path):
    path = recorded(tmp_path / "call.wav", call(leak_db=-40, ben_db=-12, lead_s=3.5))
    assert run(path, "--format", "jsonl") == 0
    assert_each_turn_is_heard(tmp_path / "call.jsonl", lead_s=3.5)


def test_the_same_sound_in_both_channels_is_of_the_first_speaker(run, tmp_path):
    both = np.stack([read_wav(PHRASES)] * 2)
    assert run(recorded(tmp_path / "talk.wav", both), "--format", "jsonl") == 0
    assert [name for name, *_ in who_spoke(tmp_path / "talk.jsonl")] == ["Ana"] * len(TURNS)


def test_a_channel_of_a_recording_is_read_without_the_others(tmp_path):
    ana, ben = (read_wav(PHRASES)[begin * 16_000 :][: 2 * 16_000] for begin in (1, 8))
    quiet = np.zeros_like(ana)
    path = recorded(tmp_path / "call.wav", np.stack([np.r_[ana, ana // 30], np.r_[quiet, ben]]))
    for channel, expected in enumerate((np.r_[ana, quiet], np.r_[quiet, ben])):
        source = Recording(path, speaker=channel)
        assert source.channels == 2
        chunks = []
        while (chunk := source.read()) is not None:
            chunks.append(chunk)
        heard = np.concatenate(chunks)[: len(expected)]
        error = heard.astype(float) - expected[: len(heard)]
        assert np.mean(error**2) < 0.01 * np.mean(expected.astype(float) ** 2)


def test_a_recording_with_another_number_of_channels_is_refused(run, tmp_path, capsys):
    assert run(recorded(tmp_path / "talk.wav", read_wav(PHRASES)[None])) == 1
    assert "talk.wav has 1 channel where --speakers names 2; name one for each channel" in capsys.readouterr().err
    assert not (tmp_path / "talk.srt").exists()


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.1, 0.3, 0.6, 0.9])
def test_a_call_that_was_cut_ends_up_with_the_same_files(run, counted, tmp_path, share):
    path = recorded(tmp_path / "call.wav", call(leak_db=-20)[:, : 13 * 16_000])
    arguments = (path, "--target", "zh,zh-TW", "--format", "srt,jsonl")
    assert run(*arguments, "--output-dir", tmp_path / "whole") == 0
    lines = (tmp_path / "whole" / "call.jsonl").read_text("utf-8").splitlines()
    kinds = [json.loads(line)["type"] for line in lines]
    assert (
        run(
            *arguments,
            "--output-dir",
            tmp_path / "cut",
            cut_at=int(share * sum(kind not in ("events", "cue") for kind in kinds)),
        )
        == 1
    )
    known = len(records(next((tmp_path / "cut").glob("*.unfinished.jsonl")), "translation"))
    assert run(*arguments, "--output-dir", tmp_path / "cut") == 0
    assert counted[-1].count == kinds.count("translation") - known
    found = [{each.name: each.read_bytes() for each in (tmp_path / name).iterdir()} for name in ("whole", "cut")]
    assert found[0] == found[1]


def test_a_run_with_other_speakers_is_not_resumed(run, tmp_path, capsys):
    path = recorded(tmp_path / "call.wav", call()[:, : 5 * 16_000])
    assert run(path, cut_at=1) == 1
    assert translate.run([str(path), "--config", "demo-zh"]) == 1
    assert "was begun with --speakers Ana,Ben; finish it" in capsys.readouterr().err
    assert translate.run([str(path), "--config", "demo-zh", "--speakers", "Ben,Ana"]) == 1


async def stream(*events: PipelineEvent) -> AsyncGenerator[PipelineEvent, None]:
    for event in events:
        yield event


async def test_sentences_of_several_speakers_come_in_order_of_time():
    """A sentence in progress, what is withheld, and the end do not hold back or renumber what others say."""
    ana = [
        Transcript(0, 0.0, 3.0, "A", "en"),
        SourceText(0, "en", "A", 0, 0.0, 3.0),
        Transcript(1, 5.0, 9.0, "a", "en"),
        *(*spoken(0, "A a", 0.0, 9.0), *translated(0, "甲")),
        *(*spoken(1, "AA", 9.5, 12.0), *translated(1, "丙")),
        Transcript(2, 15.0, 16.0, "", "en", rejected="silence"),
        EndOfInput(16.0),
    ]
    ben = [Transcript(0, 4.0, 5.0, "B", "en"), *spoken(0, "B", 4.0, 5.0), *translated(0, "乙"), EndOfInput(15.9)]
    found = [event async for event in in_order_of_time({"Ana": stream(*ana), "Ben": stream(*ben)})]
    assert [
        (event.sentence, event.speaker, event.text) for event in found if isinstance(event, SourceText | SourceSentence)
    ] == [(n, name, text) for n, (name, text) in enumerate([("Ana", "A a"), ("Ben", "B"), ("Ana", "AA")]) for _ in "12"]
    assert [(event.sentence, event.text) for event in found if isinstance(event, Translation)] == [
        *((0, "甲"), (1, "乙"), (2, "丙"))
    ]
    heard = [(event.speaker, event.segment_id) for event in found if isinstance(event, Transcript)]
    assert heard == [("Ana", 0), ("Ana", 1), ("Ben", 0), ("Ana", 2)]
    assert [event for event in found if isinstance(event, EndOfInput)] == [found[-1]] == [EndOfInput(16.0)]


async def test_a_stream_that_breaks_off_has_no_end():
    said = [*spoken(0, "A", 0.0, 9.0), *translated(0, "甲")]
    found = [event async for event in in_order_of_time({"1": stream(*said), "2": stream(EndOfInput(9.0))})]
    assert found
    assert not any(isinstance(event, EndOfInput) for event in found)
