"""python -m pipeline.models compile: the compiled models, and the messages for errors."""

import dataclasses
import json
import resource
import subprocess
import sys

import numpy as np
import pytest

from pipeline.backends.marian.compile.assemble import read_architecture
from pipeline.backends.marian.compile.build import Measurement, _fastest, compile_model
from pipeline.backends.marian.compile.checkpoint import expected_shapes
from pipeline.backends.marian.compile.measure import read_sample
from pipeline.backends.marian.decode.generation import SearchRequest
from pipeline.backends.marian.decode.streaming import StreamingDecoder
from pipeline.backends.marian.decode.tokenizer import MarianTokenizer
from pipeline.backends.marian.model import MarianModel
from pipeline.backends.marian.search.beams import greedy
from pipeline.backends.nmt_options import NmtConfig
from pipeline.errors import ModelError, UsageError
from tests.backends.marian.compiler.checkpoints import tiny_config, write_checkpoint
from tests.backends.marian.conftest import found_ids
from tests.conftest import ROOT, TINY, compiled_tiny, golden, make_model_dir


@pytest.fixture(scope="module")
def sample(tmp_path_factory):
    """Sentences with fp32's translations as references, so that the chrF loss is 100 minus the agreement."""
    path = tmp_path_factory.mktemp("sample") / "sample.tsv"
    path.write_text("".join(f"{row['source']}\t{row['text']}\n" for row in golden("tiny-marian")), "utf-8")
    return path


def command(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "pipeline.models", "compile", *map(str, arguments)],
        capture_output=True,
        text=True,
        cwd=ROOT,
    )


@pytest.mark.slow
def test_the_command_compiles(tmp_path, sample):
    done = command(TINY, tmp_path / "out", "--weights", "int8", "--sample", sample)
    assert done.returncode == 0, done.stderr
    assert "int8, 501 of 878 output rows" in done.stdout
    model = MarianModel.load(tmp_path / "out")
    assert isinstance(model.decoder, StreamingDecoder)
    assert model.translate("Where is the station?") == MarianModel.load(TINY).translate("Where is the station?")
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


@pytest.mark.parametrize(("weights", "least"), [("int8", 97), ("int4", 75)])
def test_quantised_models_mostly_agree_with_fp32(weights, least, sample, tmp_path):
    report = compile_model(TINY, tmp_path / "out", weights=weights, sample=sample)
    assert (report.weights, report.measurements) == (weights, ())  # one precision is not measured: there is no choice
    model = MarianModel.load(tmp_path / "out", NmtConfig(max_tokens=512))
    rows = golden("tiny-marian")
    agreement = same_tokens([found_ids(model, row["source_ids"]) for row in rows], [row["target_ids"] for row in rows])
    print(f"{weights}: {agreement:.1f} % of the tokens")
    assert agreement >= least


def same_tokens(ours, theirs):
    """Percentage of their tokens that are ours at the same position."""
    same = sum(a == b for one, other in zip(ours, theirs, strict=True) for a, b in zip(one, other, strict=False))
    return 100 * same / sum(len(other) for other in theirs)


def test_auto_takes_the_fastest_that_is_good_enough(sample, tmp_path):
    report = compile_model(TINY, tmp_path / "out", sample=sample)
    assert {one.weights for one in report.measurements} == {"fp32", "int8", "int4"}
    good = [one for one in report.measurements if one.chrf_loss <= 0.3]
    assert report.weights == min(good, key=lambda one: one.token_ms).weights
    lossy = next(one for one in report.measurements if one.weights == "int4")
    assert lossy not in good  # 4 bits are too few for a model this small


def test_auto_takes_the_best_and_warns_if_a_shortlist_costs_too_much(caplog):
    def measured(weights, loss, token_ms):
        return Measurement(weights, loss, token_ms)

    fp32, int8, int4 = measured("fp32", 0.4, 10.0), measured("int8", 0.45, 1.6), measured("int4", 5.0, 1.3)
    assert _fastest([fp32, int8, int4]) == "fp32"
    assert "no precision stays within 0.3 chrF" in caplog.text
    caplog.clear()
    good = measured("int8", 0.3, 1.6)
    assert _fastest([fp32, good, int4]) == "int8"
    assert caplog.text == ""


