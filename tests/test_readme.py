"""Every command in the README is run here, by CI, or named below with the reason why it cannot be."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import HANG_S, ROOT

README = (ROOT / "README.md").read_text("utf-8")
COMMANDS = [
    line.split("  #")[0].strip()
    for block in re.findall(r"```sh\n(.*?)```", README, re.DOTALL)
    for line in block.splitlines()
]
# What .ci/run runs itself, as a user would.
BY_CI = {"make demo", "make test", "pip install '.[demo]'", "python -m pipeline.live --mic --config demo"}
NEEDS_A_NETWORK = {
    "python -m pipeline.live --mic",
    "python -m pipeline.live --mic --source pt --target en",
    "python -m pipeline.models pull en-zh",
    "python -m pipeline.bench speech speech",
    "python -m pipeline.bench asr speech --threads 1",  # which needs the other's recordings
    "optimum-cli export onnx --model Helsinki-NLP/opus-mt-en-de --task text2text-generation-with-past opus-mt-en-de",
}
NEEDS_PORTAUDIO = {"python -m pipeline.live --list-devices"}
SLOW = {"python -m pipeline.bench nmt --weights int8 --rounds 3 --json speed.json"}
"""Converts and runs a model of opus-mt's size; .ci/run runs it."""
HERE = [c for c in COMMANDS if c not in BY_CI | NEEDS_A_NETWORK | NEEDS_PORTAUDIO]


def test_commands_were_found() -> None:
    assert len(HERE) >= 6
    assert set(COMMANDS) >= BY_CI | NEEDS_A_NETWORK | NEEDS_PORTAUDIO | SLOW


@pytest.mark.parametrize("command", [pytest.param(c, marks=[pytest.mark.slow] if c in SLOW else []) for c in HERE])
def test_a_command_of_the_readme_runs(command: str, tmp_path: Path) -> None:
    for name in ("examples", "models", "tests"):
        (tmp_path / name).symlink_to(ROOT / name)
    # Matplotlib is here for the tests; the install that the README describes does not bring it.
    (tmp_path / "sitecustomize.py").write_text("import sys\nsys.modules['matplotlib'] = None\n")
    path = os.pathsep.join(filter(None, (str(tmp_path), os.environ.get("PYTHONPATH"))))
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", re.sub(r"\bpython\b", sys.executable, command)],
        cwd=tmp_path, env={**os.environ, "PYTHONPATH": path}, capture_output=True, timeout=HANG_S, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr.decode()
    if "bench nmt" in command:
        assert {"CTranslate2 int8", "this project"} <= set(
            re.findall("CTranslate2 int8|this project", done.stdout.decode())
        )
        return
    if "pipeline.models" in command:
        said = {"inspect": "it runs", "compile": "my-model: int8", "list": "Systran/faster-whisper-small"}
        assert said[command.split()[3]] in done.stdout.decode()
        return
    if "nmt-zh-en" in command or "embed_stages" in command:
        assert re.search("hotel|Thursday", done.stdout.decode())
        return
    assert any("\u4e00" <= character <= "\u9fff" for character in done.stdout.decode()) or list(
        (tmp_path / "subtitles").iterdir()
    )


@pytest.mark.microphone
@pytest.mark.skipif("VIRTUAL_MICROPHONE" not in os.environ, reason="no virtual microphone; .ci/run sets one up")
@pytest.mark.parametrize("command", sorted(NEEDS_PORTAUDIO))
def test_a_command_that_needs_portaudio_runs(command: str) -> None:
    done = subprocess.run([sys.executable, *command.split()[1:]], capture_output=True, timeout=HANG_S, check=False)
    assert done.returncode == 0, done.stderr.decode()
    assert "pulse" in done.stdout.decode()
