"""The server's command with scripted models, in a process that tells how much it works: for each line it is sent, in JSON.

The first argument names what the translators are: "scripted" or "real"; the second is a JSON object of limits; then those of the
command.
"""

import asyncio
import json
import os
import sys
import threading
import time
from collections.abc import Sequence
from typing import Any

from pipeline.apps import serve
from pipeline.config import PipelineConfig
from pipeline.config.loading import load_translations
from pipeline.server.limits import ServerLimits
from tests.fixtures.scripted.loading import Models, Recognizer, Translator

longest_s = 0.0
"""Of a turn of the loop, for which others wait, in seconds of work, since the last line."""


def measure() -> None:
    """Measure each turn of the loop."""
    run = asyncio.BaseEventLoop._run_once  # type: ignore[attr-defined]

    def timed(loop: asyncio.BaseEventLoop) -> None:
        global longest_s
        began_s = time.thread_time()
        run(loop)
        longest_s = max(longest_s, time.thread_time() - began_s)

    asyncio.BaseEventLoop._run_once = timed  # type: ignore[attr-defined]


def tell(loop_clock: int) -> None:
    """Answer each line of standard input."""
    global longest_s
    for _ in sys.stdin:
        with open("/proc/self/statm") as file:
            memory_mb = int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6
        figures = {
            "held_ms": 1000 * longest_s,
            "loop_s": time.clock_gettime(loop_clock),
            "cpu_s": time.process_time(),
            "memory_mb": memory_mb,
            "files": len(os.listdir("/proc/self/fd")),
        }
        longest_s = 0.0
        print(json.dumps(figures), flush=True)
    os._exit(1)  # the test has gone


def main(kind: str, limits: str, *arguments: str) -> int:
    def load(configs: Sequence[PipelineConfig], **_: Any) -> list[Any]:
        return [
            Models(
                Recognizer(),
                load_translations(config)
                if kind == "real"
                else {target: Translator() for target in config.languages.targets},
            )
            for config in configs
        ]

    serve.load_shared = load  # type: ignore[assignment]
    assert ServerLimits.__init__.__kwdefaults__ is not None
    ServerLimits.__init__.__kwdefaults__.update(json.loads(limits))
    measure()
    loop_clock = time.pthread_getcpuclockid(threading.get_ident())
    threading.Thread(target=tell, args=(loop_clock,), daemon=True).start()
    return serve.run(list(arguments))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
