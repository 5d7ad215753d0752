"""The pause benchmark: where pauses are put, what is compared, and the command."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from sacrebleu.metrics import CHRF

from pipeline import Models
from pipeline.apps.translate import for_recordings
from pipeline.bench.__main__ import run
from pipeline.bench.pause_material import Gap, at_clause, gaps, inside_sentence, sentences_in, with_pause
from pipeline.bench.pauses import (
    Broken,
    Texts,
    as_text,
    candidates,
    compared,
    recognised,
    recordings_in,
    variant,
    words_stay_whole,
)
from pipeline.config import PipelineConfig
from pipeline.errors import UsageError
from pipeline.events import Samples, Word
from tests.conftest import EXAMPLES, read_wav

MS = 16
"""Samples in a millisecond."""


def sound(ms: int, level: float = 3000.0) -> Samples:
    return np.random.default_rng(ms).normal(0, level, ms * MS).astype(np.int16)


def silence(ms: int) -> Samples:
    return sound(ms, 3.0)


@given(st.lists(st.tuples(st.integers(0, 15), st.integers(-4, 4), st.integers(-4, 4)), min_size=2, max_size=6))
@example([(5, 0, 0), (6, 0, 0), (0, 0, 0)])
def test_a_gap_is_between_the_words_and_never_in_a_closure_inside_one(steps: list[tuple[int, int, int]]) -> None:
    """Words of 420 ms with a closure of 120 ms in their middle; the word times err by up to 40 ms."""
    samples = [silence(200)]
    words: list[Word] = []
    real: dict[int, tuple[int, int]] = {}
    at = 200
    for index, (pause, begin_error, end_error) in enumerate(steps):
        samples += [sound(150), silence(120), sound(150), silence(10 * pause)]
        words.append(Word(" word", (at + 10 * begin_error) / 1000, (at + 420 + 10 * end_error) / 1000))
        at += 420
        if index < len(steps) - 1:
            real[index] = (at * MS, (at + 10 * pause) * MS)
        at += 10 * pause
    found = {gap.after: gap for gap in gaps(np.concatenate([*samples, silence(200)]), words)}
    for after, gap in found.items():
        assert real[after][0] <= gap.begin < gap.middle < gap.end <= real[after][1]
    assert set(found) == {after for after, (begin, end) in real.items() if end - begin >= 60 * MS}


@pytest.fixture(scope="module")
def travel(demo_models: Models, demo_config: PipelineConfig) -> tuple[Samples, list[Word]]:
    samples = read_wav(EXAMPLES / "travel.wav")
    return samples, recognised(samples, demo_models, demo_config)


def test_gaps_in_a_recording_of_speech_are_silent(travel: tuple[Samples, list[Word]]) -> None:
    samples, words = travel
    found = gaps(samples, words)
    assert len(found) >= 6
    for gap in found:
        assert gap.end - gap.begin >= 60 * MS
        assert samples[gap.begin : gap.end].std() < samples.std() / 8


def test_sentences_are_cut_at_the_gaps_between_them(travel: tuple[Samples, list[Word]]) -> None:
    samples, words = travel
    found = sentences_in(samples, words, "en")
    texts = ["".join(word.text for word in own).strip() for _, own in found]
    assert [text[-1] for text in texts] == ["?", ".", ".", ".", ".", "."]
    assert " ".join(texts) == "".join(word.text for word in words).strip()
    for part, own in found:
        assert 0 <= own[0].start_s < own[-1].end_s <= len(part) / 16_000 + 0.05
        assert max(part[:160].std(), part[-160:].std()) < samples.std() / 20  # cut in silence


def test_a_gap_inside_a_word_is_recognised_as_one(travel: tuple[Samples, list[Word]], demo_models: Models) -> None:
    samples, words = travel
    ends = [i for i, word in enumerate(words[:-1]) if word.text.endswith("?")]
    gap = next(gap for gap in gaps(samples, words) if gap.after == ends[0])
    assert words_stay_whole(samples, words, gap, demo_models, "en")
    # In the middle of "Berlin", the word before.
    middle = round((words[ends[0] - 1].start_s + words[ends[0] - 1].end_s) / 2 * 16_000)
    inside = Gap(ends[0] - 1, middle - 480, middle + 480)
    assert not words_stay_whole(samples, words, inside, demo_models, "en")


def test_in_constant_noise_no_gap_is_found() -> None:
    words = [Word(" one", 0.0, 0.5), Word(" two", 0.5, 1.0)]
    assert gaps(sound(1000), words) == []
    assert gaps(np.zeros(0, np.int16), words) == []


def test_a_pause_has_the_noise_of_the_recording_and_leaves_the_rest_as_it_is() -> None:
    samples = np.concatenate([sound(300), sound(100, 20.0) + np.int16(400), sound(300)])
    gap = Gap(0, 300 * MS, 400 * MS)
    longer = with_pause(samples, gap, 0.6)
    assert len(longer) == len(samples) + 600 * MS
    assert np.array_equal(longer[: 350 * MS], samples[: 350 * MS])
    assert np.array_equal(longer[950 * MS :], samples[350 * MS :])
    assert longer[350 * MS : 950 * MS].std() == pytest.approx(20.0, rel=0.2)
    assert longer[350 * MS : 950 * MS].mean() == pytest.approx(400, abs=2)


def test_a_pause_is_put_after_a_comma_or_inside_a_clause_and_not_at_an_end() -> None:
    words = [Word(text, i / 2, i / 2 + 0.3) for i, text in enumerate([" One", " two,", " three", " four", " five."])]
    samples = np.concatenate([part for _ in words for part in (sound(300), silence(200))])
    assert [gap.after for gap in gaps(samples, words)] == [0, 1, 2, 3]
    assert [gap.after for gap in gaps(samples, words) if inside_sentence(words, gap)] == [1, 2]
    assert [gap.after for gap in candidates(samples, words, prefer_comma=True)] == [1, 2]
    assert [gap.after for gap in candidates(samples, words, prefer_comma=False)] == [2, 1]
    assert [at_clause(words, gap) for gap in candidates(samples, words, prefer_comma=True)] == [True, False]
    assert candidates(samples, words[:3], prefer_comma=True) == []


def test_recordings_have_the_settings_of_the_command(demo_config: PipelineConfig) -> None:
    found, expected = variant(demo_config, "recording", "on"), for_recordings(demo_config)
    assert (found.asr, found.drafts) == (expected.asr, expected.drafts)
    assert variant(demo_config, "live", "on").asr == demo_config.asr


def test_scores_are_those_of_sacrebleu(
    demo_config: PipelineConfig,
) -> None:
    pair = Broken("a", np.zeros(0, np.int16), np.zeros(0, np.int16), 0.6, True, "We eat, | then we go.")
    whole = Texts(("We eat, then we go.",), ("我们吃饭，然后走。",))
    broken = Texts(("We eat.", "Then we go."), ("我们吃。", "然后我们走。"))
    result = compared(pair, "recording", "on", whole, broken, demo_config)
    assert result.score == pytest.approx(CHRF().sentence_score("我们吃。然后我们走。", ["我们吃饭，然后走。"]).score)
    assert (result.source_errors, result.letter_errors, result.characters) == (2, 0, 19)
    same = compared(pair, "recording", "off", whole, whole, demo_config)
    assert (same.score, same.source_errors, same.letter_errors) == (pytest.approx(100), 0, 0)


def test_the_table_has_the_mean_loss_of_each_way_and_the_ratio_of_the_losses(demo_config: PipelineConfig) -> None:
    first, second = (
        Broken(name, np.zeros(0, np.int16), np.zeros(0, np.int16), pause_s, comma, "")
        for name, pause_s, comma in (("a", 0.6, True), ("b", 1.4, False))
    )
    whole, other = Texts(("Go, now.",), ("现在走。",)), Texts(("Go.", "Now."), ("啊", "哦"))
    results = [
        compared(first, "live", "off", whole, other, demo_config),
        compared(second, "live", "off", whole, other, demo_config),
        compared(first, "live", "on", whole, whole, demo_config),
        compared(second, "live", "on", whole, other, demo_config),
    ]
    table = as_text(results).splitlines()
    assert table[0] == "2 sentences with a pause: 1 after a comma, 1 inside a clause"
    assert " ".join(table[2].split()) == "live, assembler off 0.0 100.0 100.0 nan 100.0 100.0 100.0 0% 2.00 25.0% 0.0%"
    assert " ".join(table[3].split()) == "live, assembler on 50.0 50.0 0.0 nan 100.0 0.0 100.0 50% 1.50 12.5% 0.0%"
    assert table[4] == "live: loss with the assembler on / off: 0.50"


@pytest.mark.slow
def test_the_command_compares_the_sentences_of_a_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "novel.wav").write_bytes((EXAMPLES / "novel.wav").read_bytes())
    out = tmp_path / "out.jsonl"
    arguments = [
        "pauses",
        str(tmp_path),
        "--config",
        "demo-zh",
        "--count",
        "2",
        "--mode",
        "recording",
        "--json",
        str(out),
    ]
    assert run(arguments) == 0
    assert capsys.readouterr().out.startswith("2 sentences with a pause: ")
    results = [json.loads(line) for line in out.read_text("utf-8").splitlines()]
    assert [(one["mode"], one["assembler"]) for one in results] == [
        ("shifted", "on"), ("recording", "off"), ("recording", "on"),
    ] * 2  # fmt: skip
    assert [one["pause_s"] for one in results] == [0.6] * 3 + [1.0] * 3
    assert all(one["whole"]["sources"] and one["whole"]["targets"] for one in results)
    assert len(results[4]["broken"]["sources"]) > 1, "without the assembler, the pause of 1 s parts the sentence"


def test_a_folder_without_recordings_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no recordings in"):
        recordings_in([tmp_path])
    with pytest.raises(SystemExit):
        run(["pauses", str(tmp_path), "--mode", "radio"])
