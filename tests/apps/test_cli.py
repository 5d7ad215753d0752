"""The commands as a user runs them: results, one-line errors, exit statuses, interrupts, kills."""

import contextlib
import fcntl
import json
import os
import pty
import re
import shlex
import signal
import subprocess
import sys
import termios
from array import array
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import IO

import pytest
import srt
import webvtt

from pipeline import MarianModel, States, Translation, load_config
from pipeline.apps import live
from pipeline.backends.nmt_options import NmtConfig
from pipeline.bench.words import scored_units
from pipeline.config import with_overrides
from pipeline.console.cli import report
from pipeline.core.captions.states import OpenTexts
from pipeline.errors import PipelineError, UsageError
from pipeline.events import SAMPLE_RATE, EndOfInput
from pipeline.media.sinks.files import FORMATS
from pipeline.media.sinks.jsonl import read_event
from pipeline.media.sinks.srt import SrtSink
from pipeline.media.subtitles.rules import SubtitleRules
from pipeline.names import STANDARD_OUTPUT
from tests.commands import command, quick_config, run, run_process
from tests.conftest import (
    EXAMPLES,
    HANG_S,
    PHRASES,
    SETTINGS,
    TINY,
    golden,
    make_model_dir,
    read_wav,
    spoken_texts,
    write_wav,
)

TRAVEL = str(EXAMPLES / "travel.wav")
LIVE = ["live", TRAVEL, "--config", "demo-zh"]


SENTENCES_S = (4.5, 7.4)
"""When the first two sentences of the recording have ended, and the next has not begun."""
QUICK = ("--config", "demo-zh", "--asr", "tiny.en", "--target", "en")
"""For processes: what loads in the shortest time."""


@pytest.fixture
def sentence(tmp_path: Path) -> Path:
    return write_wav(tmp_path / "sentence.wav", read_wav(PHRASES)[: int(SENTENCES_S[0] * SAMPLE_RATE)])


@pytest.fixture
def two_sentences(tmp_path: Path) -> Path:
    return write_wav(tmp_path / "two.wav", read_wav(PHRASES)[: int(SENTENCES_S[1] * SAMPLE_RATE)])


@pytest.fixture
def full() -> Iterator[IO[bytes]]:
    """A file on a full disk."""
    with open("/dev/full", "wb") as file:
        yield file


@pytest.fixture
def unread() -> Iterator[IO[bytes]]:
    """A pipe whose reader is gone."""
    reader, writer = os.pipe()
    os.close(reader)
    with open(writer, "wb") as file:
        yield file


def flat(text: str) -> str:
    return "".join(text.split())


@pytest.mark.slow
def test_live_writes_three_files_that_agree(two_sentences, tmp_path):
    paths = {kind: tmp_path / f"out.{kind}" for kind in ("srt", "vtt", "jsonl")}
    outputs = (x for kind, path in paths.items() for x in (f"--{kind}", path))
    done = run("live", two_sentences, "--config", "demo-zh", "--fast", *outputs)
    assert done.returncode == 0, done.stderr.decode()
    cues = list(srt.parse(paths["srt"].read_text("utf-8")))
    vtt = webvtt.read(str(paths["vtt"])).captions
    records = [json.loads(line) for line in paths["jsonl"].read_text("utf-8").splitlines()]
    assert len(cues) == len(vtt) == 2
    assert records[0] == {"type": "events", "version": 4}
    states, texts = States(), OpenTexts()
    translated: list[str] = []
    for record in records:
        event = read_event(record)
        text = None if event is None else texts.push(states.push(event))
        if isinstance(event, Translation):
            assert text is not None
            assert text.steady_text == event.text
            translated.append(event.text)
    assert [flat(cue.content) for cue in cues] == [flat(cue.text) for cue in vtt] == [flat(text) for text in translated]
    previous = 0.0
    for cue, other in zip(cues, vtt, strict=True):
        start, end = cue.start.total_seconds(), cue.end.total_seconds()
        assert previous <= start < end <= SENTENCES_S[1]
        assert other.start_in_seconds == int(start)
        previous = end
    shown = done.stdout.decode()
    assert all(flat(cue.content) in flat(shown) for cue in cues)
    report = done.stderr.decode()
    assert re.search(r"times real time\), 2 sentences\n", report)


