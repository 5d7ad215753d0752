"""Train one of the demo's translators, a small Marian, and export it to ONNX.

    python models/recipes/nmt.py en-zh --pairs cmn.txt --work /tmp/nmt-en-zh [--steps 9000] [--workers 2]

``cmn.txt`` is the English–Mandarin selection of Tatoeba (manythings.org/anki, CC BY 2.0 FR): English, Chinese and
attribution separated by tabs. Every stage saves under --work; a stopped run goes on from its last checkpoint. ``--init``
goes on from the weights and the vocabulary of a finished translator (``models/demo/nmt-en-zh``).
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from dataclasses import asdict, dataclass, field
from pathlib import Path

from needs import TRAIN, require_packages

require_packages(*TRAIN)

import figures
import torch
from card import SHIPPED, refuse_other_files
from compiled import marian_weights
from marian import Size, averaged, make_vocabulary, save, train
from pairs import check_tests, digest, translation_pairs
from tatoeba import ATTRIBUTION, Pair
from workers import check

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


@dataclass
class Begun:
    """What a training in a --work is of, kept there as ``begun.json``."""

    direction: str
    init: str | None  # as it was named
    tests: str  # their digest
    parts: list[tuple[int, int]] = field(default_factory=list)  # first step and tokens a step, anew when these change

    def __str__(self) -> str:
        return f"of {self.direction}, begun with {self.init or 'random weights'}"


def kept(work: Path) -> Begun | None:
    """None where no training was begun."""
    path = work / "begun.json"
    return Begun(**json.loads(path.read_text())) if path.exists() else None


def keep(work: Path, begun: Begun) -> None:
    """Replace ``begun.json`` whole: a process that is stopped leaves what was there before."""
    partial = work / "begun.partial"
    partial.write_text(json.dumps(asdict(begun), indent=1) + "\n")
    partial.rename(work / "begun.json")


def begin(work: Path, new: Begun, pairs: list[Pair], tests: set[str]) -> Begun:
    """Make the vocabulary, or keep a copy of what is gone on from, since the training may end where that is.

    Exits if ``work`` has another training already.
    """
    before = kept(work)
    if before is not None:
        if (before.direction, new.init or before.init) != (new.direction, before.init):
            sys.exit(f"{work} has a training {before}; this one is to be {new}: use another --work")
        if before.tests != new.tests:
            sys.exit(f"{work} has a training on another edition of --pairs: use that, or another --work")
        return before
    if (work / "checkpoint.pt").exists():
        sys.exit(f"{work} has a checkpoint, but no begun.json that tells what it is of: use another --work")
    for folder in ("init", "vocabulary"):  # of a start that was stopped
        shutil.rmtree(work / folder, ignore_errors=True)
    (work / "vocabulary").mkdir(parents=True)
    if new.init:
        init = Path(new.init)
        if init.resolve() == (work / "init").resolve():
            sys.exit(f"--init {init} is what the training in {work} keeps of its own: name another model or --work")
        told = told_of(init)
        if told.get("direction") != new.direction or "trainings" not in told:
            sys.exit(
                f"{init / 'training.json'} does not tell of trainings of {new.direction}. Go on from another model"
            )
        check_tests(told, tests)
        marian_weights(init)  # which exits if they cannot be gone on from
        shutil.copytree(init, work / "init")
        for name in ("source.spm", "target.spm", "vocab.json", "tokenizer_config.json"):
            shutil.copy(init / name, work / "vocabulary" / name)
    else:
        make_vocabulary(work / "vocabulary", pairs, size(new.direction), tuple(new.direction.split("-")))
    keep(work, new)
    return new


def told_of(model: Path) -> dict[str, str]:
    """What a finished translator's training.json says."""
    path = model / "training.json"
    return json.loads(path.read_text()) if path.exists() else {}


def steps_of(work: Path) -> int:
    """Those that the training in ``work`` has made and saved."""
    checkpoint = work / "checkpoint.pt"
    return torch.load(checkpoint, weights_only=True, map_location="cpu")["step"] if checkpoint.exists() else 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("direction", choices=("en-zh", "zh-en"))
    parser.add_argument("--pairs", type=Path, required=True)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--out", type=Path, help="default: models/demo/nmt-DIRECTION")
    parser.add_argument("--init", type=Path, help="a finished translator to go on from")
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
    check(parser, options)
    work, shape = options.work, size(options.direction)
    destination = options.out or SHIPPED / f"nmt-{options.direction}"
    refuse_other_files(destination)
    if options.stage == "export" and not (work / "checkpoint.pt").exists():
        parser.error(f"--stage export: no checkpoint in {work}")
    pairs, phrases, test, _ = translation_pairs(options.pairs, options.direction)
    asked = {source for source, _ in test}
    work.mkdir(parents=True, exist_ok=True)
    init = str(options.init.resolve()) if options.init else None
    begun = begin(work, Begun(options.direction, init, digest(asked)), pairs + phrases, asked)
    if options.stage in ("all", "train"):
        done, tokens = steps_of(work), options.batch * options.workers
        if not begun.parts or tokens != begun.parts[-1][1]:
            begun.parts = [part for part in begun.parts if part[0] < done] + [(done, tokens)]
            keep(work, begun)
        train(work, shape, pairs + phrases, options)
    if options.stage in ("all", "export"):
        torch.set_num_threads(options.workers)
        ship(work, shape, pairs[:SAMPLE] + phrases[:SAMPLE], destination)
        ends = [*(first for first, _ in begun.parts[1:]), steps_of(work)]
        trainings = " and ".join(
            f"{end - first:,} steps of {tokens:,} tokens"
            for (first, tokens), end in zip(begun.parts, ends, strict=True)
        )
        before = told_of(work / "init").get("trainings")
        trainings = f"{before + '; then ' if before else ''}{trainings}, with {len(phrases):,} phrases"
        facts = {
            "direction": options.direction,
            "trainings": trainings,
            "tests": begun.tests,
            "trained_on": f"{len(pairs):,} {ATTRIBUTION}, with Chinese in simplified script (OpenCC), and pairs of "
            "`models/recipes/phrasebook.py` (travel, times, prices, meetings, every number from 2 to 999). A fifth of the "
            f"sources in lower case without marks. {trainings}: `models/recipes/nmt.py`.",
            "held_out": "No training pair has either side of a test pair, whatever its case and marks, or an English side "
            "that differs from one of Tatoeba's test sentences in one word.",
        }
        (destination / "training.json").write_text(json.dumps(facts, indent=1) + "\n")
        figures.translator(destination, options.pairs)


if __name__ == "__main__":
    main()
