"""Live runs over what FFmpeg reads from elsewhere and from files that grow."""

import http.server
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import srt

from tests.commands import command, run
from tests.conftest import HANG_S


@pytest.fixture
def radio(phrase: Path) -> Iterator[str]:
    """The address of a server that streams the phrase without a length."""
    content = phrase.read_bytes()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Connection", "close")
            self.end_headers()
            self.wfile.write(content[:40] + b"\xff\xff\xff\xff" + content[44:])

        def log_message(self, *_: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/radio"
    server.shutdown()
    server.server_close()


def subtitles(path: Path) -> str:
    return " ".join(cue.content for cue in srt.parse(path.read_text("utf-8")))


@pytest.mark.slow
@pytest.mark.parametrize("source", ["stream", "growing file"])
def test_a_stream_and_a_growing_file_are_subtitled(source, radio, phrase, tmp_path):
    target = tmp_path / "out.srt"
    given = [radio] if source == "stream" else ["--follow", "--fast", phrase]
    done = run("live", *given, "--config", "demo-zh", "--srt", target)
    assert done.returncode == 0, done.stderr.decode()
    assert "东京" in subtitles(target)


def test_ctrl_c_ends_a_run_whose_server_does_not_answer():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        program = command("live", f"rtmp://127.0.0.1:{silent.getsockname()[1]}/live", "--config", "demo")
        with subprocess.Popen(program, stderr=subprocess.PIPE) as run, silent.accept()[0]:
            run.send_signal(signal.SIGINT)
            _, said = run.communicate(timeout=HANG_S)
    assert (run.returncode, said) == (130, b"")


def test_a_run_with_a_microphone_loads_nothing_of_it():
    loaded = (
        "import sys, pipeline.apps.live, pipeline.apps.live_run, pipeline.media.audio.microphone; print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", loaded], capture_output=True, check=True, timeout=HANG_S)
    modules = done.stdout.decode().split()
    assert "pipeline.media.audio.microphone" in modules
    assert not [
        name for name in modules if name.startswith(("pipeline.media.audio.network", "pipeline.server", "fsspec"))
    ]
