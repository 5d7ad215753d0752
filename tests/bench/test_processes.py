"""CPU time and memory of other programs."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from pipeline.bench.processes import machine_cpu_s, usage_of

# Prints its name, waits for a line, starts a child with 80 MB that works for half a second of CPU time, and prints when the
# child has; the next line ends the child, and its end is printed too.
PARENT = """
import subprocess, sys
child = "import sys, time; held = bytearray(b'x' * 80_000_000)\\nwhile time.process_time() < 0.5: pass\\nprint(flush=True); input()"
print("ready", flush=True); input()
started = subprocess.Popen([sys.executable, "-c", child], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
started.stdout.readline()
print("grown", flush=True); input()
started.communicate(b"\\n")
print("ended", flush=True); input()
"""


@contextmanager
def parent() -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-c", PARENT]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def tell(process: subprocess.Popen[str], expected: str) -> None:
    """Send a line, and read the answer."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write("\n")
    process.stdin.flush()
    assert process.stdout.readline() == f"{expected}\n"


def test_children_count_while_they_run_and_their_work_afterwards():
    with parent() as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        before, machine_s = usage_of(process.pid), machine_cpu_s()
        tell(process, "grown")
        grown = usage_of(process.pid)
        tell(process, "ended")
        after, machine_s = usage_of(process.pid), machine_cpu_s() - machine_s
    assert before is not None
    assert grown is not None
    assert after is not None
    assert grown.resident_mb - before.resident_mb > 80
    assert after.resident_mb < grown.resident_mb - 80
    for one in (grown, after):
        assert one.cpu_s - before.cpu_s >= 0.45  # clock ticks of 10 ms, user and system time cut to whole ones
    assert machine_s >= 0.45
    assert before.cores == len(os.sched_getaffinity(0))


def test_a_process_that_has_ended_used_nothing():
    with parent() as process:
        pass
    assert usage_of(process.pid) is None
