"""An archive of recordings, the command that translates it with models without files, and what it writes undisturbed."""

import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

import numpy as np
import pytest

from pipeline.archives import several
from pipeline.archives.outputs import JOURNAL_SUFFIX
from tests.commands import run
from tests.conftest import FIXTURES, HANG_S, PHRASES, ROOT, read_wav, write_wav
from tests.fixtures.scripted import loading

T = TypeVar("T")
SCRIPTED = FIXTURES / "scripted"
JOURNAL = f"a{JOURNAL_SUFFIX}"
"""Of the first recording that is begun where several are translated at once."""


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A configuration that recognises a segment at a time, each of them a sentence."""
    path = tmp_path_factory.mktemp("config") / "demo.toml"
    path.write_text(
        'languages.source = "en"\nlanguages.target = "zh"\nasr.model = "base"\nasr.threads = 1\n'
        f'nmt.model = "{ROOT}/models/demo/nmt-en-zh"\nsentences.long_pause_ms = 0\n'
    )
    return path


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Five recordings, the first of them with several sentences. A shell, a URL or a pattern would misread some names."""
    folder = tmp_path_factory.mktemp("archive")
    phrases = read_wav(PHRASES)
    write_wav(folder / "a.wav", phrases[: 16_000 * 13])
    for number, name in enumerate(("-b's *", "b%20 #1?", f"z{'x' * 245}", "c")):
        write_wav(folder / f"{name}.wav", phrases[16_000 * (2 + number) : 16_000 * (4 + number)])
    return folder


def deadly(path: Path) -> Path:
    """A recording that ends the process which recognises it."""
    return write_wav(path, np.where((loud := read_wav(PHRASES)[: 16_000 * 3]) == loud.max(), loading.DEADLY, loud))


@pytest.fixture
def scripted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let this process, and those that it starts, use models without files."""
    monkeypatch.setattr("pipeline.config.loading.load_models", loading.load_models)
    monkeypatch.setattr(several, "_loaded", None)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(SCRIPTED), str(ROOT)]))


@pytest.fixture
def hold(scripted: None, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file that keeps recognisers from going on after their first segment."""
    path = tmp_path_factory.mktemp("hold") / "hold"
    path.touch()
    monkeypatch.setenv("HOLD", str(path))
    return path


@pytest.fixture(scope="module")
def whole(archive: Path, config: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """What one process writes."""
    out = tmp_path_factory.mktemp("whole")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pipeline.config.loading.load_models", loading.load_models)
        done = run("translate", *options(archive, "--output-dir", out, config=config))
    assert done.returncode == 0, done.stderr.decode()
    found = files(out)
    assert len(found) == 10
    assert found["a.srt"].count(b"-->") > 2
    return found


def options(*more: str | Path, config: str | Path) -> tuple[str | Path, ...]:
    """The arguments of translate."""
    return ("--format", "srt,jsonl", "--config", config, *more)


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def wait_until(true: Callable[[], bool]) -> None:
    while not true():
        time.sleep(0.02)


def is_begun(out: Path) -> bool:
    """Whether a sentence of the first recording is translated."""
    return (out / JOURNAL).exists() and b'"translation"' in (out / JOURNAL).read_bytes()


def meanwhile(other: Callable[[], object], this: Callable[[], T]) -> T:
    """Do ``this`` on the main thread, where signals are handled, and the other on another."""
    with ThreadPoolExecutor(1) as thread:
        done = thread.submit(other)
        try:
            return this()
        finally:
            done.result(HANG_S)