def test_standard_output_as_a_file_has_that_format_and_nothing_else(two_sentences, tmp_path):
    beside = tmp_path / "out.srt"
    done = run("live", two_sentences, "--config", "demo-zh", "--fast", "--vtt", "-", "--srt", beside)
    assert done.returncode == 0, done.stderr.decode()
    header, *blocks = done.stdout.decode().removesuffix("\n\n").split("\n\n")
    cues = list(srt.parse(beside.read_text("utf-8")))
    assert header == "WEBVTT"
    assert [flat(block.partition("\n")[2]) for block in blocks] == [flat(cue.content) for cue in cues]
    # The subtitles are not on standard error either, because it is no terminal.
    assert not re.search(r"\d\d:\d\d\.\d–", done.stderr.decode())
    assert "times real time" in done.stderr.decode()


@pytest.mark.slow
def test_a_terminal_shows_what_standard_output_gets_as_a_file(sentence, tmp_path):
    ours, its = pty.openpty()
    with (tmp_path / "out.srt").open("wb") as out:
        out.write(b"before\n")
        out.flush()
        process = subprocess.Popen(command("live", sentence, *QUICK, "--fast", "--srt", "-"), stdout=out, stderr=its)
    os.close(its)
    shown = b""
    with contextlib.suppress(OSError):  # EIO: the other end is closed
        while block := os.read(ours, 4096):
            shown += block
    os.close(ours)
    assert process.wait(timeout=HANG_S) == 0, shown.decode()
    before, _, written = (tmp_path / "out.srt").read_text("utf-8").partition("\n")
    cues = list(srt.parse(written))
    assert before == "before"
    assert len(cues) == 1
    assert all(flat(cue.content) in flat(shown.decode()) for cue in cues)


