"""Turns, medians, ratios and agreement; engines that fail and runs that are interrupted."""

from __future__ import annotations

import io
import itertools
from collections.abc import Sequence
from types import SimpleNamespace

import pytest
from rich.console import Console

from pipeline.bench.comparison import measure, rounds
from pipeline.bench.comparison.engines import Candidate, Engine
from pipeline.bench.comparison.fresh import measure_fresh
from pipeline.bench.comparison.machine import this_machine
from pipeline.bench.comparison.measure import Measurement, Plan
from pipeline.bench.comparison.results import REFERENCE, Results, Spread, agreement, summarise
from pipeline.bench.comparison.rounds import Turn, take_turns
from pipeline.bench.comparison.table import print_results
from pipeline.errors import ModelError
from tests.conftest import ROOT, TINY, golden

SOURCE = golden("tiny-marian")[0]["source_ids"]
TINY_MODEL = Candidate("tiny", "pipeline", str(TINY), 200_000, lossless=True)


class FakeEngine:
    """A fake engine that records the order of calls."""

    def __init__(self, name: str, calls: list[str], short_by: int = 0) -> None:
        self._name, self._calls, self._short_by = name, calls, short_by

    def decode(self, source: Sequence[int], tokens: int) -> list[int]:
        self._calls.append(self._name)
        return [7] * (tokens - self._short_by)

    def translate(self, source: Sequence[int], limit: int) -> list[int]:
        return [7]


def test_engines_take_turns_and_each_round_begins_with_another() -> None:
    engines: dict[str, Engine] = {name: FakeEngine(name, []) for name in "abc"}
    turns = [(number, name) for number, name, _ in take_turns(engines, [[1]], 3, 3, settle=False)]
    assert turns == [(0, "a"), (0, "b"), (0, "c"), (1, "b"), (1, "c"), (1, "a"), (2, "c"), (2, "a"), (2, "b")]


def test_a_translation_of_another_length_is_not_timed() -> None:
    with pytest.raises(RuntimeError, match="0 tokens instead of 1"):
        list(take_turns({"a": FakeEngine("a", [], short_by=1)}, [[1]], 3, 1, settle=False))


def test_ratios_are_taken_round_by_round() -> None:
    own, other = [Turn(5, 9, 1), Turn(5, 9, 2)], [Turn(6, 9, 4), Turn(6, 9, 6)]
    row = summarise("own", 1, own, other, 0.5)
    assert row.further_ms == Spread(1.5, 1, 2)
    assert row.ratio == Spread(3.5, 3, 4)
    assert row.sentence_ratio == Spread(1, 1, 1)
    assert summarise("own", 1, own, [], 0.5).ratio is None


@pytest.mark.parametrize("terminal", [False, True])
def test_a_narrow_terminal_truncates_no_cell(terminal: bool) -> None:
    turns = [Turn(36.5, 180.25, 1777.5), Turn(38.5, 190.75, 1999.5)]
    row = summarise("CTranslate2 int8, a long name", 1, turns, turns, 4.25)
    results = Results("model", True, this_machine(), 1, 9.0, 40, 2, {1: 12.5}, [], {}, [row])
    file = io.StringIO()
    print_results(results, Console(file=file, width=60, force_terminal=terminal, color_system=None))
    cells = [
        cell.strip() for line in file.getvalue().splitlines() if line.startswith("| CT") for cell in line.split("|")
    ]
    assert cells[1] == "CTranslate2 int8, a long name"
    assert cells[2] == "37.5 (36.5–38.5)"
    assert "…" not in file.getvalue()


def test_agreement_counts_tokens_before_the_first_difference() -> None:
    found = agreement("x", [[1, 2, 3], [4, 5]], [[1, 9, 3], [4, 5]])
    assert (found.same_sentences, found.sentences, found.same_tokens, found.tokens) == (1, 2, 3, 5)
    assert agreement("x", [[1, 2]], [[1, 2, 3]]).same_sentences == 0


