"""The part of ``pipeline.apps.cluster`` that runs in the workers of a Dask cluster."""

from __future__ import annotations

import asyncio
import threading
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from distributed import Worker, WorkerPlugin, get_worker

from .. import __version__
from ..config import PipelineConfig
from ..run.machine import keep_freed_memory, usable_cores
from .recording_run import Options, open_recording, translate_recording
from .results import Result

if TYPE_CHECKING:
    from ..loading import Models

TOPIC = "speech-translation"
"""The name of the plugin, and the topic of the progress messages."""
# Seconds between two progress messages of a recording.
_PROGRESS_S = 0.5


@dataclass(frozen=True)
class Task:
    """A recording for a worker."""

    run: str
    """The run that it belongs to."""
    index: int
    """Its place in the run."""
    result: Result
    options: Options


class ModelsPlugin(WorkerPlugin):
    """Keeps the loaded models of a worker, for the configuration that was used last."""

    def setup(self, worker: Worker) -> None:
        keep_freed_memory()  # Dask lets its workers give back everything at once
        # Dask samples the stacks of all threads. In Python 3.11, that can block a worker for ever, if garbage is collected
        # meanwhile (dask/distributed issue 8616, python/cpython issue 106883).
        for name in ("profile", "profile-cycle"):
            if (sampling := worker.periodic_callbacks.pop(name, None)) is not None:
                sampling.stop()
        self.threads = 0
        self.stopped: set[str] = set()
        self._lock = threading.Lock()
        self._loaded: tuple[PipelineConfig, Models] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {}

    def teardown(self, worker: Worker) -> None:
        self._loaded = None

    def models(self, config: PipelineConfig) -> Models:
        """The models, loaded if this is another configuration than the last one."""
        from ..loading import load_models

        with self._lock:
            if self._loaded is None or self._loaded[0] != config:
                self._loaded = None  # free the memory first
                own = config
                if config.asr.threads == 0 and self.threads:
                    own = replace(config, asr=replace(config.asr, threads=self.threads))
                self._loaded = config, load_models(own)
            return self._loaded[1]


class _Stopped(BaseException):
    """The run was interrupted."""


class _Messages:
    """Sends progress to the run's process. See ``pipeline.apps.recording_run.Progress``."""

    def __init__(self, task: Task, plugin: ModelsPlugin) -> None:
        self._task, self._plugin, self._worker = task, plugin, get_worker()
        self._sent_at = -_PROGRESS_S

    def _send(self, **message: Any) -> None:
        if self._task.run in self._plugin.stopped:
            raise _Stopped
        self._worker.log_event(TOPIC, {"run": self._task.run, "index": self._task.index, **message})

    def note(self, message: str) -> None:
        self._send(note=message)

    def begin(self, duration_s: float | None) -> None:
        self._send(done_s=0.0, length_s=duration_s, speed=0.0)

    def update(self, done_s: float, length_s: float | None, speed: float) -> None:
        now = time.monotonic()
        if now - self._sent_at >= _PROGRESS_S or done_s == length_s:
            self._sent_at = now
            self._send(done_s=done_s, length_s=length_s, speed=speed)


def _plugin(worker: Worker) -> ModelsPlugin:
    found = worker.plugins[TOPIC]
    assert isinstance(found, ModelsPlugin)
    return found


def translate(task: Task) -> Result:
    """Translate a recording on this worker, on the current thread."""
    result, plugin = task.result, _plugin(get_worker())
    source = open_recording(result, task.options)
    if source is None:
        return result
    try:
        models = plugin.models(task.options.config)
    except BaseException:
        source.close()
        raise
    try:
        asyncio.run(translate_recording(result, source, task.options, models, _Messages(task, plugin)))
    except _Stopped:
        result.outcome = "interrupted"
    return result


def facts() -> tuple[str, int]:
    """The version of this package, and the number of cores that this process may use."""
    return __version__, usable_cores()


def use_threads(count: int, dask_worker: Worker) -> None:
    """Let recognition use ``count`` threads on this worker, unless the configuration says otherwise."""
    _plugin(dask_worker).threads = count


def stop(run: str, dask_worker: Worker) -> None:
    """Let the recordings of a run end at their next transcript."""
    _plugin(dask_worker).stopped.add(run)