@pytest.mark.slow
def test_a_reader_that_has_seen_enough_of_standard_output_ends_the_run_quietly(sentence, unread, tmp_path):
    outputs = ("--srt", "-", "--vtt", tmp_path / "out.vtt")
    done = subprocess.run(
        command("live", sentence, *QUICK, "--fast", *outputs),
        stdout=unread, stderr=subprocess.PIPE, timeout=HANG_S, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (1, b"")
    assert webvtt.read(str(tmp_path / "out.vtt")).captions


def test_a_file_whose_name_is_a_dash_is_given_with_its_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    options = live.arguments().parse_args(["./-", "--srt", "./-", "--vtt", "-", "--txt", "x/-"])
    assert options.srt == tmp_path / "-" != STANDARD_OUTPUT
    assert options.vtt == STANDARD_OUTPUT
    assert options.txt == Path("x/-")
    with pytest.raises(UsageError, match="no such file: -"):
        live.open_source(options, load_config("demo-zh"))
    sink = SrtSink(options.srt, SubtitleRules())
    sink.write(EndOfInput())
    sink.close()
    assert (tmp_path / "-").read_bytes() == b""


@pytest.mark.slow
def test_raw_pcm_on_standard_input(sentence, tmp_path):
    done = run("live", "-", "--config", "demo-zh", "--srt", tmp_path / "out.srt", stdin=read_wav(sentence).tobytes())
    assert done.returncode == 0, done.stderr.decode()
    assert len(list(srt.parse((tmp_path / "out.srt").read_text("utf-8")))) == 1


@pytest.mark.parametrize(("more", "is_live"), [([], True), (["--fast"], False)])
def test_standard_input_is_live_without_fast(more, is_live, monkeypatch):
    def started(*_: object, live: bool, **__: object) -> None:
        raise UsageError(f"live: {live}")

    monkeypatch.setattr("pipeline.apps.live_run.LiveRun", started)
    with open(os.devnull, "rb") as nothing, pytest.raises(UsageError, match=f"live: {is_live}"):
        monkeypatch.setattr("pipeline.apps.live.standard_input", lambda: nothing)
        live.run(["-", "--config", "demo-zh", *more])


def test_text_is_translated_with_the_requested_number_of_beams():
    row = next(row for row in golden("tiny-marian") if row["beam_4_ids"] != row["target_ids"])
    found = [
        run("nmt", "--model", TINY, "--source", "en", "--target", "zh", *more, stdin=row["source"].encode()).stdout
        for more in ([], ["--beams", "4"])
    ]
    wide = MarianModel.load(TINY, NmtConfig(beam_size=4, max_tokens=512)).translate(row["source"])
    assert [text.decode().strip() for text in found] == [row["text"].strip(), wide.strip()]
    assert wide != row["text"]


def test_nmt_translates_lines():
    rows = golden("tiny-marian")[:5]
    text = "".join(row["source"] + "\n" for row in rows[:3]) + "\n" + "".join(row["source"] + "\n" for row in rows[3:])
    done = run("nmt", "--model", TINY, stdin=text.encode())
    assert done.returncode == 0, done.stderr.decode()
    lines = done.stdout.decode().splitlines()
    assert lines == [row["text"] for row in rows[:3]] + [""] + [row["text"] for row in rows[3:]]


def test_warnings_go_to_the_current_standard_error():
    """A progress bar replaces standard error to draw messages above itself."""
    program = """
import io, logging, sys
from pipeline.console.cli import main_program

def run(arguments):
    sys.stderr = io.StringIO()
    logging.getLogger("pipeline").warning("so it is: %s", "\\x1b[31m\\nx")
    print(sys.stderr.getvalue())
    return 0

main_program(run)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, timeout=HANG_S, check=True)
    assert done.stdout.decode().split("\n")[0] == r"WARNING: so it is: \x1b[31m\nx"
    assert done.stderr == b""


def test_nmt_jsonl_has_an_object_a_token():
    row = golden("tiny-marian")[0]
    source = row["source"].encode()
    done = run("nmt", "--model", TINY, "--jsonl", stdin=b"\n" + source + b"\n\xff\xfe\n\xff" + source + b"\n")
    assert [text.split(":")[0] for text in done.stderr.decode().splitlines()[-2:]] == [
        "line 3 is not UTF-8",
        "line 4 is not UTF-8",
    ]
    records = [json.loads(line) for line in done.stdout.decode().splitlines()]
    *of_line, whole = (record for record in records if record["sentence"] == 1)
    assert "".join(record["text"] for record in of_line) == row["text"]
    assert [record["type"] for record in of_line] == ["delta"] * len(row["target_ids"])
    assert [record.get("complete", False) for record in of_line] == [False] * (len(of_line) - 1) + [True]
    assert all(record["log_probability"] <= 0 for record in of_line)
    assert (whole["type"], whole["text"]) == ("translation", row["text"])
    assert not any(record.get("truncated") for record in records)
    cut = run("nmt", "--model", TINY, "--jsonl", "--max-tokens", "3", stdin=source).stdout.decode().splitlines()
    assert [json.loads(line).get("truncated") for line in cut] == [None, None, None, True]
    as_text = run("nmt", "--model", TINY, "--max-tokens", "3", stdin=b"\n" + source)
    assert (
        "line 2: the translation of a sentence looped or reached the token limit and was cut off; split"
        in as_text.stderr.decode()
    )
    translated = {record["sentence"] for record in records if record["type"] == "delta" and "token" in record}
    assert translated == {1, 3}  # SentencePiece has no token for invalid UTF-8
    assert [record["sentence"] for record in records if record["type"] == "translation"] == [0, 1, 2, 3]


PLACES = {
    "TRAVEL": TRAVEL, "TINY": str(TINY), "EXAMPLES": str(EXAMPLES), "CODE": __file__, "MODEL": load_config("demo-zh").nmt.model,
}  # fmt: skip


def usage(line: str) -> tuple[int, list[str], str]:
    """An exit status, the arguments and the message of a line of wrong_usage.tsv."""
    status, typed, message = line.split("\t")
    typed = typed.replace("LIVE", "live TRAVEL --config demo-zh")
    return int(status), [PLACES.get(word, word) for word in shlex.split(typed)], message


WRONG = [
    *map(usage, Path(__file__).with_name("wrong_usage.tsv").read_text("utf-8").splitlines()),
    (
        2,
        ["live", "a\x1b[31m\nb\u202e.wav", "--config", "demo-zh"],
        r"no such file: a\x1b[31m\nb\u202e.wav; give the path",
    ),
    (2, [*LIVE, "--\x1b[31m\udcff"], r"unrecognized arguments: --\x1b[31m\xff"),
    (2, [*LIVE, "--srt", "x" * 300], "File name too long"),
]


OF_EACH = [next(each for each in WRONG if each[1][0] == name) for name in ("live", "translate", "models", "nmt")]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with configurations whose models do not exist: wrong usage is reported before loading one."""
    (tmp_path / "impossible.toml").write_text(
        "asr.model = './none'\nnmt.model = './none'\nsubtitles.min_duration_ms = 9000"
    )
    (tmp_path / "two.toml").write_text("asr.model = './none'\nnmt.model = './none'\nlanguages.target = ['zh', 'de']")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("status", "arguments", "message"), WRONG, ids=lambda value: value if isinstance(value, str) else None
)
def test_wrong_usage_is_one_line_and_an_exit_status(status, arguments, message, folder, capsys):
    found: object = None
    try:
        import_module(f"pipeline.apps.{arguments[0]}").run(arguments[1:])
    except PipelineError as error:
        report(error)
        found = error.exit_status
    except SystemExit as end:
        found = end.code
    check_usage_error(found, capsys.readouterr().err, status, message)