def test_auto_without_text_takes_int8(tmp_path):
    report = compile_model(TINY, tmp_path / "out")
    assert (report.weights, report.measurements) == ("int8", ())


def test_a_sample_that_the_directory_ships_is_used(sample, tmp_path):
    folder = make_model_dir(tmp_path / "model", "merged")
    (folder / "sample.tsv").write_bytes(sample.read_bytes())
    assert compile_model(folder, tmp_path / "out").measurements


def test_rows_are_the_ids_that_the_target_tokenizer_can_produce():
    tokenizer = MarianTokenizer.load(TINY)
    decoder, exact = (MarianModel.load(compiled_tiny(weights)).decoder for weights in ("int8", "fp32"))
    assert set(decoder.output_ids.tolist()) == tokenizer.target_ids
    assert len(exact.output_ids) == tokenizer.target_size
    assert {token for row in golden("tiny-marian") for token in row["target_ids"]} <= tokenizer.target_ids
    assert len(tokenizer.target_ids) < tokenizer.target_size


def test_all_rows_are_kept_if_a_translation_needs_another(sample, tmp_path, monkeypatch):
    needed = golden("tiny-marian")[0]["target_ids"][0]
    spelled = MarianTokenizer.load(TINY).target_ids
    monkeypatch.setattr(MarianTokenizer, "target_ids", spelled - {needed})
    report = compile_model(TINY, tmp_path / "out", weights="int8", sample=sample)
    assert report.rows == report.vocabulary == 878


def test_a_shortlist_keeps_the_most_frequent_rows(tmp_path):
    text = tmp_path / "target.txt"
    text.write_text("\n".join(row["text"] for row in golden("tiny-marian")), "utf-8")
    report = compile_model(TINY, tmp_path / "out", weights="fp32", shortlist=text, shortlist_size=200)
    assert report.rows == 200
    model = MarianModel.load(tmp_path / "out", NmtConfig(max_tokens=60))
    kept = set(model.decoder.output_ids.tolist())
    frequencies = model.tokenizer.target_frequencies(text.read_text("utf-8").splitlines())
    assert {token for token, _ in frequencies.most_common(150)} <= kept
    for row in golden("tiny-marian")[:10]:
        assert {token.id for token in greedy(SearchRequest(model.decoder, row["source_ids"], model.generation))} <= kept


def test_an_alignment_head_outputs_the_attention_weights_of_each_token(tmp_path):
    compile_model(TINY, tmp_path / "out", weights="fp32", alignment=(1, 2))
    decoder = MarianModel.load(tmp_path / "out").decoder
    row = golden("tiny-marian")[0]
    together, one_by_one = decoder.encode(row["source_ids"]), decoder.encode(row["source_ids"])
    assert together.alignment is None
    tokens = [877, *row["target_ids"][:3]]
    decoder.force(together, tokens[:1])
    decoder.force(together, tokens[1:])
    rows = []
    for token in tokens:
        decoder.step(one_by_one, token)
        assert one_by_one.alignment is not None
        rows.append(one_by_one.alignment)
    weights = np.concatenate(rows)
    assert weights.shape == (4, len(row["source_ids"]))
    assert weights.sum(1) == pytest.approx(np.ones(4), abs=1e-5)
    assert np.abs(weights[0] - weights[1]).max() > 0.01
    assert together.alignment == pytest.approx(weights[1:], abs=1e-5)
    forked = together.fork()
    decoder.force(together, row["target_ids"][3:6])
    assert forked.alignment == pytest.approx(weights[1:], abs=1e-5)


def test_scores_are_rescored_with_more_bits(tmp_path):
    """The best 4-bit scores are recomputed with 8-bit rows, so their errors are much smaller."""
    compile_model(TINY, tmp_path / "out", weights="int8")
    quantised, exact = MarianModel.load(tmp_path / "out").decoder, MarianModel.load(compiled_tiny()).decoder
    row = golden("tiny-marian")[0]
    scores = [decoder.step(decoder.encode(row["source_ids"]), 877) for decoder in (quantised, exact)]
    best = np.argsort(-scores[1])[:10]
    finite = np.isfinite(scores[0])
    off = np.abs(np.where(finite, scores[0], 0) - np.where(finite, scores[1], 0))
    assert off[best].max() < 0.5 * off.max()
    assert off[best].max() < 0.15


