"""transformers on PyTorch, fp32."""

from __future__ import annotations

import torch
from transformers import MarianMTModel

from pipeline.bench.comparison.engines.generation import GenerateEngine


class TransformersEngine(GenerateEngine):
    def __init__(self, directory: str, threads: int) -> None:
        torch.set_num_threads(threads)
        super().__init__(MarianMTModel.from_pretrained(directory, dtype=torch.float32).eval())