@pytest.mark.parametrize(("status", "arguments", "message"), OF_EACH, ids=lambda value: "")
def test_wrong_usage_of_a_whole_command(status, arguments, message, folder):
    done = run(*arguments)
    check_usage_error(done.returncode, done.stderr.decode(), status, message)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("status", "arguments", "message"),
    [OF_EACH[0], (1, ["live", "-", *QUICK], "standard input held no audio")],
    ids=["usage", "input"],
)
def test_errors_of_a_process(status, arguments, message, folder):
    done = run_process(*arguments)
    check_usage_error(done.returncode, done.stderr.decode(), status, message)


@pytest.mark.parametrize("module", ["live", "translate", "serve"])
def test_without_a_network_the_default_configuration_names_the_demo(module, tmp_path):
    recording = [] if module == "serve" else [TRAVEL]
    nowhere = {"HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path)}
    offline = (
        "faster-whisper-small is not in the cache and HF_HUB_OFFLINE forbids fetching it. Unset it and run this again"
    )
    done = run(module, *recording, **nowhere)
    assert done.returncode == 1
    assert f"{offline}, or give --config demo, which needs no network\n" in done.stderr.decode()
    assert f"{offline}\n" in run(module, *recording, "--source", "de", "--target", "en", **nowhere).stderr.decode()


def test_nmt_takes_a_student_by_its_name_and_says_which_weights_run():
    done = run("nmt", "--model", "firefox/en-pt-tiny", stdin=b"Hello.\n")
    assert (done.stdout.decode(), done.stderr.decode()) == ("Olá.\n", "firefox/en-pt-tiny (tiny, BLEU 46.1)\n")


def check_usage_error(found: object, error: str, status: int, message: str) -> None:
    assert found == status, error
    assert message in error
    assert "Traceback" not in error
    assert "\x1b" not in error
    assert "usage:" not in error
    assert len([line for line in error.splitlines() if "error:" in line]) == 1


def test_an_exported_model_replaces_the_configured_one():
    config = with_overrides(load_config("en-zh"), nmt=str(TINY), asr=load_config("demo-zh").asr.model)
    assert MarianModel.load(Path(config.nmt.model), NmtConfig(file_suffix=config.nmt.file_suffix)).translate(
        "Where is the bank?"
    )


def test_old_subtitles_stay_if_nothing_was_heard(tmp_path):
    outputs = [tmp_path / f"old.{kind}" for kind in FORMATS]
    for path in outputs:
        path.write_text("old")
    options = [part for path in outputs for part in (f"--{path.suffix[1:]}", path)]
    done = run("live", "-", "--config", "demo-zh", "--overwrite", *options)
    assert done.returncode == 1
    assert "held no audio" in done.stderr.decode()
    assert {path.read_text() for path in outputs} == {"old"}


@pytest.mark.slow
@pytest.mark.parametrize(("closed", "status"), [("<&-", 2), (">&-", 0)])
def test_closed_standard_streams_are_no_traceback(closed, status, sentence):
    shell = " ".join(command("live", "-" if closed == "<&-" else sentence, *QUICK, "--fast")) + " " + closed
    done = subprocess.run(["bash", "-c", shell], capture_output=True, timeout=HANG_S, check=False)
    assert done.returncode == status
    assert b"Traceback" not in done.stderr


def test_without_standard_error_no_messages_are_mixed_into_translations():
    shell = " ".join(command("nmt", "--model", "nowhere")) + " 2>&-"
    done = subprocess.run(
        ["bash", "-c", shell], stdin=subprocess.DEVNULL, capture_output=True, timeout=HANG_S, check=False
    )
    assert (done.returncode, done.stdout) == (2, b"")


def test_closed_standard_output_is_an_error_for_translations():
    shell = " ".join(command("nmt", "--model", str(TINY))) + " >&-"
    done = subprocess.run(["bash", "-c", shell], input=b"Hello\n", capture_output=True, timeout=HANG_S, check=False)
    assert done.returncode == 1
    assert b"error: standard output is closed" in done.stderr


def test_subtitles_do_not_overwrite_the_file_of_standard_output():
    done = run(*LIVE, "--srt", "/dev/stdout")
    assert done.returncode == 2
    assert b"/dev/stdout is also where standard output goes; choose another place for the srt file" in done.stderr
    assert done.stdout == b""


FULL = b"error: cannot write to standard output (No space left on device)"


@pytest.mark.slow
def test_a_full_disk_under_standard_output_is_not_reported_as_a_closed_terminal(full, sentence, tmp_path):
    done = subprocess.run(
        command("live", sentence, *QUICK, "--fast", "--srt", tmp_path / "a.srt"),
        stdout=full, stderr=subprocess.PIPE, timeout=HANG_S, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert FULL in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("colour", [{}, {"FORCE_COLOR": "1"}])
def test_neither_a_full_disk_nor_a_closed_reader_is_a_traceback(colour, full, unread, two_sentences, tmp_path):
    live = ("live", two_sentences, "--config", "demo-zh", "--fast")
    done = run(*live, "--srt", tmp_path / "a.srt", stdout=full, **colour)
    assert (done.returncode, FULL in done.stderr) == (1, True)
    assert b"Traceback" not in done.stderr
    done = run(*live, stdout=unread, **colour)
    assert done.returncode == 1
    assert b"error" not in done.stderr
    assert b"Traceback" not in done.stderr


@pytest.mark.slow
def test_unwritable_standard_error_does_not_end_the_run(full, sentence, tmp_path):
    done = subprocess.run(
        command("translate", sentence, *QUICK, "--output-dir", tmp_path),
        stdout=subprocess.PIPE, stderr=full, timeout=HANG_S, check=False,
    )  # fmt: skip
    assert done.returncode == 0
    assert b"sentence.wav" in done.stdout
    assert (tmp_path / "sentence.srt").stat().st_size > 0


def test_a_deleted_working_directory_is_reported(tmp_path):
    program = f"import os; os.rmdir(os.getcwd()); os.execv({sys.executable!r}, {command('models', 'list')!r})"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, timeout=HANG_S, check=False
    )
    assert done.returncode == 2
    assert done.stderr.decode() == (
        "error: the current folder cannot be used (No such file or directory); change to another one\n"
    )


@pytest.mark.parametrize("missing", [*SETTINGS[:4], "encoder_model.onnx", "decoder_model_merged.onnx"])
def test_a_missing_model_file_is_named(missing, tmp_path):
    done = run("nmt", "--model", make_model_dir(tmp_path / "model", "merged", leave_out=missing), stdin=b"Yes.\n")
    assert done.returncode == 1
    expected = missing if missing in SETTINGS else ("an encoder" if "encoder_m" in missing else "a decoder")
    assert expected in done.stderr.decode()
    assert "Traceback" not in done.stderr.decode()
    assert done.stdout == b""


def test_no_network_for_a_model_that_is_not_cached(tmp_path):
    # Nothing listens on port 9, so the hub cannot be reached.
    done = run_process("live", TRAVEL, "--config", "en-zh", HF_HOME=str(tmp_path), HF_ENDPOINT="http://127.0.0.1:9")
    error = done.stderr.decode()
    assert done.returncode == 1, error
    assert "is not in the cache and the hub cannot be reached" in error
    assert "Connect and run this again" in error
    assert "Traceback" not in error


def test_an_old_subtitle_file_survives_a_run_that_fails_early(tmp_path):
    (tmp_path / "out.srt").write_text("precious")
    done = run(*LIVE, "--nmt", EXAMPLES, "--srt", tmp_path / "out.srt", "--overwrite")
    assert done.returncode == 1
    assert (tmp_path / "out.srt").read_text() == "precious"


def test_existing_subtitles_are_replaced_only_if_that_is_asked_for(tmp_path):
    (old := tmp_path / "out.vtt").write_text("precious")
    (tmp_path / "new.srt").touch()
    outputs = {("srt", "zh"): tmp_path / "new.srt", ("vtt", "zh"): old}
    with pytest.raises(UsageError, match="out.vtt exists; name another file, or replace it with --overwrite"):
        live._check_new(outputs)
    old.write_text("WEBVTT\n\n")  # without a subtitle
    live._check_new(
        outputs | {("txt", "zh"): Path(os.devnull), ("jsonl", ""): Path("-"), ("final-log", "zh"): tmp_path / "out.srt"}
    )
    (tmp_path / "out.srt").write_text("precious")
    done = run(*LIVE, "--srt", tmp_path / "out.srt")
    assert (done.returncode, done.stdout) == (2, b"")
    assert (tmp_path / "out.srt").read_text() == "precious"


def listening(tmp_path: Path, audio: bytes) -> subprocess.Popen[bytes]:
    """A live run of standard input that has read ``audio``, waits for more, and has shown its first sentence."""
    outputs = ("--srt", tmp_path / "out.srt", "--jsonl", tmp_path / "out.jsonl")
    process = subprocess.Popen(
        command("live", "-", "--config", quick_config(tmp_path), *outputs),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=os.environ | {"PYTHONUNBUFFERED": "1"},
    )
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdin.write(audio)
    process.stdin.flush()
    assert process.stdout.readline(), process.stderr.read()
    unread = array("i", [1])
    while unread[0]:
        fcntl.ioctl(process.stdin, termios.FIONREAD, unread)
    return process


@pytest.mark.slow
def test_an_interrupt_drains_the_sentence_that_standard_input_is_in(tmp_path):
    # The audio ends in the pause that would end the second segment.
    process = listening(tmp_path, read_wav(PHRASES)[: int(16_000 * 6.9)].tobytes())
    process.send_signal(signal.SIGINT)
    process.wait(timeout=HANG_S)
    assert process.returncode == 0
    records = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text("utf-8").splitlines()]
    texts = [scored_units(r["text"], "en") for r in records if r["type"] == "transcript"]
    assert len(texts) == 2
    assert texts[-1] == scored_units(spoken_texts()["phrases"][1], "en")
    assert len(list(srt.parse((tmp_path / "out.srt").read_text("utf-8")))) == 2
    assert records[-1]["type"] == "end"


