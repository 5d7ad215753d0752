"""Where Whisper computes, by what CTranslate2 reports. A fake stands for it but in the tests that need a GPU."""

import dataclasses
from pathlib import Path
from types import SimpleNamespace

import pytest

from pipeline.backends.whisper import WhisperRecognizer
from pipeline.backends.whisper import weights as placing
from pipeline.backends.whisper.weights import load_model
from pipeline.errors import UsageError
from pipeline.events import SpeechSegment
from tests.conftest import PHRASES, read_wav


class FakeLibrary:
    """Stands for ctranslate2 with GPUs that have these types, or whose libraries are missing."""

    def __init__(self, *types, missing=""):
        self.types, self.missing, self.loaded = set(types), missing, list[tuple[str, str]]()
        self.models = SimpleNamespace(Whisper=self._load)
        self.StorageView = SimpleNamespace(from_array=lambda array: array)

    def get_cuda_device_count(self):
        return int(bool(self.types))

    def get_supported_compute_types(self, device):
        return self.types if device == "cuda" else {"int8", "float32"}

    def _load(self, directory, *, device, compute_type, **_):
        self.loaded.append((device, compute_type))
        return SimpleNamespace(
            n_mels=80, device=device, encode=lambda *given, **options: self._encode(*given, **options)
        )

    def _encode(self, features, to_cpu):
        if self.missing:
            raise RuntimeError(f"Library {self.missing} is not found or cannot be loaded")


FULL = ("float32", "float16", "int8", "int8_float16", "int8_float32")


@pytest.mark.parametrize(
    ("types", "device", "compute_type", "expected"),
    [
        (FULL, "auto", "int8", ("cuda", "float16")),
        (FULL, "cuda", "int8_float16", ("cuda", "int8_float16")),
        (("float32", "int8", "int8_float32"), "auto", "int8", ("cuda", "int8_float32")),  # no half precision
        (FULL, "cpu", "int8", ("cpu", "int8")),
        ((), "auto", "int8", ("cpu", "int8")),
        ((), "auto", "float32", ("cpu", "float32")),
    ],
)
def test_the_device_and_type_are_those_that_are_reported(
    types, device, compute_type, expected,
    monkeypatch, caplog,
):  # fmt: skip
    fake = FakeLibrary(*types)
    monkeypatch.setattr(placing, "ctranslate2", fake)
    assert load_model(Path("model"), device, compute_type, intra_threads=1).device == expected[0]
    assert fake.loaded == [expected]
    assert not caplog.records


def test_a_missing_library_is_one_line_and_the_cpu_is_used(monkeypatch, caplog):
    fake = FakeLibrary(*FULL, missing="libcublas.so.12")
    monkeypatch.setattr(placing, "ctranslate2", fake)
    assert load_model(Path("model"), "auto", "int8").device == "cpu"
    (line,) = caplog.messages
    assert "recognising on the CPU: the GPU cannot be used: Library libcublas.so.12 is not found" in line
    assert "pip install nvidia-cublas-cu12" in line
    with pytest.raises(UsageError, match=r'asr.device is "cuda", and the GPU cannot be used: Library libcublas'):
        load_model(Path("model"), "cuda", "int8")


def test_a_library_that_pip_installed_is_loaded_first(monkeypatch, tmp_path):
    library = tmp_path / "nvidia" / "cublas" / "lib" / "libcublas.so.12"
    library.parent.mkdir(parents=True)
    library.touch()
    loaded = []
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(placing.ctypes, "CDLL", loaded.append)
    fake = FakeLibrary(*FULL)
    monkeypatch.setattr(placing, "ctranslate2", fake)
    monkeypatch.setattr(fake, "_encode", lambda *_, **__: loaded.append("computed"))
    load_model(Path("model"), "cuda", "int8")
    assert str(library) in loaded[:-1]
    assert loaded[-1] == "computed"


@pytest.mark.parametrize(
    ("types", "device", "compute_type", "message"),
    [
        ((), "cuda", "int8", 'asr.device is "cuda", and CTranslate2 finds no CUDA device'),
        ((), "auto", "float16", "asr.compute_type is 'float16', which is for GPUs; this CPU has float32, int8"),
        (("float32", "int8_float32"), "cuda", "float16", "'float16'; this GPU has float32, int8_float32"),
    ],
)
def test_what_a_device_cannot_do_is_invalid_usage(types, device, compute_type, message, monkeypatch):
    monkeypatch.setattr(placing, "ctranslate2", FakeLibrary(*types))
    with pytest.raises(UsageError, match=message):
        load_model(Path("model"), device, compute_type)


@pytest.mark.slow
def test_the_text_on_the_cpu_is_the_same(demo_config, demo_models):
    assert isinstance(demo_models.recognizer, WhisperRecognizer)
    config = dataclasses.replace(demo_config.asr, device="cpu")
    named = WhisperRecognizer(config, "en", demo_models.recognizer.engine.weights.directory)
    segment = SpeechSegment(0, 0, read_wav(PHRASES)[: 4 * 16_000])
    assert named.transcribe([segment]) == demo_models.recognizer.transcribe([segment])


@pytest.mark.gpu
@pytest.mark.parametrize("compute_type", ["int8", "int8_float16", "float32"])
def test_a_gpu_hears_what_the_cpu_hears(compute_type, demo_config):
    asr = dataclasses.replace(demo_config.asr, device="cpu", compute_type="float32")
    on_cpu = WhisperRecognizer(asr, "en")
    on_gpu = WhisperRecognizer(dataclasses.replace(asr, device="cuda", compute_type=compute_type), "en")
    assert (on_cpu.engine.weights.model.device, on_gpu.engine.weights.model.device) == ("cpu", "cuda")
    samples = read_wav(PHRASES)
    phrases = [SpeechSegment(i, i * 88_000, samples[i * 88_000 : (i + 1) * 88_000]) for i in range(3)]
    expected, found = on_cpu.transcribe(phrases), on_gpu.transcribe(phrases)
    assert [each.text for each in found] == [each.text for each in expected]
    assert all(abs(a.start_s - b.start_s) <= 0.1 for x, y in zip(expected, found, strict=True)
               for a, b in zip(x.words, y.words, strict=True))  # fmt: skip