def test_a_run_measures_every_engine_with_every_number_of_threads() -> None:
    measurement = Measurement([TINY_MODEL])
    reports: list[tuple[str, float]] = []
    plan = Plan([SOURCE], tokens=4, rounds=2, threads=(1, 2), starts=1)
    measurement.run(plan, lambda what, done: reports.append((what, done)))
    assert [(row.threads, row.name, len(row.turns), row.ratio) for row in measurement.rows()] == [
        (1, "tiny", 2, None),
        (2, "tiny", 2, None),
    ]
    assert all(row.floor_ms > 0 for row in measurement.rows())
    assert measurement.bandwidth_gb_s.keys() == {1, 2}
    assert [done for what, done in reports if what == "2 rounds with 2 threads"] == [0, 0.5, 1]
    (profile,) = measurement.profiles
    assert profile.agreement is not None
    assert profile.agreement.same_tokens == profile.agreement.tokens > 0
    # Tens of MB for ONNX Runtime and the graphs, not the hundreds of MB of this process.
    assert profile.fresh.resident_mb is None or 20 < profile.fresh.resident_mb < 200


def test_results_before_an_interrupt_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    class Interrupting(FakeEngine):
        def decode(self, source: Sequence[int], tokens: int) -> list[int]:
            if len(self._calls) == 15:  # a turn has three calls, so the other engine has finished its third turn
                raise KeyboardInterrupt
            return super().decode(source, tokens)

    calls: list[str] = []
    engines = {REFERENCE: FakeEngine(REFERENCE, calls), "b": Interrupting("b", calls)}
    squares = (float(n * n) for n in itertools.count())  # the fake engines take no time; avoid division by zero
    monkeypatch.setattr(rounds, "time", SimpleNamespace(perf_counter=lambda: next(squares), sleep=lambda _: None))
    monkeypatch.setattr(measure, "open_engine", lambda candidate, threads: engines[candidate.name])
    monkeypatch.setattr(measure.Measurement, "_profile", lambda *_: None)
    measurement = Measurement([Candidate(name, "pipeline", "", 0) for name in engines])
    with pytest.raises(KeyboardInterrupt):
        measurement.run(Plan([SOURCE], 4, 5, (1,)), lambda *_: None)
    assert [(row.name, len(row.turns)) for row in measurement.rows()] == [(REFERENCE, 2), ("b", 2)]


def test_an_engine_that_does_not_start_is_left_out_with_the_reason() -> None:
    with pytest.raises(ModelError, match="nowhere"):
        measure_fresh(Candidate("x", "pipeline", "nowhere", 0), 1, SOURCE, 2, 1)
    measurement = Measurement([Candidate("x", "pipeline", "nowhere", 0), TINY_MODEL])
    measurement.run(Plan([SOURCE], 4, 1, (1,), starts=1), lambda *_: None)
    assert "nowhere" in measurement.left_out["x"]
    assert [row.name for row in measurement.rows()] == ["tiny"]


@pytest.mark.parametrize("candidates", [[], [Candidate("x", "pipeline", "nowhere", 0)]], ids=["none", "one"])
def test_an_error_names_every_engine_left_out_with_its_reason(candidates: list[Candidate]) -> None:
    measurement = Measurement(candidates, left_out={"CTranslate2": "the weights cannot be read"})
    with pytest.raises(
        ModelError, match="no engine can be measured: CTranslate2: the weights cannot be read"
    ) as caught:
        measurement.run(Plan([SOURCE], 4, 1, (1,), starts=1), lambda *_: None)
    assert all(f"; {one.name}: " in str(caught.value) for one in candidates)


def test_our_decoder_generates_the_requested_number_of_tokens() -> None:
    from pipeline.bench.comparison.engines import open_engine

    engine = open_engine(Candidate("demo", "pipeline", str(ROOT / "models" / "demo" / "nmt-en-zh"), 0), 1)
    row = golden("demo-en-zh")[0]
    assert engine.translate(row["source_ids"], 256) == row["target_ids"][:-1]
    natural = len(row["target_ids"])
    assert [len(engine.decode(row["source_ids"], tokens)) for tokens in (1, natural + 4)] == [1, natural + 4]
