"""Every command in the README and in docs/ is run here, or named below with the reason why it is not."""

import os
import re
import shlex
import signal
import ssl
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from urllib.request import urlopen

import pytest

from pipeline.apps.commands import COMMANDS as APPS
from pipeline.events import SAMPLE_RATE
from tests.commands import run
from tests.conftest import EXAMPLES, HANG_S, ROOT, read_wav, write_wav
from tests.docs.pages import PAGES, commands

COMMANDS = list(dict.fromkeys(command for page in PAGES.values() for command in commands(page)))
NOT_RUN = {
    "make demo": ".ci/run runs it",
    "make serve": "tests/test_makefile.py and .ci/run run it",
    "make test": "it runs these tests",
    "python3 -m venv .venv": "make demo does the same",
    ". .venv/bin/activate": "make demo does the same",
    "pip install '.[demo]'": ".ci/run runs it",
    "pip install '.[server,demo]'": "make test installs these extras",
    "pip install --no-deps moonshine-voice==0.0.73": "make test installs it",
    "speech-translate live --list-devices": "needs PortAudio and a device; the tests marked microphone run it",
    "speech-translate live --mic --config demo --glossary terms.tsv": "needs a microphone",
    "speech-translate live --mic --config demo": "needs a microphone; the tests marked microphone speak into one",
    "speech-translate live --mic --source pt --target en": "needs a microphone and a network",
    "speech-translate live --mic --config demo --source en,pt,es --target en": "needs a microphone and a network",
    "speech-translate translate talk.wav --config demo --source auto --target en --format srt": (
        "needs speech in several languages; tests/backends/test_by_language.py has some"
    ),
    "speech-translate live --mic --config demo-pt-en --speak": (
        "needs a microphone; tests/speaking/test_live_voice.py speaks a recording's translation"
    ),
    "speech-translate live --mic --config demo --speak pf_dora": (
        "needs a microphone, and a model of 119 MB; tests/speaking/test_kokoro.py has a made one"
    ),
    "speech-translate live --loopback --config demo": "needs PulseAudio; tests/media/audio/test_loopback.py runs it",
    "speech-translate live https://example.org/live.m3u8 --source en --target de": (
        "needs a network; tests/apps/test_live_streams.py has a stream"
    ),
    "speech-translate models pull en-zh": "needs a network",
    "openssl rand -hex 16 > token": "the servers run here find a token",
    'curl http://127.0.0.1:8000/translate -d source=en -d target=pt --data-urlencode "q=Where is the station?"': (
        "needs a server; tests/docs/test_snippets.py asks one"
    ),
    'curl "http://127.0.0.1:8000/asr?language=en&output=srt" -F audio_file=@examples/audio/travel.wav': (
        "needs a server; tests/server/test_whisper_asr.py asks one"
    ),
    "speech-translate translate call.wav --speakers Ana,Ben --format vtt,srt --config demo": (
        "needs a call in two channels; tests/archives/test_speakers.py has one"
    ),
    "speech-translate check talk.srt": "tests/apps/test_check.py runs it",
    "parallel --sshlogin alpha,beta --jobs 1 --retries 3 speech-translate translate /archive --output-dir /subtitles "
    "--config demo --processes 4 --shard {}/8 ::: {1..8}": "needs machines; tests/archives/test_shards.py runs shards",
    "speech-translate translate /archive --output-dir /subtitles --config demo --processes 4 --claim": (
        "needs a shared folder; tests/archives/test_claims.py has one"
    ),
    "dask scheduler": "runs until it is stopped; tests/archives/test_cluster.py runs it",
    "dask worker tcp://HOST:8786 --nworkers 4 --nthreads 1": "needs a scheduler; tests/archives/test_cluster.py runs it",
    "speech-translate translate /archive --output-dir /subtitles --config demo --cluster tcp://HOST:8786": (
        "needs a cluster; tests/archives/test_cluster.py has one"
    ),
    "speech-translate translate s3://archive/talks --output-dir s3://archive/subtitles --config demo --claim": (
        "needs an object store; tests/archives/test_objects.py has one"
    ),
    "optimum-cli export onnx --model Helsinki-NLP/opus-mt-en-de --task text2text-generation-with-past opus-mt-en-de": (
        "needs a network, and PyTorch"
    ),
    "speech-translate bench speech speech": "needs a network",
    "speech-translate bench speech speech --reading reading.wav": "needs a network",
    "speech-translate bench live reading.wav --config demo --compare": (
        "needs the recording that the command before it makes"
    ),
    "speech-translate bench asr speech --threads 1": "needs the recordings that the command before it fetches",
    "speech-translate bench capacity examples/audio/novel.wav --config demo --sessions 4 --readers 20 --seconds 600": (
        "takes 20 minutes"
    ),
    "speech-translate bench nmt --model firefox/en-pt-tiny": (
        "takes 20 s of processor time; tests/bench/test_nmt.py has fewer sentences"
    ),
    "speech-translate bench capacity talk.wav --config demo --lag 3": "takes minutes",
    "speech-translate bench texts pairs.tsv --show 10": "needs a file of pairs; tests/bench/test_texts.py has one",
    "speech-translate bench texts pairs.tsv --model firefox/pt-en-tiny --back --json now.json --against before.json": (
        "needs the files of runs before it; tests/bench/test_texts.py has them"
    ),
}
SERVERS = [each for each in COMMANDS if re.match(r"(speech-translate |python -m pipeline\.)serve ", each)]
"""They run until they are told to stop; that with the most options is started."""
SLOW = {
    "speech-translate live examples/audio/travel.wav --config demo --srt out.srt",
    "speech-translate translate examples/audio --output-dir subtitles --config demo",
    "speech-translate translate examples/audio --output-dir subtitles --format srt,vtt,txt --bilingual --config demo",
    "speech-translate translate examples/audio --output-dir subtitles --config demo --processes 2",
    "tail -c +45 examples/audio/meeting.wav | speech-translate live - --config demo",
    "speech-translate bench live talk.wav --config demo",
}
EXAMPLES_RUN = [each for each in COMMANDS if each.startswith("python examples/")]
"""Run by tests/test_examples.py, which looks at what they print."""
HERE = [command for command in COMMANDS if command not in {*NOT_RUN, *SERVERS, *EXAMPLES_RUN}]
SAID = {
    "models inspect": "it runs",
    "models compile": "my-model: int8",
    "models fetch": "firefox/pt-en-tiny: complete and undamaged in FOLDER",
    "models list": "Systran/faster-whisper-small",
    "models list --pairs": "TigreGotico/",
    "bench live": "settled after",
    "--speakers auto": "2 sentences",
    "nmt --model models/demo/nmt-zh-en": "hotel",
    "--print-completion": "",  # into a file; tests/apps/test_program.py uses it
}
"""A part of a command → a pattern of what it prints; the longest part counts. All others print Chinese."""


