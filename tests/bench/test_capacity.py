"""python -m pipeline.bench capacity: how many sessions a machine carries."""

import argparse
import asyncio
import json
import math
import os
import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.bench import capacity
from pipeline.bench import serve_clients as clients
from pipeline.bench.__main__ import run
from pipeline.bench.capacity import Trial, most_carried, repeated, trials_table
from pipeline.bench.processes import Load, Sampler, Usage
from pipeline.bench.serve_clients import PlayedSession, Reception
from pipeline.errors import PipelineError, UsageError
from pipeline.events import Samples
from pipeline.server.limits import ServerLimits

LOAD = Load(0.5, 400.0, 0.1)
TRANSLATION = {"type": "translation", "sentence": 0, "language": "zh", "text": "你好。"}


@given(st.integers(0, 300), st.integers(1, 200))
def test_the_most_sessions_are_found_by_doubling_and_bisection(carried, most):
    tried: list[int] = []

    async def carries(number: int) -> bool:
        tried.append(number)
        return number <= carried

    assert asyncio.run(most_carried(carries, most)) == min(carried, most)
    assert len(set(tried)) == len(tried) <= 2 * math.log2(most) + 2
    assert max(tried) <= max(1, 2 * carried), "a machine that does not carry a number is not tried with more"


def test_a_trial_is_carried_if_each_session_is():
    quick, slow = ([0.5, 1.0], [1.0], [9.0]), ([0.5, 1.0], [1.0, 5.0], [9.0])
    assert Trial.of([quick], LOAD, []).carried(1.0), "however late text is final"
    assert not Trial.of([quick], LOAD, ["1.0 s of audio are missing"]).carried(9.0)
    assert not Trial.of([([4.0], [1.0], [1.0])], LOAD, []).carried(3.0)
    both = Trial.of([quick, slow], LOAD, [])
    assert (both.sessions, both.steady_s, both.steady_p90_s, both.final_s) == (
        2,
        pytest.approx(7 / 3),
        pytest.approx(4.6),
        9.0,
    )
    assert both.carried(4.7)
    assert not both.carried(4.5)
    assert not Trial.of([quick, ([], [], [])], LOAD, []).carried(99), "a session without text"
    assert "2.33   4.60     9.00   9.00    50%    10%    400 MB   no" in trials_table([both], 4.5)
    assert "9.00    50%    10%    400 MB   yes" in trials_table([both], 4.7)


@pytest.mark.slow
def test_the_capacity_of_this_machine_is_measured(phrase, capsys):
    options = ["--config", "demo-zh", "--seconds", "4", "--most", "2"]
    assert run(["capacity", str(phrase), *options, "--lag", "3600", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["sessions"] == 2
    assert [trial["sessions"] for trial in report["trials"]] == [1, 2]
    for trial in report["trials"]:
        assert trial["carried"]
        assert min(trial["shown_p90_s"], trial["steady_p90_s"], trial["final_p90_s"]) > 0
        assert trial["load"]["peak_mb"] > 50
        assert trial["load"]["others_share"] > 0, "the clients at least"


@pytest.mark.slow
def test_a_number_of_sessions_with_readers_is_measured_alone(phrase, capsys):
    options = ["--config", "demo-zh", "--seconds", "4", "--sessions", "2", "--readers", "3", "--lag", "3600"]
    assert run(["capacity", str(phrase), *options]) == 0
    assert "this machine carries 2 or more, as many as were tried" in capsys.readouterr().out


def test_a_limit_that_no_session_meets_is_an_error(phrase, capsys, monkeypatch):
    async def tried(models: Sequence[str], samples: Samples, number: int, readers: int) -> Trial:
        assert number == 1
        return Trial.of([([0.5], [1.5], [2.5])], LOAD, [])

    monkeypatch.setattr(capacity, "_tried", tried)
    with pytest.raises(PipelineError, match=r"does not carry one session within 1\.2 s; choose a smaller model"):
        run(["capacity", str(phrase), "--config", "demo-zh", "--lag", "1.2"])
    assert "2.50    50%    10%    400 MB   no" in capsys.readouterr().out


LAG, MOST = ("--lag", " is not a number of seconds from 0.1 to 3600"), ("--most", "from 1 to 100")


@pytest.mark.parametrize(
    ("option", "given"), [*((LAG, given) for given in ("0", "-1", "nan", "soon")), (MOST, "0"), (MOST, "101")]
)
def test_a_wrong_limit_is_refused(option, given, capsys):
    with pytest.raises(SystemExit):
        run(["capacity", option[0], given])
    assert option[1] in capsys.readouterr().err


def tried(monkeypatch: pytest.MonkeyPatch, url: str, number: int) -> Trial:
    """A trial with a server at this address."""

    @asynccontextmanager
    async def started(arguments: list[str]) -> AsyncIterator[tuple[str, int]]:
        yield url, os.getpid()

    monkeypatch.setattr(capacity, "started_server", started)
    return asyncio.run(capacity._tried([], np.zeros(1_600, np.int16), number, 1))


def test_a_lost_connection_is_a_trial_that_is_not_carried(monkeypatch):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))  # nobody listens
        found = tried(monkeypatch, f"ws://127.0.0.1:{probe.getsockname()[1]}/v1/session", 3)
    assert found.sessions == 3
    assert not found.carried(3_600)
    (loss,) = found.losses
    assert "Connect call failed" in loss
    assert loss in trials_table([found], 3.0)


