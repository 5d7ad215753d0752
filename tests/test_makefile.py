"""`make serve`: what it starts. .ci/run has the installation, too."""

import json
import re
import shutil
import socket
import subprocess
import sys
import urllib.request

import pytest

from tests.conftest import HANG_S, ROOT


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("make") is None, reason="needs make")
def test_make_serve_offers_both_directions_on_the_first_free_port(tmp_path):
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    (tmp_path / "bin" / "python").chmod(0o755)
    for stamp in (".installed", ".installed-server"):  # newer than what they depend on
        (tmp_path / stamp).touch()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        first = taken.getsockname()[1]
        command = ["make", "serve", f"VENV={tmp_path}", f"PORT={first}-{min(first + 50, 65_535)}"]
        process = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True)
        try:
            assert process.stderr is not None
            said = process.stderr.readline()
            found = re.match(
                r"serving on (http://127\.0\.0\.1:(\d+)/)  \(en into pt, pt into en, zh into en; Ctrl-C ends\)", said
            )
            assert found is not None, said + process.stderr.read()
            assert first < int(found[2]) <= first + 50
            with urllib.request.urlopen(f"{found[1]}v1/info", timeout=HANG_S) as answer:
                languages = json.load(answer)["languages"]
            assert [(one["source"], one["targets"]) for one in languages] == [
                ("en", ["pt"]),
                ("pt", ["en"]),
                ("zh", ["en"]),
            ]
        finally:
            process.terminate()  # make passes it on
            _, said = process.communicate(timeout=HANG_S)
    assert said.startswith("stopping: ")
