"""Train one of the demo's translators, a small Marian, and export it to ONNX.

    python models/recipes/nmt.py en-zh --pairs cmn.txt --work /tmp/nmt-en-zh [--steps 9000] [--workers 2]

``cmn.txt`` is the English–Mandarin selection of Tatoeba (manythings.org/anki, CC BY 2.0 FR): English, Chinese and
attribution separated by tabs. Every stage saves under --work; a stopped run goes on from its last checkpoint.
"""

from __future__ import annotations

import argparse
import json
import shutil
from pathlib import Path

from needs import TRAIN, require_packages

require_packages(*TRAIN)

import evaluate
import torch
from card import SHIPPED
from corpora import translation_pairs
from marian import Size, averaged, make_vocabulary, save, train
from tatoeba import ATTRIBUTION, Pair

from pipeline.nmt.compiler.build import compile_model

PIECES = {"en": 3000, "zh": 4500}
SAMPLE = 150  # training pairs of either kind that the compiled files are compared on


def size(direction: str) -> Size:
    source, target = direction.split("-")
    return Size(PIECES[source], PIECES[target], d_model=192, heads=6, ffn=768, encoder_layers=3, decoder_layers=2)


def ship(work: Path, shape: Size, sample: list[Pair], destination: Path) -> None:
    """Save the checkpoint and compile it to the streaming layout, measured on ``sample`` against fp32."""
    save(averaged(work, shape), work / "vocabulary", work / "hf")
    lines = work / "sample.tsv"
    lines.write_text("".join(f"{source}\t{target}\n" for source, target in sample), "utf-8")
    compiled = work / "compiled"
    shutil.rmtree(compiled, ignore_errors=True)
    print(compile_model(work / "hf", compiled, weights="int8", sample=lines))
    shutil.rmtree(destination, ignore_errors=True)
    shutil.copytree(compiled, destination)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("direction", choices=("en-zh", "zh-en"))
    parser.add_argument("--pairs", type=Path, required=True)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--out", type=Path, help="default: models/demo/nmt-DIRECTION")
    parser.add_argument("--steps", type=int, default=9000)
    parser.add_argument("--batch", type=int, default=1000, help="padded tokens a worker a step")
    parser.add_argument("--workers", type=int, default=2, help="processes that train; 1 on a GPU")
    parser.add_argument("--device", default="cpu", help="cpu or cuda")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--dropout", type=float, default=0.15)
    parser.add_argument("--peak", type=float, default=1.2e-3, help="highest learning rate")
    parser.add_argument("--bf16", action="store_true", help="bfloat16 matrix products (CPUs with AVX512-BF16 or AMX)")
    parser.add_argument("--stage", choices=("all", "train", "export"), default="all")
    options = parser.parse_args()
    shape = size(options.direction)
    destination = options.out or SHIPPED / f"nmt-{options.direction}"
    pairs, phrases, _, _ = translation_pairs(options.pairs, options.direction)
    options.work.mkdir(parents=True, exist_ok=True)
    vocabulary = options.work / "vocabulary"
    if not (vocabulary / "tokenizer_config.json").exists():
        make_vocabulary(vocabulary, pairs + phrases, shape, tuple(options.direction.split("-")))
    if options.stage in ("all", "train"):
        train(options.work, shape, pairs + phrases, options)
    if options.stage in ("all", "export"):
        torch.set_num_threads(options.workers)
        ship(options.work, shape, pairs[:SAMPLE] + phrases[:SAMPLE], destination)
        steps = torch.load(options.work / "checkpoint.pt", weights_only=True, map_location="cpu")["step"]
        facts = {
            "direction": options.direction,
            "trained_on": f"{len(pairs):,} {ATTRIBUTION}, with Chinese in simplified script (OpenCC), and {len(phrases):,} "
            "pairs of `models/recipes/phrasebook.py` (travel, times, prices, meetings). A fifth of the sources in lower "
            f"case without marks. {steps:,} steps of {options.batch * options.workers:,} tokens: `models/recipes/nmt.py`.",
            "held_out": "No training pair has either side of a test pair, whatever its case and marks, or an English side "
            "that differs from a test sentence in one word.",
        }
        (destination / "training.json").write_text(json.dumps(facts, indent=1) + "\n")
        evaluate.translator(destination, options.pairs)


if __name__ == "__main__":
    main()
