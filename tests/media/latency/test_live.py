"""The latency log of a real run at a recording's own pace."""

import json

import pytest

from pipeline.events import TargetText
from pipeline.media.latency.emissions import TextSoFar
from pipeline.media.sinks.jsonl import read_event
from tests.commands import run
from tests.conftest import PHRASE_SECONDS
from tests.streams import states


@pytest.mark.slow
def test_a_live_run_logs_when_what_it_shows_came(phrase, tmp_path):
    outputs = ["--latency-log", tmp_path / "instances.log", "--jsonl", tmp_path / "out.jsonl"]
    outputs += ["--final-log", tmp_path / "final.log"]
    done = run("live", phrase, "--config", "demo-zh", *outputs)
    assert done.returncode == 0, done.stderr.decode()
    # There would be a warning if the clock ran ahead of the audio, or stood still.
    assert "faster than real time" not in done.stderr.decode()
    line, final = (json.loads((tmp_path / name).read_text("utf-8")) for name in ("instances.log", "final.log"))
    text = TextSoFar("char")
    records = map(json.loads, (tmp_path / "out.jsonl").read_text("utf-8").splitlines())
    for event in states(event for record in records if (event := read_event(record)) is not None):
        if isinstance(event, TargetText):
            text.push(event, 0.0)
    assert line["prediction"] == "".join(emission.text for emission in text.emissions()) != ""
    assert line["delays"] == [round(emission.delay_ms, 1) for emission in text.emissions()]
    assert line["elapsed"] == sorted(line["elapsed"])
    assert final["prediction"] == line["prediction"]
    assert all(elapsed >= delay for elapsed, delay in zip(line["elapsed"], line["delays"], strict=True))
    assert line["source"] == [str(phrase)]
    assert line["source_length"] == PHRASE_SECONDS * 1000