@pytest.mark.parametrize(
    ("arguments", "module"),
    [
        (("__main__", "live"), "argparse"),
        (("live",), "argparse"),
        ((*LIVE, "--vtt", "out.vtt"), "numpy._core"),
        ((*LIVE, "--vtt", "out.vtt"), "ctranslate2.models"),
        (("translate", TRAVEL, "--config", "demo-zh", "--output-dir", "."), "pipeline.archives.recordings"),
        (("models", "compile", TINY, "compiled"), "numpy._core"),
        (("models", "compile", TINY, "compiled"), "google.protobuf.message"),
        (("nmt", "--model", TINY), "onnxruntime.capi"),
        (("bench", "nmt"), "numpy._core"),
    ],
)
def test_an_interrupt_during_imports_ends_the_process_silently(arguments, module, tmp_path):
    """The interpreter prints what it has imported so far."""
    python, *rest = command(*map(str, arguments))
    process = subprocess.Popen(
        [python, "-X", "importtime", *rest], cwd=tmp_path, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, bufsize=0
    )
    assert process.stderr is not None
    assert any(line.split(b"|")[-1].strip().decode() == module for line in process.stderr), "it is imported no more"
    process.send_signal(signal.SIGINT)
    said = [line for line in process.stderr if not line.startswith(b"import time:")]
    assert said == []
    assert process.wait(timeout=HANG_S) in (-signal.SIGINT, 130)  # the latter if it had just started to work
    assert list(tmp_path.iterdir()) == []


