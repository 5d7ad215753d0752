"""Masked words in live runs: in no event, draft or file, whatever the stages commit."""

import json
from dataclasses import replace

import pytest

from pipeline import SourceSentence, Translation
from pipeline.core.captions.changes import Changes
from pipeline.core.run.options import CaptionOptions
from pipeline.events import SAMPLE_RATE
from pipeline.media.audio.recording import Recording
from pipeline.media.sinks.jsonl import line
from tests.chain import events_of
from tests.commands import run
from tests.conftest import PHRASES, read_wav, write_wav


@pytest.fixture
def masked(tmp_path):
    path = tmp_path / "masked.txt"
    path.write_text("[en]\ntokyo\npost office\n[zh]\n东京\n邮局\n", "utf-8")
    return path


@pytest.fixture
def recording(tmp_path):
    """Two sentences."""
    return write_wav(tmp_path / "recording.wav", read_wav(PHRASES)[: int(7.4 * SAMPLE_RATE)])


def test_no_event_of_a_live_run_has_a_masked_word(demo_config, demo_models, masked, recording):
    config = replace(demo_config, captions=CaptionOptions(str(masked)))
    events = events_of(config, demo_models, Recording(recording), live=True)
    plain = events_of(demo_config, demo_models, Recording(recording), live=True)

    def finals(events):
        return "\n".join(sorted(each.text for each in events if isinstance(each, SourceSentence | Translation)))

    told = "".join(map(line, map(Changes().push, events)))
    words = ("Tokyo", "post office", "东京", "邮局")
    assert not [word for word in words if word in told]
    expected = finals(plain)
    for word, hidden in zip(words, ("T****", "p*** ******", "东*", "邮*"), strict=True):
        assert word in expected
        expected = expected.replace(word, hidden)
    assert finals(events) == "\n".join(sorted(expected.split("\n")))


def test_a_file_of_a_command_has_no_masked_word_and_a_wrong_list_ends_it(masked, recording, tmp_path):
    out = tmp_path / "m.jsonl"
    done = run("live", recording, "--config", "demo-zh", "--fast", "--masked", masked, "--jsonl", out)
    assert done.returncode == 0, done.stderr
    cues = [record for text in out.read_text("utf-8").splitlines() if (record := json.loads(text))["type"] == "cue"]
    assert any("东*" in part for cue in cues for part in cue["lines"])
    assert "东京" not in out.read_text("utf-8") + done.stdout.decode()
    missing = run("live", recording, "--config", "demo-zh", "--masked", tmp_path / "none.txt")
    assert missing.returncode == 2
    assert "cannot read the list of masked words" in missing.stderr.decode()
    assert "Traceback" not in missing.stderr.decode()