def test_all_sessions_together_have_one_reader(monkeypatch):
    asked: list[tuple[int, int]] = []

    async def played(
        url: str, samples: Samples, speakers: int, readers: int, *more: object
    ) -> list[clients.PlayedSession]:
        asked.append((speakers, readers))
        raise ExceptionGroup("", [clients.ServerError("busy"), ExceptionGroup("", [clients.ServerError("busy")])])

    monkeypatch.setattr(clients, "played", played)
    assert tried(monkeypatch, "", capacity._MOST).losses == ("busy",)
    assert asked == [(capacity._MOST, 1)]
    assert ServerLimits().connections_a_minute >= capacity._MOST + 1, "a reader, too"


def test_the_report_of_silence_is_json_and_says_that_no_text_came(phrase, capsys, monkeypatch):
    trial = Trial.of([([], [], [])], Load(0.5, math.nan, 0.1), [])

    async def silent(models: Sequence[str], samples: Samples, number: int, readers: int) -> Trial:
        return trial

    def strict(name: str) -> object:
        raise AssertionError(f"{name} is no JSON")

    monkeypatch.setattr(capacity, "_tried", silent)
    with pytest.raises(PipelineError, match="showed no text; give a longer recording"):
        run(["capacity", str(phrase), "--config", "demo-zh", "--json"])
    (found,) = json.loads(capsys.readouterr().out, parse_constant=strict)["trials"]
    assert (found["final_p90_s"], found["load"]["peak_mb"], found["load"]["cpu_share"]) == (None, None, 0.5)
    assert "a session showed no text; give a longer recording" in trials_table([trial], 3.0)


def test_the_share_of_other_programs_is_of_all_cores(monkeypatch):
    """The server may use one core of four for 10 s, and uses half of it; other programs use 20 s of CPU time."""
    monkeypatch.setattr("os.cpu_count", lambda: 4)
    sampler = Sampler(0)
    sampler._found += [(0.0, 100.0, Usage(7.0, 1.0, 1)), (10.0, 125.0, Usage(12.0, 1.0, 1))]
    load = sampler.load()
    assert (load.cpu_share, load.others_share) == (0.5, 0.5)


def heard(*records: dict[str, object]) -> Reception:
    found = Reception()
    for record in records:
        found.take(dict(record), 3.0)
    return found


def test_the_age_of_what_is_shown_steady_and_final_is_taken():
    change = {"type": "delta", "sentence": 0, "language": "zh", "heard_s": 2.0}
    found = heard(
        {**change, "text": "你们", "heard_s": 1.0},
        {**change, "text": "好", "withdrawn": 1, "steady": 1},
        {**change, "text": "", "steady": 1, "heard_s": 2.5},
        {**change, "text": "", "steady": 2, "heard_s": 2.5},
        {"type": "snapshot", "events": [{**change, "type": "translation", "text": "你好", "heard_s": 2.5}]},
    )
    assert found.shown_s == [2.0, 1.0]
    assert found.steady_s == [2.0, 1.0], "since it was shown first"
    assert found.final_s == [0.5]
    assert found.texts == {(0, "zh"): "你好"}


def test_what_is_lost_is_found():
    end = {"type": "end", "duration_s": 9.0}
    whole = heard(TRANSLATION, end)
    assert PlayedSession(whole, [heard(TRANSLATION, end)], 9.0).losses == []
    assert PlayedSession(whole, [heard(end)], 9.0).losses == ["1 readers got other text"]
    assert PlayedSession(whole, [], 10.0).losses == ["1.0 s of audio are missing"]
    failed = heard({"type": "error", "code": "failed", "message": "the session failed"})
    assert PlayedSession(failed, [], 9.0).losses == ["the session failed", "the speaker got no end"]


def test_the_server_gets_every_model_option():
    given = ["--config", "demo", "--source", "en", "--asr", "a", "--nmt", "n", "--via", "fr", "--glossary", "g"]
    given += ["--masked", "m", "--target", "zh,pt"]
    parser = argparse.ArgumentParser()
    capacity.add_arguments(parser)
    assert capacity.model_arguments(parser.parse_args(given)) == given


def test_a_recording_is_repeated():
    assert len(repeated(np.ones(3, np.int16), 2)) == 32_000
    with pytest.raises(UsageError, match="the recording is empty"):
        repeated(np.zeros(0, np.int16), 2)
