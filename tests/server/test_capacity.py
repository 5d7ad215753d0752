"""--max-sessions auto: chosen from the time that the encoder takes for a window of speech."""

import asyncio
import copy
import threading
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.apps.serve import arguments
from pipeline.backends.machine import usable_cores
from pipeline.backends.whisper import WhisperRecognizer
from pipeline.backends.whisper import weights as model_weights
from pipeline.backends.whisper.weights import WhisperWeights
from pipeline.config.loading import load_shared
from pipeline.errors import UsageError
from pipeline.server.capacity import calls_at_once, sessions_for, slowest_window_s
from pipeline.server.scheduling import Priority
from pipeline.server.service import Service
from tests.conftest import HANG_S
from tests.server.test_serve import command


@given(st.floats(1e-4, 100), st.floats(1, 100), st.integers(1, 256))
def test_a_slower_machine_gets_no_more_sessions(window_s, slower, cores):
    assert 1 <= sessions_for(window_s * slower, cores) <= sessions_for(window_s, cores) <= 1_000
    assert sessions_for(window_s, cores) <= sessions_for(window_s, cores + 1)


def test_the_number_follows_from_the_time_of_a_window():
    assert [sessions_for(window_s, 2) for window_s in (100, 0.25, 0.1, 0.05, 1e-3)] == [1, 4, 7, 10, 16]
    assert [sessions_for(0.1, cores) for cores in (1, 6, 12)] == [5, 11, 12]


def test_calls_at_once_share_the_time_of_a_window():
    encoder = SimpleNamespace(calls_at_once=4, on_gpu=False, run_encoder=len)
    times = iter(range(100))
    assert slowest_window_s([encoder], lambda: next(times)) == 1 / 4


@pytest.mark.slow
def test_the_time_of_a_window_is_the_shortest_after_the_first_run_with_all_calls_at_once(demo_config):
    (models,) = load_shared([demo_config], several_calls=True)
    took = [0.5, 3, 1, 5, 2, 4]
    times = iter([time for run, length in enumerate(took) for time in (10 * run, 10 * run + length)])
    at_once = calls_at_once([models.recognizer])
    assert slowest_window_s([models.recognizer] * 2, lambda: next(times)) == 1 / at_once
    assert next(times, None) is None, "a recogniser that serves two configurations is measured once"


def test_as_many_recognitions_run_at_once_as_the_recogniser_takes(demo_config):
    (models,) = load_shared([demo_config], several_calls=True)
    at_once = calls_at_once([models.recognizer])
    assert at_once == max(1, usable_cores() // demo_config.asr.threads)
    scheduler, together = Service(demo_config, models).scheduler, threading.Barrier(at_once)

    def work(_: int) -> int:
        with scheduler.slot(Priority.FINAL):
            return together.wait(HANG_S)

    with ThreadPoolExecutor(at_once) as threads:
        assert sorted(threads.map(work, range(at_once))) == list(range(at_once))


@pytest.mark.parametrize(("cores", "threads", "at_once"), [(2, 1, 2), (2, 0, 1), (2, 4, 1), (16, 0, 4), (6, 0, 1)])
def test_calls_at_once_share_the_cores(cores, threads, at_once, demo_models, monkeypatch):
    assert isinstance(demo_models.recognizer, WhisperRecognizer)
    monkeypatch.setattr(model_weights, "usable_cores", lambda: cores)
    weights = WhisperWeights.load(demo_models.recognizer.engine.weights.directory, threads=threads, several_calls=True)
    assert weights.calls_at_once == at_once
    assert demo_models.recognizer.engine.weights.calls_at_once == 1, "a single stream needs no more"


def test_another_recogniser_takes_one_call_at_once(demo_models):
    assert calls_at_once([demo_models.recognizer, object()]) == 1


def test_only_whisper_is_measured():
    with pytest.raises(UsageError, match="measures Whisper models only; give a number"):
        slowest_window_s([object()])


def test_a_gpu_is_not_measured(demo_models):
    recognizer = copy.copy(demo_models.recognizer)
    recognizer.engine = SimpleNamespace(weights=SimpleNamespace(calls_at_once=1, model=SimpleNamespace(device="cuda")))
    with pytest.raises(UsageError, match="measures CPUs only; give the number that bench capacity finds"):
        slowest_window_s([recognizer])


@pytest.mark.parametrize("wrong", ["0", "1001", "-1", "many", "AUTO", ""])
def test_a_wrong_number_is_refused(wrong, capsys):
    with pytest.raises(SystemExit) as caught:
        arguments().parse_args([f"--max-sessions={wrong}"])
    assert caught.value.code == 2
    assert f"{wrong!r} is not a whole number from 1 to 1000; or give auto" in capsys.readouterr().err


@pytest.mark.slow
async def test_the_command_measures_and_says_what_it_chose():
    slow = "import pipeline.server.capacity as it; it.slowest_window_s = lambda *_: 0.1"
    async with command("--max-sessions", "auto", before=slow) as server:
        expected = sessions_for(0.1, usable_cores())
        assert b"--max-sessions auto: %d, since a window of speech takes 0.100 s\n" % expected in server.said
        assert await limit(server.port) == expected


async def limit(port: int) -> int:
    """The largest number of sessions in a server's metrics."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
    text = (await reader.read()).decode()
    writer.close()
    (found,) = [line.split()[1] for line in text.splitlines() if line.startswith("speech_sessions_max ")]
    return int(float(found))
