"""A lock between programs that write to one cache."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from pipeline.run.progress import Progress


@contextmanager
def held(lock: Path, doing: str, progress: Progress) -> Iterator[None]:
    """Hold a lock between programs. If another program has it, tell ``progress`` what that one is ``doing``."""
    from huggingface_hub.utils import WeakFileLock

    with ExitStack() as stack:
        try:
            stack.enter_context(WeakFileLock(lock, timeout=1.0))
        except TimeoutError:
            progress(f"waiting for another program, which {doing}", 0.0)
            stack.enter_context(WeakFileLock(lock))
        yield
