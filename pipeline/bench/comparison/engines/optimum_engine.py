"""optimum on ONNX Runtime, with its merged export, fp32."""

from __future__ import annotations

import onnxruntime as ort
from optimum.onnxruntime import ORTModelForSeq2SeqLM

from pipeline.bench.comparison.engines.generation import GenerateEngine


class OptimumEngine(GenerateEngine):
    def __init__(self, directory: str, threads: int) -> None:
        options = ort.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
        options.log_severity_level = 4
        super().__init__(ORTModelForSeq2SeqLM.from_pretrained(directory, session_options=options, use_cache=True))
