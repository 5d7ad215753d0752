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
from tests.conftest import EXAMPLES, HANG_S, ROOT, spoken_texts


def run(*arguments):
    done = subprocess.run([sys.executable, *arguments], cwd=ROOT, capture_output=True, timeout=HANG_S, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode()


@pytest.mark.slow
def test_the_whole_chain_fed_by_a_host_app():
    shown = run("examples/embed_chain.py", str(EXAMPLES / "meeting.wav"))
    assert f"{len(spoken_texts()['meeting'])} segments" in shown
    assert any(character in shown for character in "ãçéê")


def test_the_translation_alone_fed_with_text():
    shown = run("examples/embed_translation.py", "Where is the hotel?")
    assert "hotel?" in shown
    assert "log-probability" in shown


def test_more_text_is_translated_than_the_queues_hold():
    shown = run("examples/embed_translation.py", *["The train to Paris leaves at nine o'clock."] * 30)
    assert sum(line.endswith("sai às nove horas.") for line in shown.splitlines()) == 30


@pytest.mark.slow
def test_stages_of_ones_own_see_and_change_what_passes():
    *lines, counted = run("examples/own_stages.py", str(EXAMPLES / "travel.wav"), "Berlin=Rome").splitlines()
    heard = [line for line in lines if not line.startswith(" ")]
    texts = spoken_texts()["travel"]
    assert [scored_units(text, "en") for text in heard] == [
        scored_units(text.replace("Berlin", "Rome"), "en") for text in texts
    ]
    assert sum("Rome" in text for text in heard) > 0
    assert counted == f"{len(texts)} sentences"


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
def test_a_translator_of_ones_own_that_fails_once_costs_one_sentence():
    server = ThreadingHTTPServer(("127.0.0.1", 0), LibreTranslate)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        shown = run(
            "examples/own_translator.py", f"http://127.0.0.1:{server.server_port}", str(EXAMPLES / "travel.wav")
        )
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
    heard = shown.splitlines()[::2]
    assert [scored_units(text, "en") for text in heard] == [
        scored_units(said, "en") for said in spoken_texts()["travel"]
    ]
    expected = [f"    {text.upper()}" for text in heard]
    expected[1] = "    (not translated: HTTP Error 503: Service Unavailable)"
    assert shown.splitlines()[1::2] == expected
    assert [body["q"] for body in LibreTranslate.asked] == heard
    assert {(body["source"], body["target"]) for body in LibreTranslate.asked} == {("en", "pt")}


@pytest.mark.slow
def test_a_recogniser_of_ones_own():
    shown = run("examples/own_recognizer.py", str(EXAMPLES / "travel.wav")).splitlines()
    heard = [scored_units(line, "en") for line in shown if not line.startswith(" ")]
    assert heard == [scored_units(said, "en") for said in spoken_texts()["travel"]]
    shown = [line for line in shown if line.startswith(" ")]
    assert len(shown) == len(heard)
    assert "trem para Berlim" in shown[0]


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_models_of_ones_own_have_the_types_of_the_interfaces():
    shown = run(
        "-m", "mypy", "--config-file", "pyproject.toml", "examples/own_translator.py", "examples/own_recognizer.py"
    )
    assert "Success" in shown


@pytest.mark.slow
def test_detection_and_recognition_alone_fed_by_a_host_app():
    shown = run("examples/embed_stages.py", str(EXAMPLES / "travel.wav")).splitlines()
    heard = [scored_units(line.split("] ")[1], "en") for line in shown]
    assert heard == [scored_units(said, "en") for said in spoken_texts()["travel"]]


def test_translating_text_loads_no_recogniser():
    shown = run(
        "-c",
        "import sys; from pipeline import NmtStage, load_config, load_translation_model; "
        "load_translation_model('en', 'zh', load_config('demo-zh').nmt); print('faster_whisper' in sys.modules)",
    )
    assert shown.strip() == "False"


@pytest.mark.slow
@pytest.mark.skipif(not Path("/dev/stdin").exists(), reason="no name for what is piped in")
def test_several_speakers_share_one_pair_of_models():
    """The first goes on speaking when the second has finished."""
    command = [sys.executable, "examples/several_speakers.py", "/dev/stdin", str(EXAMPLES / "meeting.wav")]
    said, names = (EXAMPLES / "travel.wav").read_bytes(), []
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        process.stdin.write(said[: len(said) // 2])
        while names.count(b"meeting") < len(spoken_texts()["meeting"]):
            names.append(process.stdout.readline().split()[0])
        rest, _ = process.communicate(said[len(said) // 2 :])
        names += [line.split()[0] for line in rest.splitlines()]
    assert process.returncode == 0
    assert names.count(b"stdin") == len(spoken_texts()["travel"])


@pytest.mark.slow
def test_drafts_are_shown_while_somebody_speaks():
    lines = run("examples/embed_drafts.py", str(EXAMPLES / "meeting.wav")).splitlines()
    finals = {(line[:3], line[4:6]): line[8:].removesuffix("  (final)") for line in lines if line.endswith("(final)")}
    assert len(finals) == 2 * len(spoken_texts()["meeting"])
    drafts = 0
    for line in lines:
        if line.endswith("]") and (committed := line[8:].split(" [")[0].strip()):
            assert finals[line[:3], line[4:6]].startswith(committed)
        drafts += line.endswith("]")
    assert drafts >= len(finals) / 2


@pytest.mark.slow
def test_the_portuguese_recording_is_heard_and_translated_into_english():
    recording = ROOT / "examples" / "audio-pt" / "lisbon.wav"
    command = [sys.executable, "-m", "pipeline.live", str(recording), "--config", "demo-pt-en", "--fast", "--quiet"]
    shown = subprocess.run(command, capture_output=True, text=True, timeout=HANG_S, check=True).stdout.splitlines()
    heard = [scored_units(line.split("  ", 1)[1], "pt") for line in shown[::2]]
    said = [scored_units(text, "pt") for text in spoken_texts()["lisbon"]]
    assert len(heard) == len(said)
    wrong = sum(edits(one, other) for one, other in zip(said, heard, strict=True))
    assert wrong <= 6  # two numbers in figures, and an accent
    departs, takes = (" ".join(line.split()) for line in shown[3:6:2])
    # With 8 bits, a processor's rounding chooses between two right wordings.
    assert re.fullmatch(r"The next train to Lisbon departs at 10 (a\.m|o'clock in the morning)\.", departs)
    assert takes == "How long does the trip take?"
