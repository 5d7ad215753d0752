"""Masked words in live runs: in no event, draft or file, whatever the stages commit."""

import json
from dataclasses import replace

import pytest

from pipeline import SourceSentence, Translation
from pipeline.audio.recording import Recording
from pipeline.captions.changes import Changes
from pipeline.run.options import CaptionOptions
from pipeline.sinks.jsonl import line
from tests.apps.test_cli import run
from tests.chain import events_of
from tests.conftest import EXAMPLES


@pytest.fixture
def masked(tmp_path):
    path = tmp_path / "masked.txt"
    path.write_text("[en]\nbudget\nsister will\n[zh]\n预算\n星期五\n", "utf-8")
    return path


@pytest.mark.slow
def test_no_event_of_a_live_run_has_a_masked_word(demo_config, demo_models, masked):
    path = EXAMPLES / "meeting.wav"
    config = replace(demo_config, captions=CaptionOptions(str(masked)))
    events = events_of(config, demo_models, Recording(path), live=True)
    plain = events_of(demo_config, demo_models, Recording(path), live=True)

    def finals(events):
        return "\n".join(sorted(each.text for each in events if isinstance(each, SourceSentence | Translation)))

    told = "".join(map(line, map(Changes().push, events)))
    words = ("budget", "sister will", "预算", "星期五")
    assert not [word for word in words if word in told]
    expected = finals(plain)
    for word, hidden in zip(words, ("b*****", "s***** ****", "预*", "星**"), strict=True):
        assert word in expected
        expected = expected.replace(word, hidden)
    assert finals(events) == "\n".join(sorted(expected.split("\n")))


@pytest.mark.slow
def test_a_file_of_a_command_has_no_masked_word_and_a_wrong_list_ends_it(masked, tmp_path):
    out = tmp_path / "m.jsonl"
    done = run("live", EXAMPLES / "meeting.wav", "--config", "demo-zh", "--fast", "--masked", masked, "--jsonl", out)
    assert done.returncode == 0, done.stderr
    cues = [record for text in out.read_text("utf-8").splitlines() if (record := json.loads(text))["type"] == "cue"]
    assert any("预*" in part for cue in cues for part in cue["lines"])
    assert "预算" not in out.read_text("utf-8") + done.stdout.decode()
    missing = run("live", EXAMPLES / "meeting.wav", "--config", "demo-zh", "--masked", tmp_path / "none.txt")
    assert missing.returncode == 2
    assert "cannot read the list of masked words" in missing.stderr.decode()
    assert "Traceback" not in missing.stderr.decode()
