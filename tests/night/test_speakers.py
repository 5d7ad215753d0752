"""Calls with a speaker in each channel, as Whisper hears them: who said what."""

import pytest

from tests.archives.test_speakers import CALLS, TURNS, call, recorded, running, who_said


@pytest.fixture
def run(demo_models, monkeypatch):
    return running(monkeypatch, lambda: demo_models)


@pytest.mark.parametrize("name", CALLS)
def test_what_others_say_in_a_channel_is_not_its_speaker_s(run, tmp_path, name):
    assert run(recorded(tmp_path / "call.wav", CALLS[name]), "--format", "jsonl") == 0
    assert who_said(tmp_path / "call.jsonl") == TURNS


def test_both_are_heard_where_they_speak_at_once(run, tmp_path):
    path = recorded(tmp_path / "call.wav", call(leak_db=-40, ben_db=-12, lead_s=3.5))
    assert run(path, "--format", "jsonl") == 0
    assert sorted(who_said(tmp_path / "call.jsonl")) == sorted(TURNS)
