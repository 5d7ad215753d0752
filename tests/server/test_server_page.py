"""docs/server.md: its commands start servers, and its table has every option."""

from __future__ import annotations

import re
import shlex
import signal
import subprocess
import sys
import tomllib
import urllib.request

import pytest

from pipeline.apps.serve import arguments
from tests.conftest import HANG_S, ROOT

PAGE = (ROOT / "docs" / "server.md").read_text("utf-8")
COMMANDS = [line for block in re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL) for line in block.splitlines()]


def test_commands_were_found() -> None:
    """`make serve` runs in tests/test_makefile.py."""
    assert [command.split()[:2] for command in COMMANDS] == [["make", "serve"], ["pip", "install"], ["python", "-m"]]


def test_the_extras_exist() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    (command,) = (command for command in COMMANDS if command.startswith("pip "))
    found = re.fullmatch(r"pip install '\.\[([\w,]+)\]'", command)
    assert found is not None
    assert set(found[1].split(",")) <= set(project["optional-dependencies"])


@pytest.mark.parametrize("command", [command for command in COMMANDS if "pipeline.serve" in command])
def test_a_command_starts_a_server(command: str) -> None:
    process = subprocess.Popen(
        [sys.executable, *shlex.split(command)[1:], "--port", "0"], cwd=ROOT, stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stderr is not None
        found = re.match(r"serving on (http://127\.0\.0\.1:\d+/) ", process.stderr.readline())
        assert found is not None
        with urllib.request.urlopen(found[1], timeout=HANG_S) as page:
            assert b"Speech translation" in page.read()
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=HANG_S)
        assert (process.returncode, said[:9]) == (0, "stopping:")
    finally:
        process.kill()
        process.wait()


def test_every_option_is_in_the_table() -> None:
    table = PAGE.split("| option | meaning |\n|---|---|\n")[1].split("\n\n")[0]
    listed = {name for row in table.splitlines() for name in re.findall(r"--[\w-]+", row.split("|")[1])}
    taken = {name for action in arguments()._actions for name in action.option_strings if name.startswith("--")}
    assert listed == taken - {"--help"}