def runnable(command: str) -> str:
    """The command for the tests' own interpreter, whether or not its folder is in PATH."""
    return re.sub(r"\bpython\b", sys.executable, re.sub(r"\bspeech-translate(?= )", "python -m pipeline", command))


def test_every_command_is_run_or_excused():
    assert len(HERE) >= 15
    assert {*NOT_RUN, *SLOW} <= {*COMMANDS}
    assert SERVERS
    tests = (ROOT / "tests" / "test_examples.py").read_text("utf-8")
    assert [command for command in EXAMPLES_RUN if f'"{command.split()[1]}"' not in tests] == []
    assert len(EXAMPLES_RUN) >= 6


def environment(folder: Path) -> dict[str, str]:
    """Variables for a command in ``folder``, which gets what the repository has, and the beginnings of recordings."""
    for name in ("models", "tests"):
        (folder / name).symlink_to(ROOT / name)
    (folder / "examples" / "audio").mkdir(parents=True)
    recordings = {"examples/audio/travel.wav": "travel", "examples/audio/meeting.wav": "meeting", "talk.wav": "novel"}
    for path, name in recordings.items():
        write_wav(folder / path, read_wav(EXAMPLES / f"{name}.wav")[: 8 * SAMPLE_RATE])
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    return {**os.environ, "PYTHONPATH": path}


@pytest.mark.parametrize("command", [pytest.param(c, marks=[pytest.mark.slow] if c in SLOW else []) for c in HERE])
def test_a_command_runs(command, tmp_path, monkeypatch):
    """By a shell, if it needs one or starts processes; otherwise in this process."""
    variables = environment(tmp_path)
    monkeypatch.chdir(tmp_path)
    program, name, *options = shlex.split(command)
    if program == "speech-translate" and name in APPS and not re.search("[|<>]|--processes", command):
        done = run(name, *options)
    else:
        done = subprocess.run(
            ["bash", "-o", "pipefail", "-c", runnable(command)],
            env=variables, capture_output=True, timeout=HANG_S, check=False,
        )  # fmt: skip
    assert done.returncode == 0, done.stderr.decode()
    parts = sorted((part for part in SAID if part in command), key=len)
    said = done.stdout.decode()
    assert re.search(SAID[parts[-1]] if parts else "[\u4e00-\u9fffàáãçéêíõ]", said) or [
        *(tmp_path / "subtitles").iterdir()
    ]


@pytest.mark.slow
def test_a_server_starts_and_stops(tmp_path):
    command = max(SERVERS, key=lambda each: len(shlex.split(each)))
    program = [*shlex.split(runnable(command)), "--port", "0"]  # the default port may be taken
    (tmp_path / "token").write_text("0123456789abcdef")
    variables = {**environment(tmp_path), "HF_HOME": str(tmp_path / "hub")}
    with subprocess.Popen(program, cwd=tmp_path, env=variables, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        try:
            address = next(line.split()[2] for line in server.stderr if line.startswith("serving on http"))
            with urlopen(f"{address.rstrip(',')}readyz", context=ssl._create_unverified_context()) as answer:
                assert answer.status == 200
            server.send_signal(signal.SIGTERM)
            assert server.wait(HANG_S) == 0
        finally:
            server.kill()


@pytest.mark.parametrize("command", [each for each in (*NOT_RUN, *SERVERS) if each.startswith("speech-translate ")])
def test_the_options_of_a_command_exist(command):
    name, *options = shlex.split(command)[1:]
    parser = import_module("pipeline.bench.__main__" if name == "bench" else f"pipeline.apps.{name}").arguments()
    parser.parse_args(options)
