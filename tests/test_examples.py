"""The embedding examples run and print what their host app would show."""

import json
import re
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

import pytest

from pipeline.bench.words import edits, scored_units
from pipeline.events import SAMPLE_RATE
from tests.commands import run as run_command
from tests.commands import run_script
from tests.conftest import HANG_S, PHRASES, ROOT, read_wav, spoken_texts, write_wav

TEXTS = spoken_texts()["phrases"][:2]


@pytest.fixture
def recording(tmp_path):
    """Two sentences."""
    return write_wav(tmp_path / "recording.wav", read_wav(PHRASES)[: int(7.4 * SAMPLE_RATE)])


def run(script, *arguments):
    done = run_script(ROOT / script, *arguments)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode()


def run_python(*arguments):
    return subprocess.run(
        [sys.executable, *arguments], cwd=ROOT, capture_output=True, text=True, timeout=HANG_S, check=True
    ).stdout


def test_the_client_of_a_server_says_how_it_is_called():
    assert "recording" in run_python("examples/serve_client.py", "--help")


def test_examples_import_the_name_that_is_installed():
    for path in (ROOT / "examples").glob("*.py"):
        assert not re.search(r"^(from|import) pipeline\b", path.read_text("utf-8"), re.MULTILINE), path


def test_the_whole_chain_fed_by_a_host_app(recording):
    shown = run("examples/embed_chain.py", recording)
    assert "2 segments" in shown
    assert any(character in shown for character in "ãçéê")


def test_the_translation_alone_fed_with_text():
    shown = run("examples/embed_translation.py", "Where is the hotel?")
    assert "hotel?" in shown
    assert "log-probability" in shown


def test_more_text_is_translated_than_the_queues_hold():
    shown = run("examples/embed_translation.py", *["The train to Paris leaves at nine o'clock."] * 30)
    assert sum(line.endswith("sai às nove horas.") for line in shown.splitlines()) == 30


def test_stages_of_ones_own_see_and_change_what_passes(recording):
    *lines, counted = run("examples/own_stages.py", recording, "Tokyo=Rome").splitlines()
    heard = [line for line in lines if not line.startswith(" ")]
    assert [scored_units(text, "en") for text in heard] == [
        scored_units(text.replace("Tokyo", "Rome"), "en") for text in TEXTS
    ]
    assert "Rome" in heard[0]
    assert counted == "2 sentences"


class LibreTranslate(BaseHTTPRequestHandler):
    """Answers as LibreTranslate does, with the text in capitals; is too busy for the second request."""

    asked: ClassVar[list[dict[str, str]]] = []

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.asked.append(body)
        if len(self.asked) == 2:
            self.send_error(503)
            return
        self.send_response(200 if self.path == "/translate" else 404)
        self.end_headers()
        self.wfile.write(json.dumps({"translatedText": body["q"].upper()}).encode())

    def log_message(self, *_): ...


@pytest.mark.slow
def test_a_translator_of_ones_own_that_fails_once_costs_one_sentence(recording):
    server = ThreadingHTTPServer(("127.0.0.1", 0), LibreTranslate)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        shown = run("examples/own_translator.py", f"http://127.0.0.1:{server.server_port}", recording)
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
    heard = shown.splitlines()[::2]
    assert [scored_units(text, "en") for text in heard] == [scored_units(said, "en") for said in TEXTS]
    expected = [f"    {text.upper()}" for text in heard]
    expected[1] = "    (not translated: HTTP Error 503: Service Unavailable)"
    assert shown.splitlines()[1::2] == expected
    assert [body["q"] for body in LibreTranslate.asked] == heard
    assert {(body["source"], body["target"]) for body in LibreTranslate.asked} == {("en", "pt")}


