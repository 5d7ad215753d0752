"""python -m pipeline.models inspect: reports the files, whether the model runs, and if not, why."""

import json

import pytest

from pipeline.backends.marian.inspection import ModelReport, as_text, inspect_model
from tests.commands import run
from tests.conftest import LAYOUTS, make_model_dir


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_is_reported_as_running(layout, tmp_path):
    report = inspect_model(make_model_dir(tmp_path, layout))
    assert report.runs
    assert report.problem is None
    assert len(report.graphs) == len(LAYOUTS[layout])
    assert (report.source, report.target) == ("en", "zh")
    assert report.generation["end_token"] == 0
    text = as_text(report)
    assert "it runs" in text
    assert all(port.name in text for graph in report.graphs for port in (*graph.inputs, *graph.outputs))


def inspect(*arguments):
    return run("models", "inspect", *arguments)


def test_a_running_model_exits_0_and_json_is_the_whole_report(tmp_path):
    done = inspect(str(make_model_dir(tmp_path, "split")), "--json")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["runs"] is True
    assert report["layout"] == "split"
    assert {graph["role"] for graph in report["graphs"]} == {
        "an encoder",
        "a first-step decoder",
        "a decoder with past",
    }
    assert report["graphs"][0]["inputs"][0].keys() == {"name", "dtype", "shape"}


def test_a_refused_model_exits_1_and_says_what_is_missing(tmp_path):
    folder = make_model_dir(tmp_path / "a", "split", leave_out="decoder_model.onnx")
    done = inspect(str(folder))
    assert done.returncode == 1
    assert "decoder_with_past_model.onnx: a decoder with past" in done.stdout.decode()
    assert "it does not run" in done.stdout.decode()
    assert "lacks a decoder that can take the first step" in done.stdout.decode()
    assert "optimum-cli export onnx" in done.stdout.decode()
    done = inspect(str(make_model_dir(tmp_path / "b", "merged", leave_out="vocab.json")))
    assert done.returncode == 1
    assert "missing: vocab.json" in done.stdout.decode()
    done = inspect(str(tmp_path / "nowhere"))
    assert done.returncode == 1
    assert "no such model directory" in done.stdout.decode()
    assert "Traceback" not in done.stderr.decode()


def test_the_report_recommends_a_faster_layout_if_there_is_one(tmp_path):
    exported = as_text(inspect_model(make_model_dir(tmp_path / "merged", "merged")))
    assert "python -m pipeline.models compile SRC DST" in exported
    compiled = as_text(inspect_model(make_model_dir(tmp_path / "streaming", "streaming")))
    assert "layout: streaming (2 layers, 4 heads of 16, 878 target pieces)" in compiled
    assert "compile SRC" not in compiled


def test_files_that_a_model_needs_are_missing_and_optional_ones_are_not():
    files = {"config.json": True, "vocab.json": False, "target_vocab.json": False}
    report = ModelReport("model", runs=False, problem="it lacks one", files=files)
    assert as_text(report).splitlines()[:2] == ["model", "files: config.json; missing: vocab.json"]