@pytest.mark.slow
@pytest.mark.parametrize("weights", ["fp32", "int8", "int4"])
def test_widths_that_no_block_divides(weights, tmp_path):
    """40 columns are two and a half blocks. Head size 5 and feed-forward widths 36 and 20 fit no block size either."""
    sizes = {"encoder_attention_heads": 4, "decoder_attention_heads": 8, "encoder_ffn_dim": 36, "decoder_ffn_dim": 20}
    config = tiny_config() | sizes | {"d_model": 40}
    rng = np.random.default_rng(0)
    shapes = expected_shapes(read_architecture(config, tmp_path))
    drawn = {name: rng.standard_normal(shape, np.float32) / np.sqrt(shape[-1]) for name, shape in shapes.items()}
    tied = {"encoder.embed_tokens.weight", "decoder.embed_tokens.weight"}
    write_checkpoint(tmp_path / "in", {name: array for name, array in drawn.items() if name not in tied}, config)
    ours, theirs = ([], [])
    for precision, into in ((weights, ours), ("fp32", theirs)):
        compile_model(tmp_path / "in", tmp_path / f"out-{len(ours)}", weights=precision)
        model = MarianModel.load(tmp_path / f"out-{len(ours)}", NmtConfig(max_tokens=48))
        into += [found_ids(model, model.tokenizer.encode(text)) for text in model.tokenizer.pseudo_text(24)]
    assert same_tokens(ours, theirs) > {"fp32": 99.9, "int8": 60, "int4": 30}[weights]


def test_a_sample_may_hold_lines_that_are_longer_than_the_model_reads(tmp_path):
    (tmp_path / "text").write_text("Where is the station? " * 200 + "\nHello.\nYes.\n")
    compile_model(TINY, tmp_path / "out", weights="int8", sample=tmp_path / "text")
    assert MarianModel.load(tmp_path / "out").translate("Hello.")


