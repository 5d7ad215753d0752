"""make report BASE=REVISION INPUTS="KIND …": what the working tree changes on real inputs, compared with a revision.

The default is HEAD and all kinds. Both run at the same time, each on a core. Prints each changed text once, then a table;
tests/report/data/README.md has the inputs. make report AGAINST=OLD.json compares with the results of an earlier report, which stay in
build/report, and runs the working tree alone.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from .compare import as_text, from_json
from .runner import KINDS, ROOT

RESULTS = ROOT / "build" / "report"
"""Where the results stay, as JSON."""


def git(*arguments: object) -> str:
    return subprocess.run(
        ["git", *map(str, arguments)], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout.strip()


@contextmanager
def worktree(commit: str) -> Iterator[Path]:
    """The files of a commit, in a temporary folder."""
    with tempfile.TemporaryDirectory(prefix="report-") as folder:
        tree = Path(folder) / "tree"
        try:
            git("worktree", "add", "--detach", "--quiet", tree, commit)
            yield tree
        finally:
            # Not checked: if the folder could not be made, that is the error to show.
            subprocess.run(["git", "worktree", "remove", "--force", tree], cwd=ROOT, capture_output=True, check=False)


def run_all(trees: list[Path], files: list[Path], kinds: Sequence[str]) -> bool:
    """Write a result for each folder; False if that failed. All at the same time, so that their times compare."""
    free = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    cores = [str(core) for core in free[: len(trees)]] if len(free) >= len(trees) else [""] * len(trees)
    started: list[subprocess.Popen[bytes]] = []
    try:
        for tree, file, core in zip(trees, files, cores, strict=True):
            # One of them says how far it is.
            command = [sys.executable, "-m", "tests.report.runner", str(tree), str(file), core, *kinds]
            started.append(subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL if started else None))
        return [process.wait() for process in started] == [0] * len(started)
    finally:
        for process in started:
            process.terminate()
            process.wait()


def main(base: str = "HEAD", *kinds: str, against: Path | None = None) -> int:
    """``against``: the results of an earlier report, compared instead of ``base``."""
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    if unknown := set(kinds) - set(KINDS):
        print(
            f"error: no inputs are called {', '.join(sorted(unknown))}; there are {', '.join(KINDS)}", file=sys.stderr
        )
        return 2
    files = [RESULTS / "old.json", RESULTS / "new.json"]
    try:
        commit = "" if against else git("rev-parse", "--verify", "--quiet", f"{base}^{{commit}}")
    except (OSError, subprocess.CalledProcessError):
        print(f"error: there is no revision {base} here; name one of this repository, as BASE=HEAD~1", file=sys.stderr)
        return 2
    try:  # before the run, which writes where it may be
        earlier = from_json(against.read_text("utf-8")) if against else {}
    except (OSError, ValueError, TypeError, AttributeError, KeyError) as error:
        print(f"error: cannot read {against} ({error!r}); give a JSON file of an earlier report", file=sys.stderr)
        return 2
    RESULTS.mkdir(parents=True, exist_ok=True)
    try:
        if against:
            done = run_all([ROOT], files[1:], kinds or list(KINDS))
        else:
            with worktree(commit) as tree:
                done = run_all([tree, ROOT], files, kinds or list(KINDS))
    except KeyboardInterrupt:
        return 130
    if not done:
        return 1
    new = from_json(files[1].read_text("utf-8"))
    if against:
        old, name = {key: one for key, one in earlier.items() if key in new}, str(against)
    else:
        old, name = from_json(files[0].read_text("utf-8")), f"{base} ({git('rev-parse', '--short', commit)})"
    print(as_text(old, new, (name, "the working tree")))
    return int(any(one.failed for one in new.values()))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="make report")
    parser.add_argument("arguments", nargs="*", default=("HEAD",))
    parser.add_argument("--against", type=Path)
    given = parser.parse_args()
    sys.exit(main(*given.arguments, against=given.against))
