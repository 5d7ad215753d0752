"""What tests share: the demo models, the tiny Marian in its layouts, real speech."""

import asyncio
import atexit
import functools
import inspect
import json
import os
import shutil
import signal
import tempfile
import wave
from collections import Counter
from collections.abc import Generator, Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path
from types import FrameType
from typing import Any

# Each of the processes that share the tests out has a core; CTranslate2 would run on all of them in each. Before NumPy,
# which looks once: with more threads than in the processes that tests start, its products differ in their last digit.
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import pytest
from hypothesis import settings

# What the surroundings say of colours, of the hub and of proxies is theirs; before anything that reads it is imported.
_OTHERS = {"FORCE_COLOR", "NO_COLOR", "TTY_COMPATIBLE", "COLUMNS", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"}
for name in [name for name in os.environ if name.upper() in _OTHERS or name.startswith("HF_")]:
    del os.environ[name]
_NAME_LENGTH = 24
_QUICK_AREAS = {"languages", "sentences", "sinks", "subtitles"}
"""Folders whose tests work for two seconds at most, so that a minute is enough on a busy machine, too (pyproject.toml)."""
_WHOLE_CHAIN_S = 300
HANG_S = 1_800
"""What takes longer hangs and fails its test. No test is about how long something takes, on however slow a machine."""
# The hub's client waits 10 s for an answer, which a server on a slow machine may take.
os.environ["HF_HUB_ETAG_TIMEOUT"] = os.environ["HF_HUB_DOWNLOAD_TIMEOUT"] = str(HANG_S)

# Of the examples of property tests, PROPERTIES chooses: "steady", a quarter, the same in every run; "random", a quarter, others in each
# run (.ci/run, which prints the seed); "night", all, random, and those again that failed before (.ci/night). A slow machine fails none.
_PROPERTIES = os.environ.get("PROPERTIES", "steady")
_USUAL_EXAMPLES = 100


def examples(count: int = _USUAL_EXAMPLES) -> int:
    """How many examples a property test draws, of as many as it has at night."""
    return count if _PROPERTIES == "night" else max(1, count // 4)


for profile, options in {"steady": {"derandomize": True}, "random": {"database": None}, "night": {}}.items():
    settings.register_profile(profile, deadline=None, max_examples=examples(), print_blob=True, **options)
settings.load_profile(_PROPERTIES)

# Other arithmetic than this processor's, to find tests that depend on how one rounds (.ci/night): products of 8 bits as with AVX2
# alone in the recogniser, and fp32 in the students.
_OTHER_ROUNDING = bool(os.environ.get("OTHER_ROUNDING"))
if _OTHER_ROUNDING:
    os.environ["CT2_FORCE_CPU_ISA"] = "AVX2"

from pipeline import Models, PipelineConfig, load_config, load_models
from pipeline.backends.marian.compile.build import compile_model
from pipeline.backends.marian.decode import students
from pipeline.backends.marian.model import FAMILIES
from pipeline.events import Samples

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = ROOT / "examples" / "audio"
PHRASES = ROOT / "tests" / "media" / "audio" / "phrases.wav"
CHINESE = ROOT / "tests" / "media" / "audio" / "chinese.wav"
SHIPPED_TRANSLATORS = {f"demo-{pair}": ROOT / "models" / "demo" / f"nmt-{pair}" for pair in ("en-zh", "zh-en")}
PHRASE_SECONDS = 5.5
FIXTURES = ROOT / "tests" / "fixtures"
TINY = FIXTURES / "tiny-marian"
SETTINGS = ("source.spm", "target.spm", "vocab.json", "config.json", "generation_config.json", "tokenizer_config.json")
ENCODER = "encoder_model.onnx"
# Layout → the files that make it up, under TINY.
LAYOUTS = {
    "merged": (ENCODER, "decoder_model_merged.onnx"),
    "split": (ENCODER, "decoder_model.onnx", "decoder_with_past_model.onnx"),
    "old-split": (ENCODER, "old-split/decoder_model.onnx", "old-split/decoder_with_past_model.onnx"),
    "own-past-15": (ENCODER, "own-past-15/decoder.onnx"),
    "own-past-16": (ENCODER, "own-past-16/decoder.onnx"),
    "no-past": (ENCODER, "no-past/decoder_model.onnx"),
    "first-step": (ENCODER, "decoder_model.onnx"),
    "one-file": ("one-file/model.onnx",),
}
STREAMING = ("encoder.onnx", "step.onnx")
"""What the compiler writes."""
CACHED = ("merged", "split", "old-split")
"""Layouts that keep encoder KV."""


class Panic(BaseException):
    """As that of extensions written in Rust, which is no Exception."""


def pytest_configure(config: pytest.Config) -> None:
    """Hide GPUs, whose probabilities and times differ a little, from all tests but those that are for them."""
    if config.option.markexpr != "gpu":
        os.environ["CUDA_VISIBLE_DEVICES"] = ""
    # A shell's background and nohup leave these ignored, and the processes that tests interrupt would inherit it.
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP) if os.name == "posix" else ():
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)