def test_a_link_to_an_empty_directory_is_filled(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    compile_model(TINY, tmp_path / "link", weights="fp32")
    assert MarianModel.load(tmp_path / "link").translate("Hello.")


def test_a_pad_token_that_is_missing_in_the_config_is_taken_from_the_vocabulary(tmp_path):
    folder = write_checkpoint(tmp_path / "in")
    config = json.loads((folder / "config.json").read_text("utf-8")) | {"pad_token_id": None}
    (folder / "config.json").write_text(json.dumps(config), "utf-8")
    compile_model(folder, tmp_path / "out", weights="fp32")
    assert MarianModel.load(tmp_path / "out").generation.pad_token == 877


def test_an_end_token_that_is_also_the_configs_pad_token_is_not_masked(tmp_path):
    folder = write_checkpoint(tmp_path / "in")
    before = MarianModel.load(compiled(folder, tmp_path / "before"))
    config = json.loads((folder / "config.json").read_text("utf-8"))
    start = {"decoder_start_token_id": config["pad_token_id"], "pad_token_id": config["eos_token_id"]}
    (folder / "config.json").write_text(json.dumps(config | start), "utf-8")
    after = MarianModel.load(compiled(folder, tmp_path / "after"))
    text = golden("tiny-marian")[0]["source"]
    assert after.translate(text) == before.translate(text)
    scores = [model.decoder.check([0], 877, 0) for model in (before, after)]
    assert scores[0] == scores[1]
    token = [
        next(greedy(SearchRequest(model.decoder, [0], dataclasses.replace(model.generation, forced_begin_token=0))))
        for model in (before, after)
    ]
    assert token[0] == token[1]


def compiled(source, destination):
    compile_model(source, destination, weights="fp32")
    return destination


def test_a_sample_is_split_at_line_feeds_only(tmp_path):
    path = tmp_path / "sample.tsv"
    path.write_text("One,\u2028two.\x0c\tEins,\u2028zwei.\r\nThree.\tDrei.\n", "utf-8", newline="")
    assert read_sample(path).sources == ("One,\u2028two.\x0c", "Three.")
    assert [reference.strip() for reference in read_sample(path).references] == ["Eins,\u2028zwei.", "Drei."]
    path.write_text("One.\tEins.\nTwo without\n", "utf-8")
    with pytest.raises(UsageError, match="a line that differs from the first: 'Two without'"):
        read_sample(path)


ERRORS: dict[str, tuple[list[str], int, str]] = {
    "weights": (["{tiny}", "{out}", "--weights", "int2"], 2, "invalid choice: 'int2'"),
    "no such source": (["{tmp}/nothing", "{out}"], 1, "no such model directory"),
    "not empty": (["{tiny}", "{full}"], 2, "exists already; give a new or an empty directory"),
    "a file in the way": (["{tiny}", "{full}/file/out"], 1, "cannot write to"),
    "a name too long": (["{tiny}", "{tmp}/" + "x" * 300], 1, "File name too long; choose another directory"),
    "no such sample": (["{tiny}", "{out}", "--sample", "{tmp}/nothing"], 2, "cannot be read as UTF-8 text"),
    "ragged sample": (
        ["{tiny}", "{out}", "--sample", "{full}/ragged"],
        2,
        "has 2 lines of text; expected at least one, and",
    ),
    "empty sample": (["{tiny}", "{out}", "--sample", "{full}/file"], 2, "has 0 lines of text; expected"),
    "no such shortlist": (["{tiny}", "{out}", "--shortlist", "{tmp}/nothing"], 2, "the shortlist"),
    "empty shortlist": (["{tiny}", "{out}", "--shortlist", "{full}/file"], 2, "expected text in the target language"),
    "tiny shortlist": (["{tiny}", "{out}", "--shortlist", "{full}/ragged", "--shortlist-size", "3"], 2, "at least 16"),
    "a size of no shortlist": (["{tiny}", "{out}", "--shortlist-size", "100"], 2, "give --shortlist FILE"),
    "alignment": (["{tiny}", "{out}", "--alignment", "1"], 2, "is not LAYER:HEAD"),
    "no such head": (["{tiny}", "{out}", "--alignment", "1:9"], 2, "2 layers of 4 heads, counted from 0"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_an_error_is_one_line_and_leaves_no_files(name, tmp_path):
    full = tmp_path / "full"
    full.mkdir()
    (full / "file").touch()
    (full / "ragged").write_text("a\tb\nc\n")
    arguments, status, message = ERRORS[name]
    places = {"tiny": TINY, "out": tmp_path / "out", "full": full, "tmp": tmp_path}
    done = command(*(argument.format(**places) for argument in arguments))
    assert done.returncode == status
    assert message in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["full"]


def test_a_full_disk_is_reported_and_leaves_no_files(tmp_path):
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, limits[1]))
    try:
        with pytest.raises(ModelError, match="could not be written: File too large; nothing was left there"):
            compile_model(TINY, tmp_path / "out", weights="fp32")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert list(tmp_path.iterdir()) == []


def test_an_interrupt_leaves_no_files(tmp_path):
    def stop(doing, _done):
        if doing == "translating the sample, fp32":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        compile_model(TINY, tmp_path / "out", progress=stop)
    assert list(tmp_path.iterdir()) == []


def test_large_tables_are_separate_files_and_results_stay_the_same(tmp_path, monkeypatch):
    whole = (compiled_tiny() / "step.onnx").stat().st_size
    monkeypatch.setattr("pipeline.backends.marian.compile.graph._MIN_EXTERNAL_BYTES", 10_000)
    compile_model(TINY, tmp_path / "out", weights="fp32")
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert {"encoder.onnx", "encoder.data", "step.onnx", "step.data"} <= names
    assert (tmp_path / "out" / "step.onnx").stat().st_size < whole
    model = MarianModel.load(tmp_path / "out", NmtConfig(max_tokens=512))
    for row in golden("tiny-marian")[:10]:
        assert found_ids(model, row["source_ids"]) == row["target_ids"]
    (tmp_path / "out" / "step.data").unlink()
    with pytest.raises(ModelError, match="cannot load"):
        MarianModel.load(tmp_path / "out")
