"""python -m pipeline.bench serve: a server under load, and what counts as lost."""

import json

import numpy as np
import pytest

from pipeline.bench.__main__ import run
from pipeline.bench.serve import repeated, spread
from pipeline.bench.serve_clients import Heard, Played
from pipeline.errors import UsageError

TRANSLATION = {"type": "translation", "sentence": 0, "language": "zh", "text": "你好。"}


def heard(*records: dict[str, object]) -> Heard:
    found = Heard()
    for record in records:
        found.take(dict(record), 3.0)
    return found


def test_the_age_of_what_is_shown_and_committed_is_taken():
    change = {"type": "delta", "sentence": 0, "language": "zh", "heard_s": 2.0}
    found = heard(
        {**change, "text": "你"},
        {**change, "text": "好", "committed": 1},
        {**change, "text": "", "committed": 1, "heard_s": 2.5},
        {"type": "snapshot", "events": [{**change, "text": "", "committed": 2, "heard_s": 2.5}]},
    )
    assert found.shown_s == [1.0, 1.0]
    assert found.committed_s == [1.0, 0.5]
    assert spread(found.committed_s) == {"mean": 0.75, "p90": 0.95, "max": 1.0}
    assert spread([]) is None


def test_what_is_lost_is_found():
    end = {"type": "end", "duration_s": 9.0}
    whole = heard(TRANSLATION, end)
    assert Played(whole, [heard(TRANSLATION, end)], 9.0).losses == []
    assert Played(whole, [heard(end)], 9.0).losses == ["1 readers got other text"]
    assert Played(whole, [], 10.0).losses == ["1.0 s of audio are missing"]
    failed = heard({"type": "error", "code": "failed", "message": "the session failed"})
    assert Played(failed, [], 9.0).losses == ["the session failed", "the speaker got no end"]


def test_a_recording_is_repeated():
    assert len(repeated(np.ones(3, np.int16), 2)) == 32_000
    with pytest.raises(UsageError, match="the recording is empty"):
        repeated(np.zeros(0, np.int16), 2)


@pytest.mark.slow
def test_a_server_is_loaded(phrase, capsys):
    options = ["--config", "demo-zh", "--speakers", "2", "--readers", "3", "--seconds", "4"]
    assert run(["serve", str(phrase), *options, "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert [session["readers"] for session in report["sessions"]] == [2, 1]
    for session in (report["alone"], *report["sessions"]):
        assert session["losses"] == []
        assert session["shown_s"]["max"] >= session["shown_s"]["mean"] > 0
        assert session["against_alone"]["units"] > 5
    assert "as many as it can serve in time" in report["refusal"]
    assert report["peak_mb"] > 50
