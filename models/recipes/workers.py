"""Data-parallel training in several processes on one machine, with separate batches and averaged gradients."""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist


def check_options(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    """Reject --steps, --batch or --workers below 1, --cooldown below 0, and a missing --device."""
    if min(options.steps, options.batch, options.workers) < 1:
        parser.error("--steps, --batch and --workers must be at least 1")
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