def test_an_interrupt_during_an_import_ends_the_process():
    interrupt = "os.kill(os.getpid(), signal.SIGINT)"
    program = (
        "import os, signal\nfrom pipeline.console.cli import importing\nwith importing():\n    {}\ntry:\n    {}\n"
        + ("except KeyboardInterrupt:\n    print('raised')")
    )
    for within, after, status, said in ((interrupt, "pass", -signal.SIGINT, ""), ("pass", interrupt, 0, "raised\n")):
        done = subprocess.run(
            [sys.executable, "-c", program.format(within, after)], capture_output=True, text=True, check=False
        )
        assert (done.returncode, done.stdout, done.stderr) == (status, said, "")


@pytest.mark.parametrize(
    "arguments",
    [
        ("models", "list"),
        ("models", "inspect", TINY),
        ("nmt", "--model", TINY),
        ("translate", EXAMPLES, "--output-dir", ".", "--config", "demo-zh"),
    ],
)
def test_output_onto_a_full_disk_is_a_failure_of_one_line(arguments, full, tmp_path, monkeypatch):
    for path in EXAMPLES.glob("*.wav"):  # exists already, so nothing is translated
        (tmp_path / f"{path.stem}.srt").write_text("precious")
    monkeypatch.chdir(tmp_path)
    check_full_disk(run(*arguments, stdin=b"Yes.\n", stdout=full))


def test_output_onto_a_full_disk_is_a_failure_of_a_process_too(full):
    done = subprocess.run(
        command("nmt", "--model", TINY),
        env={key: value for key, value in os.environ.items() if key != "PYTHONUNBUFFERED"},  # fails again at the end
        input=b"Yes.\n", stdout=full, stderr=subprocess.PIPE, timeout=HANG_S, check=False,
    )  # fmt: skip
    check_full_disk(done)


def check_full_disk(done: subprocess.CompletedProcess[bytes]) -> None:
    assert done.returncode == 1
    (error,) = done.stderr.decode().strip().splitlines()
    assert error == "error: cannot write the output (No space left on device); make room, or write to another place"
