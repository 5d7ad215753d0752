"""Training in several processes of one machine, each on batches of its own, whose gradients are shared."""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist


def check(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    """Refuse a number of --steps, --batch or --workers below one, and a --device that is not there."""
    if min(options.steps, options.batch, options.workers) < 1:
        parser.error("--steps, --batch and --workers are at least 1")
    if options.device == "cuda" and not torch.cuda.is_available():
        parser.error("--device cuda: this PyTorch finds no such device")


def launch(worker: Callable[..., None], work: Path, workers: int, *arguments: Any) -> None:
    """Run ``worker(rank, work, *arguments)`` here, or in several processes, which end with this one."""
    (work / "rendezvous").unlink(missing_ok=True)
    if workers == 1:
        worker(0, work, *arguments)
        return
    # A run that is told to stop takes its workers along.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    torch.multiprocessing.spawn(worker, (work, *arguments), nprocs=workers, daemon=True)


def join(rank: int, work: Path, workers: int) -> None:
    """Find the other processes."""
    if workers > 1:
        dist.init_process_group("gloo", init_method=f"file://{work / 'rendezvous'}", rank=rank, world_size=workers)


def share_gradients(parameters: list[torch.nn.Parameter], workers: int) -> None:
    """Set every process's gradients to their mean over all ``workers``."""
    if workers == 1:
        return
    present = [p for p in parameters if p.grad is not None]
    flat = torch.cat([p.grad.flatten() for p in present])
    dist.all_reduce(flat)
    flat /= workers
    for p, piece in zip(present, flat.split([p.numel() for p in present]), strict=True):
        p.grad.copy_(piece.view_as(p))


def leave(workers: int) -> None:
    """Wait for the other processes, and part from them."""
    if workers > 1:
        dist.barrier()
        dist.destroy_process_group()
