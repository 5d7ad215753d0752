"""Live runs that speak: into a file, and to a virtual loudspeaker, from which Whisper hears it."""

import sys
from pathlib import Path

import pytest

from pipeline import load_config
from pipeline.apps import live, serve
from pipeline.apps.speaking import Speech
from pipeline.bench.words import edits, scored_units
from pipeline.errors import UsageError
from pipeline.events import SourceSentence
from pipeline.media.audio.recording import Recording
from pipeline.media.sinks.block_file import in_use
from tests.chain import events_of
from tests.conftest import ROOT
from tests.media.audio.portaudio import FakePortAudio
from tests.speaking.test_voice import JOE, needs_hibari, needs_joe
from tests.speaking.voices import made_voice

pytestmark = pytest.mark.usefixtures("loaded")

LISBON = ROOT / "examples" / "audio-pt" / "lisbon.wav"


def run(*options):
    return live.run([str(LISBON), "--config", "demo-pt-en", *map(str, options)])


def heard(path, demo_config, demo_models):
    """The English words of a recording, by Whisper."""
    events = events_of(demo_config, demo_models, Recording(path))
    return scored_units(" ".join(event.text for event in events if isinstance(event, SourceSentence)), "en")


def written(path):
    return scored_units(path.read_text("utf-8"), "en")


@pytest.mark.slow
@pytest.mark.parametrize(
    "voice", [pytest.param([JOE], marks=needs_joe, id="joe"), pytest.param([], marks=needs_hibari, id="hibari")]
)
def test_a_file_has_the_translations_as_speech(voice, demo_config, demo_models, tmp_path):
    files = ("--speak-to", tmp_path / "said.wav", "--txt", tmp_path / "said.txt")
    assert run("--fast", "--speak", *voice, *files) == 0
    said = written(tmp_path / "said.txt")
    assert edits(said, heard(tmp_path / "said.wav", demo_config, demo_models)) / len(said) < 0.25


@pytest.mark.slow
def test_files_are_closed_before_the_voice_ends(monkeypatch, tmp_path):
    path, found = tmp_path / "said.srt", []
    monkeypatch.setattr(Speech, "finish", lambda self: found.append((in_use(path), path.stat().st_size > 0)))
    assert run("--fast", "--srt", path) == 0
    assert found == [(False, True)]


def test_without_a_name_the_voice_is_the_english_one():
    assert live.arguments().parse_args(["--mic", "--speak"]).speak == Path("hibari")
    assert serve.arguments().parse_args(["--speak", "--speak", "pf_dora"]).speak == [Path("hibari"), Path("pf_dora")]
    assert live.arguments().parse_args(["--mic"]).speak is None


def test_a_voice_of_another_language_is_wrong_usage(tmp_path):
    with pytest.raises(UsageError, match="voice.onnx speaks de, which is no target; there is en"):
        run("--speak", made_voice(tmp_path))


def test_the_file_of_speech_is_no_other_file(tmp_path):
    with pytest.raises(UsageError, match="is also the file for txt; choose another place for the wav file"):
        run(
            "--fast",
            "--speak",
            made_voice(tmp_path, "en"),
            "--txt",
            tmp_path / "a.wav",
            "--speak-to",
            tmp_path / "a.wav",
        )
    with pytest.raises(UsageError, match="is also the recording"):
        run("--fast", "--speak", made_voice(tmp_path, "en"), "--speak-to", LISBON)


@pytest.mark.parametrize(
    ("options", "rescans"), [([], True), (["--speak-to", "a.wav"], True), (["--speak-to", "Mic"], False)]
)
def test_a_lost_microphone_does_not_end_the_voice(options, rescans, monkeypatch):
    monkeypatch.setitem(sys.modules, "sounddevice", FakePortAudio(("Mic", 1, 16_000)))
    given = ["--mic", *(["--speak", "voice"] if options else []), *options]
    source = live.open_source(live.arguments().parse_args(given), load_config("demo-pt-en"))
    assert source._capture._rescan is rescans


def test_a_voice_that_loopback_would_hear_is_wrong_usage(monkeypatch):
    monkeypatch.setitem(sys.modules, "sounddevice", FakePortAudio(("Monitor of Speakers", 1, 16_000)))
    with pytest.raises(UsageError, match="and so would hear --speak; give --speak-to"):
        live.run(["--loopback", "--config", "demo-pt-en", "--speak", "voice"])
