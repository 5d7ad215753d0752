"""Statistics are counted on several threads at once."""

import sys
import threading
import time
from collections.abc import Iterator

import pytest

from pipeline.run.stats import PipelineStats

_BLOCKS = 1_000


@pytest.fixture
def frequent_switches() -> Iterator[None]:
    """Threads are switched as often as possible."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


@pytest.mark.usefixtures("frequent_switches")
def test_the_working_time_of_several_languages_adds_up():
    """Their threads count it as that of one stage. By each thread's clock, every block takes one second."""
    stats, own = PipelineStats(), threading.local()

    def clock() -> float:
        time.sleep(0)  # lets the other thread run
        own.now = getattr(own, "now", 0.0) + 1.0
        return float(own.now)

    def work() -> None:
        for _ in range(_BLOCKS):
            with stats.busy("nmt"):
                pass

    stats.clock = clock
    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert stats.busy_s == {"nmt": 2.0 * _BLOCKS}
