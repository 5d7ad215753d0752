"""Commands as a user types them: in the test's own process, with models that stay loaded, or as processes of their own."""

import contextlib
import copy
import gc
import io
import logging
import os
import runpy
import signal
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import IO, Any, NoReturn

import pytest
from huggingface_hub import constants

from pipeline import MarianModel
from pipeline.backends.marian.search.sentence_text import SentenceCache
from pipeline.backends.nmt_options import NmtConfig
from pipeline.backends.whisper import WhisperRecognizer
from pipeline.config import loading
from tests.conftest import HANG_S, ROOT
from tests.remembered import remember

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGTSTP, signal.SIGCONT)


def command(module: str, *arguments: str | Path) -> list[str]:
    """The command line of a process."""
    return [sys.executable, "-m", f"pipeline.{module}", *map(str, arguments)]


def run_process(
    module: str, *arguments: str | Path, stdin: bytes = b"", **environment: str
) -> subprocess.CompletedProcess[bytes]:
    """Run a command as a process: for signals, terminals, closed streams, full disks, and what is read at start-up."""
    return subprocess.run(
        command(module, *arguments),
        input=stdin,
        capture_output=True,
        env=os.environ | environment,
        timeout=HANG_S,
        check=False,
    )


def quick_config(folder: Path, target: str = "en") -> Path:
    """A configuration for processes: English by the smallest recogniser, whose sentences are final as soon as they end."""
    path = folder / "quick.toml"
    path.write_text(
        f'[languages]\nsource = "en"\ntarget = "{target}"\n[asr]\nmodel = "tiny.en"\nthreads = 1\n'
        f'[nmt]\nmodel = "{ROOT / "models/demo/nmt-en-zh"}"\n[sentences]\nlong_pause_ms = 0\n'
    )
    return path


class _Exit(BaseException):
    """Stands for the end of the process."""


def run(
    module: str,
    *arguments: str | Path,
    stdin: bytes = b"",
    stdout: IO[bytes] | None = None,
    stderr: IO[bytes] | None = None,
    **environment: str,
) -> subprocess.CompletedProcess[bytes]:
    """Run a command in this process, up to where it would end: what it prints, and its exit status.

    Its standard streams are files of their own, also for libraries that write to descriptors; another file may be given
    for one. Models that an earlier command loaded from the same files with the same options are used again, and what
    was recognised. The environment may name another cache of the hub and its address.
    """
    main = import_module(f"pipeline.{module}" + (".__main__" if module == "bench" else "")).main
    return _run(main, [module, *map(str, arguments)], stdin, stdout, stderr, environment)


