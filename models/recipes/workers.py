"""Data-parallel training in several processes on one machine, with separate batches and averaged gradients."""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

Item = TypeVar("Item")


def check_options(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    """Reject --steps, --batch, --workers or --warmup below 1, --cooldown below 0, and a missing --device."""
    if min(options.steps, options.batch, options.workers, options.warmup) < 1:
        parser.error("--steps, --batch, --workers and --warmup must be at least 1")
    if min(options.feeders, options.consistency) < 0:
        parser.error("--feeders and --consistency must be at least 0")
    if options.cooldown < 0:
        parser.error("--cooldown must be at least 0")
    if options.device == "cuda" and not torch.cuda.is_available():
        parser.error("--device cuda: PyTorch finds no such device; use --device cpu")


def launch(worker: Callable[..., None], work: Path, workers: int, *arguments: Any) -> None:
    """Run ``worker(rank, work, *arguments)`` in this process, or in several child processes that end with it."""
    (work / "rendezvous").unlink(missing_ok=True)
    if workers == 1:
        worker(0, work, *arguments)
        return
    # Exit normally on SIGTERM, so that the workers are stopped too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    torch.multiprocessing.spawn(worker, (work, *arguments), nprocs=workers, daemon=True)


def prefetched(make: Callable[[int], Iterator[Item]], processes: int) -> Iterator[Item]:
    """The endless items of ``make(0)``; with ``processes``, those of ``make(0)``, ``make(1)``, …, made ahead in each."""
    if not processes:
        return make(0)

    class Items(IterableDataset[Item]):
        def __iter__(self) -> Iterator[Item]:
            found = get_worker_info()
            return make(found.id if found else 0)

    context = torch.multiprocessing.get_context("fork")  # which shares what ``make`` reads
    loader = DataLoader(
        Items(), batch_size=None, num_workers=processes, prefetch_factor=8, multiprocessing_context=context,
        collate_fn=_same,
    )  # fmt: skip
    return iter(loader)


def _same(item: Item) -> Item:
    return item


def join(rank: int, work: Path, workers: int) -> None:
    """Connect to the other processes."""
    if workers > 1:
        dist.init_process_group("gloo", init_method=f"file://{work / 'rendezvous'}", rank=rank, world_size=workers)


def share_gradients(parameters: list[torch.nn.Parameter], workers: int) -> None:
    """Average the gradients over all processes."""
    if workers == 1:
        return
    present = [p for p in parameters if p.grad is not None]
    flat = torch.cat([p.grad.flatten() for p in present])
    dist.all_reduce(flat)
    flat /= workers
    for p, piece in zip(present, flat.split([p.numel() for p in present]), strict=True):
        p.grad.copy_(piece.view_as(p))


def leave(workers: int) -> None:
    """Wait for the other processes, then disconnect."""
    if workers > 1:
        dist.barrier()
        dist.destroy_process_group()
