"""What the models of a recording compute on any number of threads, cores and processes."""

import os
import subprocess

import pytest

from tests.archives.archives import files, options
from tests.commands import command
from tests.conftest import EXAMPLES, HANG_S, PHRASES


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="processes cannot be tied to a core")
def test_the_number_of_cores_changes_no_file(tmp_path):
    one_core = ["taskset", "--cpu-list", str(min(os.sched_getaffinity(0)))]
    runs = {
        "two threads": ([], {"OPENBLAS_NUM_THREADS": "2", "OMP_NUM_THREADS": "2"}, []),
        "one thread": ([], {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}, []),
        "one core": (one_core, {}, []),
        "two processes": ([], {}, ["--processes", "2"]),
    }
    audio = [EXAMPLES / "novel.wav", PHRASES]
    for name, (before, threads, more) in runs.items():
        arguments = options(*audio, "--output-dir", tmp_path / name, *more, config="demo")
        subprocess.run(
            [*before, *command("translate", *arguments)], env=os.environ | threads, check=True, timeout=HANG_S
        )
    expected = files(tmp_path / "two threads")
    assert len(expected) == 4
    assert [name for name in runs if files(tmp_path / name) != expected] == []
