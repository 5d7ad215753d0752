"""Measure load time and memory of an engine in a fresh process: python -m pipeline.bench.comparison.fresh JSON."""

from __future__ import annotations

import dataclasses
import json
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from pipeline.bench.comparison.engines import Candidate, import_engine
from pipeline.errors import ModelError

_PROC_STATUS = Path("/proc/self/status")
# Prints the memory of a bare interpreter in kB, which is subtracted.
_BARE = "print(next(line.split()[1] for line in open('/proc/self/status') if line.startswith('VmRSS')))"


@dataclass(frozen=True)
class Fresh:
    """Load time and memory of one engine in a fresh process."""

    import_s: float
    load_s: float
    """Opening the model, after its libraries were imported; its files are in the page cache."""
    resident_mb: float | None
    """After one sentence, minus a bare interpreter; None where the system has no /proc."""
    peak_mb: float | None
    """Peak until then, minus a bare interpreter."""


def measure_fresh(candidate: Candidate, threads: int, source: list[int], tokens: int, starts: int) -> Fresh:
    """Start the engine ``starts`` times, each in a fresh process; return the medians.

    Raises:
        ModelError: the engine does not start.
    """
    request = {"candidate": dataclasses.asdict(candidate), "threads": threads, "source": source, "tokens": tokens}
    command = [sys.executable, "-m", "pipeline.bench.comparison.fresh", json.dumps(request)]
    bare_kb = int(_run([sys.executable, "-c", _BARE])) if _PROC_STATUS.exists() else 0
    found = [json.loads(_run(command).splitlines()[-1]) for _ in range(starts)]

    def median(key: str) -> float:
        return float(statistics.median(one[key] for one in found))

    def over_bare(key: str) -> float | None:
        return (median(key) - bare_kb) * 1024 / 1e6 if bare_kb else None

    return Fresh(median("import_s"), median("load_s"), over_bare("VmRSS"), over_bare("VmHWM"))


def _run(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        lines = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
        raise ModelError(lines[-1])
    return done.stdout


def main(request: str) -> None:
    """Run in the fresh process: import, load, translate once, print the measurement as JSON."""
    parsed = json.loads(request)
    candidate = Candidate(**parsed["candidate"])
    began = time.perf_counter()
    open_model = import_engine(candidate.engine)
    imported = time.perf_counter()
    engine = open_model(candidate.directory, parsed["threads"], **candidate.settings)
    loaded = time.perf_counter()
    engine.decode(parsed["source"], parsed["tokens"])
    found: dict[str, float] = {"import_s": imported - began, "load_s": loaded - imported}
    if _PROC_STATUS.exists():
        fields = dict(line.split(":", 1) for line in _PROC_STATUS.read_text().splitlines())
        found |= {key: int(fields[key].split()[0]) for key in ("VmRSS", "VmHWM")}
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1])