@pytest.hookimpl(trylast=True)  # when what is not wanted has been taken out
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Let tests that do more than a minute's work on a busy machine take longer than pyproject.toml's timeout, but not than --timeout.

    Modules with slow ones come first, lest one of them is all that is left to do. Each is run in one process, where what its tests
    share is made once, and equal speech recognised once.
    """
    for item in items:
        if config.option.timeout is None and item.get_closest_marker("timeout") is None:
            in_real_time = item.path.parent.name in ("browser", "microphone", "night")
            at_its_own_pace = in_real_time or item.get_closest_marker("slow") is not None
            if at_its_own_pace or item.path.parent.name not in _QUICK_AREAS:
                item.add_marker(pytest.mark.timeout(HANG_S if at_its_own_pace else _WHOLE_CHAIN_S))
    slow, modules = Counter[Path](), dict[Path, list[pytest.Item]]()
    for item in items:
        modules.setdefault(item.path, []).append(item)
        slow[item.path] += item.get_closest_marker("slow") is not None
    processes = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", 1))  # each begins with an equal part of the list
    parts: list[list[Path]] = [[] for _ in range(processes)]
    for path, count in slow.most_common():
        if count:
            min(parts, key=lambda part: sum(slow[each] for each in part)).append(path)
    quick = (item for path, module in modules.items() if not slow[path] for item in module)
    begun = [[item for path in part for item in modules[path]] for part in parts]
    share = -(-len(items) // processes)
    items[:] = [item for first in begun for item in (*first, *islice(quick, max(0, share - len(first))))] + [*quick]


@pytest.hookimpl(wrapper=True)
def pytest_timeout_set_timer(item: pytest.Item, settings: object) -> Generator[None, object, object]:
    """End the programs that a test has started when it takes too long: it may wait for them."""
    done = yield
    fail = signal.getsignal(signal.SIGALRM)

    def end(number: int, frame: FrameType | None) -> None:
        for children in Path("/proc/self/task").glob("*/children"):
            for child in children.read_text().split():
                os.kill(int(child), signal.SIGKILL)
        fail(number, frame)

    if callable(fail):
        signal.signal(signal.SIGALRM, end)
    return done


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a test that is a coroutine function in an event loop of its own, or in that of the fixture ``runner``."""
    if not inspect.iscoroutinefunction(pyfuncitem.function):
        return None
    run = pyfuncitem.funcargs["runner"].run if "runner" in pyfuncitem.fixturenames else asyncio.run
    run(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in inspect.signature(pyfuncitem.obj).parameters}))
    return True


def pytest_make_parametrize_id(val: object) -> str | None:
    """Shorten texts in the names of tests, which would be up to a thousand characters long."""
    if not isinstance(val, str | bytes):
        return None
    name = ascii(val)[1:-1] if isinstance(val, str) else ascii(val)[2:-1]
    return f"{name[: _NAME_LENGTH - 3]}..." if len(name) > _NAME_LENGTH else None


def read_wav(path: Path) -> Samples:
    """Samples of a 16 kHz mono WAV."""
    with wave.open(str(path)) as file:
        assert (file.getframerate(), file.getnchannels()) == (16_000, 1)
        return np.frombuffer(file.readframes(file.getnframes()), np.int16)


def write_wav(path: Path, samples: Samples) -> Path:
    """Write 16 kHz mono samples."""
    with wave.open(str(path), "wb") as file:
        file.setparams((1, 2, 16_000, 0, "NONE", ""))
        file.writeframes(samples.tobytes())
    return path


