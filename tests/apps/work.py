"""What the processes of tests/apps/test_pool.py do: in a module of its own, which is imported quickly."""

import os
import signal
import threading
import time

from pipeline.errors import StageError


def double(items, tell, offset):
    for item in items:
        tell(("begun", os.getpid()))
        tell(2 * item + offset)


def die(items, tell):
    for item in items:
        if item == "poison":
            os.kill(os.getpid(), signal.SIGKILL)
        tell("done")


def end(items, tell):
    os._exit(3)


def fail(items, tell, kind):
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    for _ in items:
        if kind == "disk":
            raise OSError(5, "Input/output error")
        failure = StageError("VAD", ValueError("stereo"))
        failure.lock = threading.Lock()  # cannot be pickled
        raise failure


def wait(items, tell):
    for _ in items:
        tell(os.getpid())
        time.sleep(600)
