"""All checkpoint formats give the same weights, and damaged checkpoints are refused."""

import pickle
import random
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from pipeline.backends.marian.compile import checkpoint_files, huggingface
from pipeline.backends.marian.compile.assemble import sinusoids
from pipeline.backends.marian.compile.build import compile_model
from pipeline.backends.marian.compile.checkpoint_files import read_checkpoint
from pipeline.backends.marian.decode.generation import SearchRequest
from pipeline.backends.marian.model import MarianModel
from pipeline.backends.marian.search.beams import greedy
from pipeline.errors import ModelError
from tests.backends.marian.compiler.checkpoints import (
    DAMAGES,
    assert_same_weights,
    refusal,
    tiny_config,
    true_weights,
    write_checkpoint,
    write_export,
    write_settings,
)
from tests.conftest import golden


@pytest.fixture
def sources(tmp_path):
    """The same model in each format, by the reader's name of the format."""
    return {
        "safetensors": write_checkpoint(tmp_path / "safetensors"),
        "ONNX (merged)": write_export(tmp_path / "merged", "merged"),
        "ONNX (split)": write_export(tmp_path / "split", "split"),
    }


class TestEveryKindOfSource:
    @pytest.mark.slow
    def test_gives_graphs_with_the_same_outputs(self, sources, tmp_path):
        """Bit-identical ids and log-probabilities of whole sentences."""
        (tmp_path / "compiled").mkdir()
        outputs = {}
        for origin, directory in sources.items():
            compile_model(directory, tmp_path / "compiled" / origin, weights="fp32")
            model = MarianModel.load(tmp_path / "compiled" / origin)
            outputs[origin] = [
                list(greedy(SearchRequest(model.decoder, row["source_ids"], model.generation)))
                for row in golden("tiny-marian")[:20]
            ]
        assert len({token.id for tokens in outputs["safetensors"] for token in tokens}) > 50
        for origin, found in outputs.items():
            assert found == outputs["safetensors"], origin

    def test_gives_the_same_weights_as_pytorch_reads_them(self, tmp_path):
        torch = pytest.importorskip("torch", reason="only the extra `train` has PyTorch")
        directory = write_settings(tmp_path)
        torch.save(
            {name: torch.from_numpy(array) for name, array in true_weights().items()}, directory / "pytorch_model.bin"
        )
        checkpoint = read_checkpoint(directory)
        assert checkpoint.origin == "PyTorch"
        assert_same_weights(checkpoint)

    def test_is_detected_by_its_files_with_safetensors_first(self, tmp_path):
        directory = write_export(tmp_path, "merged")
        assert read_checkpoint(directory).origin == "ONNX (merged)"
        assert read_checkpoint(write_checkpoint(directory)).origin == "safetensors"