def spoken_texts() -> dict[str, list[str]]:
    """What each recording says: file stem → sentences."""
    texts: dict[str, list[str]] = json.loads((ROOT / "tests" / "media" / "audio" / "texts.json").read_text("utf-8"))
    return texts


def golden(name: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads((FIXTURES / f"golden-{name}.json").read_text("utf-8"))
    return rows


def make_model_dir(folder: Path, layout: str, leave_out: str = "") -> Path:
    """A directory with the tiny model's files for one layout."""
    folder.mkdir(parents=True, exist_ok=True)
    graphs = [compiled_tiny() / name for name in STREAMING] if layout == "streaming" else LAYOUTS[layout]
    for name in (*graphs, *SETTINGS):
        if name != leave_out:
            (folder / Path(name).name).symlink_to(TINY / name)
    return folder


def tiny_with(folder: Path, name: str, content: str | dict[str, Any], layout: str = "merged") -> Path:
    """The tiny model with another settings file: the ``content``, or its own with some values changed."""
    make_model_dir(folder, layout, leave_out=name)
    if isinstance(content, dict):
        content = json.dumps(json.loads((TINY / name).read_text("utf-8")) | content)
    (folder / name).write_text(content)
    return folder


@functools.cache
def compiled_tiny(weights: str = "fp32") -> Path:
    """The tiny model in the streaming layout, compiled once for all tests."""
    folder = Path(tempfile.mkdtemp(prefix="streaming-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    compile_model(TINY, folder, weights=weights)
    return folder


@pytest.fixture(params=sorted([*LAYOUTS, "streaming"]))
def model_dir(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """The tiny model, once in each layout."""
    return make_model_dir(tmp_path / request.param, request.param)


@pytest.fixture(params=CACHED)
def cached_model_dir(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """The tiny model, once in each layout that keeps encoder KV."""
    return make_model_dir(tmp_path / request.param, request.param)


@pytest.fixture(scope="session", autouse=_OTHER_ROUNDING)
def other_rounding() -> Iterator[None]:
    """Run students in fp32 where 8 bits are the default."""
    with pytest.MonkeyPatch.context() as patch:
        load = students.load
        exact = lambda directory, options: load(directory, replace(options, weights="fp32"))  # noqa: E731
        patch.setattr("pipeline.backends.marian.model.FAMILIES", (exact, *FAMILIES[1:]))
        yield


@pytest.fixture(scope="session")
def demo_config() -> PipelineConfig:
    return load_config("demo-zh")


@pytest.fixture(scope="session")
def demo_models(demo_config: PipelineConfig) -> Models:
    """The demo's models, loaded once, also for commands that run in this process. Equal speech is recognised once, too."""
    from tests.commands import loaded_once

    with loaded_once():
        return load_models(demo_config)


@pytest.fixture
def loaded() -> Iterator[None]:
    """Models that the test loads stay loaded. Equal speech is recognised once."""
    from tests.commands import loaded_once

    with loaded_once():
        yield


@pytest.fixture
def queues(monkeypatch: pytest.MonkeyPatch) -> list[asyncio.Queue[Any]]:
    """The asyncio queues made during a test; see ``all_wait``."""
    made: list[asyncio.Queue[Any]] = []

    class Kept(asyncio.Queue[Any]):
        def __init__(self, maxsize: int = 0) -> None:
            super().__init__(maxsize)
            made.append(self)

    monkeypatch.setattr(asyncio, "Queue", Kept)
    return made


def all_wait(queues: list[asyncio.Queue[Any]]) -> bool:
    """Whether every stage of a run that is not live waits for its reader: all queues are full, except that of the
    language, which only live runs use. A queue without a bound is never full."""
    return len(queues) > 1 and sum(not queue.full() for queue in queues) == 1


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """The folder of the hub's cache, for programs that a test starts."""
    return tmp_path / "home"


@pytest.fixture
def phrase(tmp_path: Path) -> Path:
    """The first phrase of the recording, and the beginning of the second."""
    return write_wav(tmp_path / "phrase.wav", read_wav(PHRASES)[: int(PHRASE_SECONDS * 16_000)])