def run_script(path: Path, *arguments: str | Path, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    """Run a script as ``run`` runs a command."""

    def main() -> NoReturn:
        runpy.run_path(str(path), run_name="__main__")
        raise _Exit(0)

    return _run(main, [str(path), *map(str, arguments)], stdin)


def _run(
    main: Callable[[], NoReturn],
    argv: list[str],
    stdin: bytes,
    stdout: IO[bytes] | None = None,
    stderr: IO[bytes] | None = None,
    environment: Mapping[str, str] = MappingProxyType({}),
) -> subprocess.CompletedProcess[bytes]:
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        given.write(stdin)
        given.seek(0)
        with (
            _streams(given.fileno(), (stdout or out).fileno(), (stderr or err).fileno()),
            _state_restored(),
            loaded_once(),
            pytest.MonkeyPatch.context() as patch,
        ):
            patch.setattr(sys, "argv", argv)
            for name, value in environment.items():
                patch.setenv(name, value)
            for name, constant in hub_constants(environment).items():
                patch.setattr(constants, name, constant)
            patch.setattr(os, "_exit", _exit)
            patch.setattr(gc, "freeze", lambda: None)  # for programs: this one has other things to do
            try:
                main()
            except _Exit as end:
                (status,) = end.args
        out.seek(0)
        err.seek(0)
        return subprocess.CompletedProcess(argv, status, out.read(), err.read())


@contextlib.contextmanager
def loaded_once() -> Iterator[None]:
    """Let models stay loaded for whatever loads them from the same files with the same options again."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loading._Speech, "load", _load_speech)
        patch.setattr(MarianModel, "load", _load_translator)
        yield


def hub_constants(environment: Mapping[str, str]) -> dict[str, object]:
    """What the hub's client read from the environment when it was imported."""
    found: dict[str, object] = {}
    if home := environment.get("HF_HOME"):
        found |= {
            "HF_HOME": home,
            "HF_HUB_CACHE": f"{home}/hub",
            "HF_ASSETS_CACHE": f"{home}/assets",
            "HF_TOKEN_PATH": f"{home}/token",
        }
    if url := environment.get("HF_ENDPOINT"):
        found |= {
            "ENDPOINT": url,
            "HUGGINGFACE_CO_URL_TEMPLATE": f"{url}/{{repo_id}}/resolve/{{revision}}/{{filename}}",
            "HF_HUB_DISABLE_XET": True,
        }
    if seconds := environment.get("HF_HUB_DOWNLOAD_TIMEOUT"):
        found["HF_HUB_DOWNLOAD_TIMEOUT"] = int(seconds)
    return found | {"HF_HUB_OFFLINE": environment.get("HF_HUB_OFFLINE") == "1"}


def _exit(status: int) -> NoReturn:
    raise _Exit(status)


@contextlib.contextmanager
def _streams(*given: int) -> Iterator[None]:
    """Let the standard descriptors, and Python's streams of them, be others."""
    names = ("stdin", "stdout", "stderr")
    streams = [getattr(sys, name) for name in names]
    for stream in streams[1:]:
        stream.flush()
    kept = [os.dup(number) for number in range(3)]
    try:
        for number, (name, descriptor) in enumerate(zip(names, given, strict=True)):
            os.dup2(descriptor, number)
            raw = io.FileIO(number, "rb" if number == 0 else "wb", closefd=False)
            buffer = io.BufferedReader(raw) if number == 0 else io.BufferedWriter(raw)
            setattr(sys, name, io.TextIOWrapper(buffer, "utf-8", line_buffering=number == 2))
        yield
        for name in names[1:]:
            with contextlib.suppress(OSError, ValueError):
                getattr(sys, name).flush()
    finally:
        for number, (name, stream) in enumerate(zip(names, streams, strict=True)):
            setattr(sys, name, stream)
            os.dup2(kept[number], number)
            os.close(kept[number])


@contextlib.contextmanager
def _state_restored() -> Iterator[None]:
    """Put back what belongs to a process: handlers of signals, loggers, variables, and the current folder."""
    signals = {number: signal.getsignal(number) for number in _SIGNALS}
    root, ours = logging.getLogger(), logging.getLogger("pipeline")
    handlers, levels, folder, variables = root.handlers[:], (root.level, ours.level), os.getcwd(), os.environ.copy()
    root.handlers[:] = []
    try:
        with warnings.catch_warnings():
            yield
    finally:
        root.handlers[:] = handlers
        root.setLevel(levels[0])
        ours.setLevel(levels[1])
        os.chdir(folder)
        os.environ.clear()
        os.environ.update(variables)
        for number, handler in signals.items():
            signal.signal(number, handler)


_TRANSLATOR: Any = MarianModel.load
_SPEECH = loading._Speech.load
_translators: dict[Any, MarianModel] = {}
_recognizers: dict[Any, Any] = {}


def _load_translator(directory: Path, options: NmtConfig | None = None) -> MarianModel:
    """Load a translator, or share the memory of one that was loaded before, without the sentences that it keeps."""
    files = [(path.name, path.stat().st_mtime_ns) for path in sorted(Path(directory).iterdir())]
    key = os.path.realpath(directory), options, tuple(files)
    if key not in _translators:
        _translators[key] = _TRANSLATOR(directory, options)
    model = copy.copy(_translators[key])
    model.cache = SentenceCache(model.cache.bound)
    return model


def _load_speech(speech: Any, sharing: Any, several_calls: bool) -> Any:
    """Load a recogniser, or share the memory of one that was loaded before."""
    key = speech.weights, several_calls
    if key not in _recognizers:
        _recognizers[key] = _SPEECH(speech, sharing, several_calls)
        if isinstance(_recognizers[key], WhisperRecognizer):
            remember(_recognizers[key])
    return _SPEECH(speech, _ready(_recognizers[key]), several_calls)


def _ready(value: Any) -> Future[Any]:
    done: Future[Any] = Future()
    done.set_result(value)
    return done
