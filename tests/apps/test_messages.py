"""What commands print besides what was asked for: --quiet, --verbose, progress, and why recordings failed."""

import logging
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from pipeline import Models, PipelineConfig
from pipeline.apps import translate
from pipeline.apps.controls import NoticeSink
from pipeline.core.notices import AudioLost, LoadChanged
from pipeline.store.progress import progress_bar
from tests.commands import run as run_command
from tests.conftest import write_wav


@pytest.fixture(autouse=True)
def _restored_levels() -> Iterator[None]:
    """--quiet and --verbose set the levels of loggers."""
    loggers = [logging.getLogger(), logging.getLogger("pipeline")]
    levels = [logger.level for logger in loggers]
    yield
    for logger, level in zip(loggers, levels, strict=True):
        logger.setLevel(level)


@pytest.fixture
def recordings(tmp_path: Path, demo_models: Models, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a broken recording and two of silence; the models are the demo's."""

    async def loaded(config: PipelineConfig) -> Models:
        return demo_models

    monkeypatch.setattr(translate, "_load", loaded)
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "broken.wav").write_text("no audio")
    for name in ("one", "two"):
        write_wav(folder / f"{name}.wav", np.zeros(16_000, np.int16))
    return folder


def run(folder: Path, *options: str) -> int:
    return translate.run([str(folder), "--config", "demo-zh", "--output-dir", str(folder.parent / "out"), *options])


def test_the_table_says_why_a_recording_failed_and_adds_up(recordings, capsys):
    assert run(recordings) == 1
    rows = capsys.readouterr().out.splitlines()
    broken = recordings / "broken.wav"
    (why,) = (row for row in rows if row.startswith(f"{broken}: failed: {broken} is not audio that can be read ("))
    assert why.endswith("give a recording such as wav, mp3, m4a, not a playlist")
    total = r"3 recordings: 1 failed, 2 no subtitles; 2 s of audio, 0 sentences, [\d.]+ × real time"
    assert re.fullmatch(total, rows[-1])


def test_each_recording_of_several_has_its_number(recordings, capsys):
    run(recordings)
    lines = [line for line in capsys.readouterr().err.splitlines() if line and not line.startswith("error: ")]
    assert [line.partition(":")[0] for line in lines] == ["2 of 3, one.wav", "3 of 3, two.wav"]


def test_a_terminal_shows_how_many_recordings_are_done(recordings, capsys, monkeypatch):
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    run(recordings)
    assert re.search(r"all recordings .*━.* 1 of 3", capsys.readouterr().err)


def test_quiet_prints_errors_alone(recordings, capsys, monkeypatch):
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    assert run(recordings, "--quiet") == 1
    said = capsys.readouterr()
    assert said.out == ""
    assert re.fullmatch(r"error: \S+/broken\.wav is not audio that can be read .+\n", said.err)
    for terminal in "10":
        monkeypatch.setenv("TTY_COMPATIBLE", terminal)
        with progress_bar() as progress:
            progress("fetching a model", 0.5)
    notices = NoticeSink()
    notices.write(LoadChanged(1, 6.0))
    assert capsys.readouterr().err == ""
    notices.write(AudioLost(61.5, 2.5, "the backlog was full"))
    assert capsys.readouterr().err == "[0:01:01] 2.5 s of audio were lost: the backlog was full\n"


def test_quiet_and_verbose_exclude_each_other(capsys):
    with pytest.raises(SystemExit):
        translate.run(["talk.wav", "--quiet", "--verbose"])
    assert "argument -v/--verbose: not allowed with argument -q/--quiet" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("option", "lines"),
    [
        ("--quiet", []),
        (None, [r"5\.5 s of audio in [\d.]+ s \([\d.]+ times real time\), 2 sentences"]),
        ("--verbose", ["5", "2 segments, 0 not translated, .*asr .*nmt", "first token after", "lag: ", "ready "]),
    ],
)
def test_a_live_run_says_as_much_as_was_asked_for(option, lines, phrase):
    done = run_command("live", phrase, "--config", "demo", "--fast", *([option] if option else []))
    assert done.returncode == 0, done.stderr.decode()
    assert "Tóquio" in done.stdout.decode()
    # Which models are prepared is said once on a machine; debug messages are between the lines.
    said = [line for line in done.stderr.decode().splitlines() if not re.match("DEBUG: |joining ", line)]
    assert len(said) == len(lines), said
    assert all(map(re.match, lines, said))