@pytest.mark.slow
def test_a_recogniser_of_ones_own(recording):
    shown = run("examples/own_recognizer.py", recording).splitlines()
    heard = [scored_units(line, "en") for line in shown if not line.startswith(" ")]
    assert heard == [scored_units(said, "en") for said in TEXTS]
    shown = [line for line in shown if line.startswith(" ")]
    assert len(shown) == len(heard)
    assert "Tóquio" in shown[0]


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_models_of_ones_own_have_the_types_of_the_interfaces(tmp_path, monkeypatch):
    (tmp_path / "speech_translate").symlink_to(ROOT / "pipeline")  # as it is installed
    monkeypatch.setenv("MYPYPATH", str(tmp_path))
    shown = run_python(
        "-m", "mypy", "--config-file", "pyproject.toml", "examples/own_translator.py", "examples/own_recognizer.py"
    )
    assert "Success" in shown


@pytest.mark.slow
def test_detection_and_recognition_alone_fed_by_a_host_app(recording):
    shown = run("examples/embed_stages.py", recording).splitlines()
    heard = [scored_units(line.split("] ")[1], "en") for line in shown]
    assert heard == [scored_units(said, "en") for said in TEXTS]


def test_translating_text_loads_no_recogniser():
    shown = run_python(
        "-c",
        "import sys; from pipeline import NmtStage, load_config, load_translation_model; "
        "load_translation_model('en', 'zh', load_config('demo-zh').nmt); print('faster_whisper' in sys.modules)",
    )
    assert shown.strip() == "False"


@pytest.mark.slow
@pytest.mark.skipif(not Path("/dev/stdin").exists(), reason="no name for what is piped in")
def test_several_speakers_share_one_pair_of_models(tmp_path):
    """The first goes on speaking when the second has finished."""
    first, second = (write_wav(tmp_path / f"{s}.wav", read_wav(PHRASES)[: int(s * SAMPLE_RATE)]) for s in (7.4, 4.5))
    command = [sys.executable, "examples/several_speakers.py", "/dev/stdin", str(second)]
    said, names = first.read_bytes(), []
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        process.stdin.write(said[: len(said) // 2])
        while not names.count(b"4.5"):
            names.append(process.stdout.readline().split()[0])
        rest, _ = process.communicate(said[len(said) // 2 :])
        names += [line.split()[0] for line in rest.splitlines()]
    assert process.returncode == 0
    assert names.count(b"stdin") == 2


@pytest.mark.slow
def test_drafts_are_shown_while_somebody_speaks(tmp_path):
    recording = write_wav(tmp_path / "question.wav", read_wav(PHRASES)[int(4.5 * SAMPLE_RATE) : int(7.4 * SAMPLE_RATE)])
    lines = run("examples/embed_drafts.py", recording).splitlines()
    finals = {(line[:3], line[4:6]): line[8:].removesuffix("  (final)") for line in lines if line.endswith("(final)")}
    assert len(finals) == 2
    drafts = 0
    for line in lines:
        if line.endswith("]") and (committed := line[8:].split(" [")[0].strip()):
            assert finals[line[:3], line[4:6]].startswith(committed)
        drafts += line.endswith("]")
    assert drafts >= len(finals) / 2


@pytest.mark.slow
def test_the_portuguese_recording_is_heard_and_translated_into_english():
    recording = ROOT / "examples" / "audio-pt" / "lisbon.wav"
    shown = run_command("live", recording, "--config", "demo-pt-en", "--fast", "--quiet").stdout.decode().splitlines()
    heard = [scored_units(line.split("  ", 1)[1], "pt") for line in shown[::2]]
    said = [scored_units(text, "pt") for text in spoken_texts()["lisbon"]]
    assert len(heard) == len(said)
    wrong = sum(edits(one, other) for one, other in zip(said, heard, strict=True))
    assert wrong <= 6  # two numbers in figures, and an accent
    departs, takes = (" ".join(line.split()) for line in shown[3:6:2])
    # With 8 bits, a processor's rounding chooses between two right wordings.
    assert re.fullmatch(r"The next train to Lisbon departs at 10 (a\.m|o'clock in the morning)\.", departs)
    assert takes == "How long does the trip take?"
