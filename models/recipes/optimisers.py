"""What makes the recogniser's steps: Muon and AdamW."""

from __future__ import annotations

from functools import partial

import torch
from torch.distributed.optim import ZeroRedundancyOptimizer


def orthogonal(gradient: torch.Tensor, factors: tuple[float, float, float], steps: int, least: float) -> torch.Tensor:
    """Muon's Newton-Schulz iteration, as ``torch.optim.Muon`` makes it, in float32.

    That computes in bfloat16 and offers nothing else: 33 s a step of the shipped model on a CPU that has none, and this 1.3 s.
    """
    tall = gradient.shape[0] > gradient.shape[1]
    x = gradient.T if tall else gradient
    x = x / x.norm().clamp(min=least)
    first, third, fifth = factors
    for _ in range(steps):
        square = x @ x.T
        x = first * x + (third * square + fifth * square @ square) @ x
    return x.T if tall else x


def make_optimisers(
    model: torch.nn.Module, head: torch.nn.Module, workers: int, bf16: bool
) -> list[torch.optim.Optimizer]:
    """Muon (Jordan et al. 2024) for the layers' matrices, AdamW for embeddings, convolutions, norms and biases.

    Muon's steps cost a sixth of a worker's time, so every worker makes those of some matrices for all.
    """
    if not bf16:
        torch.optim._muon._zeropower_via_newtonschulz = orthogonal
    named = [(name, p) for name, p in model.named_parameters() if p.requires_grad]
    matrices = [p for name, p in named if "layers" in name and p.ndim == 2]
    rest = [p for name, p in named if "layers" not in name or p.ndim != 2] + list(head.parameters())
    muon = partial(torch.optim.Muon, weight_decay=0.01, adjust_lr_fn="match_rms_adamw")
    return [
        ZeroRedundancyOptimizer(matrices, muon) if workers > 1 else muon(matrices),
        torch.optim.AdamW(rest, betas=(0.9, 0.98), weight_decay=0.01),
    ]