class TestPyTorch:
    def test_file_is_refused_with_installation_advice_without_pytorch(self, tmp_path, monkeypatch):
        monkeypatch.setattr(huggingface, "can_read_pytorch", lambda: False)
        (write_settings(tmp_path) / "pytorch_model.bin").touch()
        message = refusal(tmp_path)
        assert "[train]" in message
        assert "safetensors or as an fp32 ONNX export" in message

    def test_file_is_refused_if_pytorch_cannot_be_imported(self, tmp_path, monkeypatch):
        def broken(name):
            raise OSError("libcudart.so.12: cannot open shared object file")

        monkeypatch.setattr(huggingface, "can_read_pytorch", lambda: True)
        monkeypatch.setattr(checkpoint_files, "can_read_pytorch", lambda: True)
        monkeypatch.setattr(huggingface.importlib, "import_module", broken)
        (write_settings(tmp_path) / "pytorch_model.bin").touch()
        with pytest.raises(ModelError, match=r"PyTorch, which is installed but cannot be imported \(libcudart"):
            checkpoint_files.read_checkpoint(tmp_path)

    def test_file_is_skipped_without_pytorch_if_there_is_an_export(self, tmp_path, monkeypatch):
        monkeypatch.setattr(checkpoint_files, "can_read_pytorch", lambda: False)
        (write_export(tmp_path, "merged") / "pytorch_model.bin").touch()
        assert read_checkpoint(tmp_path).origin == "ONNX (merged)"

    def test_pytorch_is_called_with_weights_only(self, tmp_path, monkeypatch):
        """Like the test below with real code in a file, but without PyTorch."""

        def load(path, *, map_location, weights_only=False):
            if weights_only:
                raise pickle.UnpicklingError("Weights only load failed.")
            return {}

        monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(load=load, Tensor=np.ndarray))
        for module in (huggingface, checkpoint_files):
            monkeypatch.setattr(module, "can_read_pytorch", lambda: True)
        (write_settings(tmp_path) / "pytorch_model.bin").touch()
        assert "not a readable file of PyTorch tensors (Weights only load failed.)" in refusal(tmp_path)

    @pytest.mark.parametrize("damage", DAMAGES)
    def test_file_that_is_damaged_is_refused(self, tmp_path, damage):
        torch = pytest.importorskip("torch", reason="only the extra `train` has PyTorch")
        path = write_settings(tmp_path) / "pytorch_model.bin"
        torch.save({name: torch.from_numpy(array) for name, array in true_weights().items()}, path)
        path.write_bytes(damage(path.read_bytes()))
        assert "not a readable file of PyTorch tensors" in refusal(tmp_path)

    @pytest.mark.parametrize("kind", ["sparse", "meta", "without a name"])
    def test_file_of_other_tensors_is_refused(self, tmp_path, kind):
        torch = pytest.importorskip("torch", reason="only the extra `train` has PyTorch")
        tensor = torch.zeros(3, 3)
        saved = {"sparse": {"a": tensor.to_sparse()}, "meta": {"a": tensor.to("meta")}, "without a name": {1: tensor}}
        torch.save(saved[kind], write_settings(tmp_path) / "pytorch_model.bin")
        assert "expected what transformers saves" in refusal(tmp_path)

    def test_file_with_code_in_it_is_refused_and_the_code_not_run(self, tmp_path):
        torch = pytest.importorskip("torch", reason="only the extra `train` has PyTorch")
        directory = write_settings(tmp_path)
        torch.save({"model.shared.weight": WritesAFile(tmp_path / "ran")}, directory / "pytorch_model.bin")
        assert "not a readable file of PyTorch tensors" in refusal(directory)
        assert not (tmp_path / "ran").exists()


class WritesAFile:
    """Runs code when unpickled, like a malicious checkpoint."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


def test_positions_are_those_of_transformers():
    # Marian's first row: sine of 0, cosine of 0; then 10000^(-2i/d) for position 1.
    table = sinusoids(4, 48)
    np.testing.assert_array_equal(table[0], np.repeat([0, 1], 24))
    np.testing.assert_allclose(table[1, :24], np.sin(10_000.0 ** (-np.arange(24) / 24)), rtol=1e-6)
    np.testing.assert_allclose(table[3, 24:], np.cos(3 * 10_000.0 ** (-np.arange(24) / 24)), rtol=1e-6)
    assert tiny_config()["max_position_embeddings"] == 256


@pytest.mark.parametrize("kind", ["safetensors", "merged", "one-file"])
def test_a_file_with_some_bytes_changed_is_read_or_refused(tmp_path, kind):
    """No other exception than ModelError, for which the command line prints a message."""
    if kind == "safetensors":
        path = write_checkpoint(tmp_path) / "model.safetensors"
    else:
        path = write_export(tmp_path, kind) / ("model.onnx" if kind == "one-file" else "decoder_model_merged.onnx")
    whole, rng, refused = path.read_bytes(), random.Random(7), 0
    for _ in range(30):
        data = bytearray(whole)
        for _ in range(rng.choice([1, 5, 20])):
            # Prefer the beginning and the end, which hold the structure of all these formats.
            distance = rng.randrange(3000)
            data[rng.choice([distance, -1 - distance, rng.randrange(len(data))])] = rng.randrange(256)
        path.write_bytes(data)
        try:
            read_checkpoint(tmp_path)
        except ModelError:
            refused += 1
    assert refused > 5
