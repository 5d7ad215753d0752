"""The drafts benchmark: how sentences grow, what is compared, and the command."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.bench.__main__ import run
from pipeline.bench.drafts import Erasure, beginnings, compared, erasure
from pipeline.errors import PipelineError, UsageError
from pipeline.nmt import search
from pipeline.nmt.model import MarianModel
from tests.conftest import SHIPPED_TRANSLATORS, make_model_dir

SENTENCES = ["Where is the bank?", "The meeting is on Thursday at two thirty."]


def test_a_sentence_grows_by_words_or_characters() -> None:
    assert beginnings("one two three", "en", 1) == ["one", "one two", "one two three"]
    assert beginnings("one two three", "en", 2) == ["one two", "one two three"]
    assert beginnings("one", "en", 3) == ["one"]
    assert beginnings("银行在哪里", "zh", 2) == ["银行", "银行在哪", "银行在哪里"]


def test_hidden_words_are_not_withdrawn() -> None:
    model = MarianModel.load(SHIPPED_TRANSLATORS["demo-en-zh"])
    grown = [beginnings(sentence, "en", 1) for sentence in SENTENCES]
    kinds = [erasure(grown, model, "en", "zh", hidden) for hidden in (0, 3, 100)]
    assert kinds[0].rate > kinds[1].rate >= kinds[2].rate
    assert 1 == kinds[0].shown > kinds[1].shown > kinds[2].shown >= 0.25
    assert len({kind.final for kind in kinds}) == 1
    assert Erasure(0, 5, 10, 1.0).rate == 0.5


def test_a_model_that_cannot_verify_is_compared_too(tmp_path: Path) -> None:
    model = MarianModel.load(make_model_dir(tmp_path, "merged"))
    vars(model.decoder)["rounding"] = None
    found = list(compared(beginnings(SENTENCES[1], "en", 2), model, "en", "zh"))
    assert len(found) == 3
    assert all(update.same and update.tokens > 1 for update in found)


def test_the_command_prints_times_and_erasure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = tmp_path / "text.txt"
    text.write_text("\n".join(SENTENCES), "utf-8")
    assert run(["drafts", str(text), "--config", "demo-zh", "--step", "2", "--hidden", "0", "4"]) == 0
    said = capsys.readouterr().out
    assert "4 updates; the model verifies drafts\nsame tokens: 4\n" in said
    assert "characters hidden" in said
    assert [line.split(":")[0] for line in said.splitlines()[-2:]] == ["  0", "  4"]


def test_other_tokens_fail_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = tmp_path / "text.txt"
    text.write_text(SENTENCES[0], "utf-8")

    def wrong(*arguments: object, **named: object) -> object:
        return list(search.greedy(*arguments[:3]))[1:]  # type: ignore[arg-type]

    monkeypatch.setattr("pipeline.bench.drafts.verified", wrong)
    with pytest.raises(PipelineError, match="verification gave other tokens than greedy search"):
        run(["drafts", str(text), "--config", "demo-zh"])


def test_sentences_that_never_grow_are_refused(tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    text.write_text("Hello.", "utf-8")
    with pytest.raises(UsageError, match="never grow"):
        run(["drafts", str(text), "--config", "demo-zh"])
