"""Loading and resident memory, each measured in a process of its own: python -m pipeline.bench.comparison.fresh CANDIDATE_AS_JSON."""

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

_STATUS = Path("/proc/self/status")
# A bare interpreter: what this prints is subtracted.
_BARE = "print(next(line.split()[1] for line in open('/proc/self/status') if line.startswith('VmRSS')))"


@dataclass(frozen=True)
class Fresh:
    """One engine in a process of its own."""

    import_s: float
    load_s: float
    """Opening the model, its libraries imported and its files in the page cache."""
    resident_mb: float | None
    """After a sentence, over a bare interpreter; None where the system does not tell."""
    peak_mb: float | None
    """The most until then, over a bare interpreter."""


def measure_fresh(candidate: Candidate, threads: int, source: list[int], tokens: int, starts: int) -> Fresh:
    """Start the engine ``starts`` times, each in a process of its own; medians.

    Raises:
        ModelError: it does not start.
    """
    request = {"candidate": dataclasses.asdict(candidate), "threads": threads, "source": source, "tokens": tokens}
    command = [sys.executable, "-m", "pipeline.bench.comparison.fresh", json.dumps(request)]
    bare_kb = int(_output([sys.executable, "-c", _BARE])) if _STATUS.exists() else 0
    found = [json.loads(_output(command).splitlines()[-1]) for _ in range(starts)]

    def median(key: str) -> float:
        return float(statistics.median(one[key] for one in found))

    def over_bare(key: str) -> float | None:
        return (median(key) - bare_kb) * 1024 / 1e6 if bare_kb else None

    return Fresh(median("import_s"), median("load_s"), over_bare("VmRSS"), over_bare("VmHWM"))


def _output(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        lines = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
        raise ModelError(lines[-1])
    return done.stdout


def main(request: str) -> None:
    """The process of its own: import, load, translate, tell."""
    asked = json.loads(request)
    candidate = Candidate(**asked["candidate"])
    began = time.perf_counter()
    opened = import_engine(candidate.engine)
    imported = time.perf_counter()
    engine = opened(candidate.directory, asked["threads"], **candidate.settings)
    loaded = time.perf_counter()
    engine.decode(asked["source"], asked["tokens"])
    found: dict[str, float] = {"import_s": imported - began, "load_s": loaded - imported}
    if _STATUS.exists():
        fields = dict(line.split(":", 1) for line in _STATUS.read_text().splitlines())
        found |= {key: int(fields[key].split()[0]) for key in ("VmRSS", "VmHWM")}
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1])
