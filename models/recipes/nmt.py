"""Train one of the demo's translators, a small Marian, and export it to ONNX.

    python models/recipes/nmt.py en-zh --pairs cmn.txt --work /tmp/nmt-en-zh [--steps 30000] [--workers 2]

``cmn.txt`` is the English–Mandarin selection of Tatoeba (manythings.org/anki, CC BY 2.0 FR): English, Chinese and
attribution separated by tabs; the other pairs are in this folder. Every stage saves its results in --work. A stopped run
resumes from its last checkpoint. Any checkpoint can be exported; --cooldown makes the last steps better.
``--init`` starts from the weights and the vocabulary of a finished translator (``models/demo/nmt-en-zh``).
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
from pairs import TESTS, Data, check_tests, digest, translation_data
from repair import pairs_with
from schedule import WARMUP
from tatoeba import ATTRIBUTION as TATOEBA
from tatoeba import Pair
from workers import check_options
from written import ATTRIBUTION as WRITTEN

from pipeline.backends.marian.compile.build import compile_model

PIECES = {"en": 6000, "zh": 7000}
SAMPLE = 75  # training pairs of each origin whose translations tell which output rows are needed
# How often a pass has the pairs of each origin. Tatoeba's sentences are the most varied.
REPEATS = {"Tatoeba": 2, "everyday": 1, "conversations": 1, "phrasebook": 1}


def size(direction: str) -> Size:
    source, target = direction.split("-")
    return Size(PIECES[source], PIECES[target], d_model=256, heads=8, ffn=1024, encoder_layers=6, decoder_layers=2)


def ship(work: Path, shape: Size, sample: list[Pair], destination: Path) -> None:
    """Save the checkpoint and compile it to the streaming layout. ``sample`` tells which output rows it needs."""
    save(averaged(work, shape), work / "vocabulary", work / "hf")
    lines = work / "sample.tsv"
    lines.write_text("".join(f"{source}\t{target}\n" for source, target in sample), "utf-8")
    compiled = work / "compiled"
    shutil.rmtree(compiled, ignore_errors=True)
    alignment = shape.decoder_layers - 1, 0  # the training guides head 0 of each layer; see marian.py
    print(compile_model(work / "hf", compiled, weights="int8", sample=lines, alignment=alignment))
    shutil.rmtree(destination, ignore_errors=True)
    shutil.copytree(compiled, destination)


@dataclass
class TrainingRecord:
    """The identity of the training in a --work folder, saved there as ``begun.json``."""

    direction: str
    init: str | None  # path of the model given by --init
    tests: str  # digest of the test sentences
    parts: list[tuple[int, int]] = field(default_factory=list)  # (first step, tokens per step) of each batch size

    def __str__(self) -> str:
        return f"of {self.direction} from {self.init or 'random weights'}"


def load_record(work: Path) -> TrainingRecord | None:
    """Read ``begun.json``, or return None if no training was started."""
    path = work / "begun.json"
    return TrainingRecord(**json.loads(path.read_text())) if path.exists() else None


def save_record(work: Path, record: TrainingRecord) -> None:
    """Replace ``begun.json`` atomically, so that an interrupted process leaves the previous file."""
    partial = work / "begun.partial"
    partial.write_text(json.dumps(asdict(record), indent=1) + "\n")
    partial.rename(work / "begun.json")


def prepare(work: Path, new: TrainingRecord, pairs: list[Pair], tests: set[str]) -> TrainingRecord:
    """Prepare ``work``: make the vocabulary, or copy the model of --init, which the training may replace at the end.

    Exits if ``work`` has another training already.
    """
    before = load_record(work)
    if before is not None:
        if (before.direction, new.init or before.init) != (new.direction, before.init):
            sys.exit(f"{work} has a training {before}, not {new}: use another --work")
        if before.tests != new.tests:
            sys.exit(f"{work} has a training with another edition of --pairs: use that edition, or another --work")
        return before
    if (work / "checkpoint.pt").exists():
        sys.exit(f"{work} has a checkpoint, but no begun.json that identifies its training: use another --work")
    for folder in ("init", "vocabulary"):  # left by an interrupted start
        shutil.rmtree(work / folder, ignore_errors=True)
    (work / "vocabulary").mkdir(parents=True)
    if new.init:
        init = Path(new.init)
        if init.resolve() == (work / "init").resolve():
            sys.exit(f"--init {init} is a copy that the training in {work} made: name another model or --work")
        facts_of_init = training_facts(init)
        if facts_of_init.get("direction") != new.direction or "trainings" not in facts_of_init:
            sys.exit(f"{init / 'training.json'} does not describe a training of {new.direction}. Name another model")
        check_tests(facts_of_init, tests)
        marian_weights(init)  # exits if the model is not suitable
        shutil.copytree(init, work / "init")
        for name in ("source.spm", "target.spm", "vocab.json", "tokenizer_config.json"):
            shutil.copy(init / name, work / "vocabulary" / name)
    else:
        make_vocabulary(work / "vocabulary", pairs, size(new.direction), tuple(new.direction.split("-")))
    save_record(work, new)
    return new


def training_facts(model: Path) -> dict[str, str]:
    """Read the training.json of a finished translator; empty if there is none."""
    path = model / "training.json"
    return json.loads(path.read_text()) if path.exists() else {}


def saved_steps(work: Path) -> int:
    """Number of steps in the saved checkpoint of ``work``."""
    checkpoint = work / "checkpoint.pt"
    return torch.load(checkpoint, weights_only=True, map_location="cpu")["step"] if checkpoint.exists() else 0


def model_facts(record: TrainingRecord, data: Data, steps: int, before: str | None) -> dict[str, object]:
    """The content of training.json, which the card cites. ``before``: the trainings of the model of --init."""
    ends = [*(first for first, _ in record.parts[1:]), steps]
    parts = [
        f"{end - first:,} steps of {tokens:,} tokens" for (first, tokens), end in zip(record.parts, ends, strict=True)
    ]
    trainings = (f"{before}; then " if before else "") + " and ".join(parts)
    counts = {name: f"{len(pairs):,}" for name, pairs in data.training.items()}
    return {
        "direction": record.direction,
        "trainings": trainings,
        "tests": record.tests,
        "test_sets": list(TESTS),
        "trained_on": f"{counts['Tatoeba']} {TATOEBA}, with Chinese in simplified script (OpenCC); "
        f"{counts['everyday']} everyday and {counts['conversations']} conversational {WRITTEN}; {counts['phrasebook']} "
        "pairs of `models/recipes/phrasebook.py` (travel, times, prices, meetings, every number from 2 to 999). "
        "Almost a third of the sources are written as recognisers write speech (without final mark, case or marks), and "
        f"a fifth of the pairs are beginnings of sentences. {trainings}: `models/recipes/nmt.py`.",
        "held_out": "No training pair has a side that equals a side of a test pair, whatever its case and marks, or "
        "differs from it in one word or Chinese character.",
    }


def parsed_options() -> tuple[argparse.ArgumentParser, argparse.Namespace]:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("direction", choices=("en-zh", "zh-en"))
    parser.add_argument("--pairs", type=Path, required=True)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--out", type=Path, help="default: models/demo/nmt-DIRECTION")
    parser.add_argument("--init", type=Path, help="a finished translator to start from")
    parser.add_argument("--steps", type=int, default=30_000)
    parser.add_argument(
        "--cooldown", type=int, default=6000, help="last steps, over which the learning rate falls to 0"
    )
    parser.add_argument("--batch", type=int, default=2000, help="padded tokens per worker and step")
    parser.add_argument("--workers", type=int, default=2, help="training processes; 1 on a GPU")
    parser.add_argument("--device", default="cpu", help="cpu or cuda")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--dropout", type=float, default=0.15)
    parser.add_argument("--peak", type=float, default=8e-4, help="peak learning rate")
    parser.add_argument("--bf16", action="store_true", help="bfloat16 matrix products (CPUs with AVX512-BF16 or AMX)")
    parser.add_argument("--consistency", type=float, default=0.0, help="weight of R-Drop's loss; 5 in its paper")
    parser.add_argument("--warmup", type=int, default=WARMUP, help="steps until the peak learning rate")
    parser.add_argument(
        "--only-pieces", default="", metavar="CHARACTERS",
        help="with --init: train the embeddings of these alone, mostly on pairs with them or with numbers",
    )  # fmt: skip
    parser.add_argument("--feeders", type=int, default=0, help="processes that prepare batches ahead; for a GPU")
    parser.add_argument("--development-every", type=int, default=1000, metavar="STEPS")
    parser.add_argument("--stage", choices=("all", "train", "export"), default="all")
    options = parser.parse_args()
    options.augment = True
    if options.only_pieces and not options.init:
        parser.error("--only-pieces needs --init")
    check_options(parser, options)
    return parser, options


def main() -> None:
    parser, options = parsed_options()
    work, shape = options.work, size(options.direction)
    destination = options.out or SHIPPED / f"nmt-{options.direction}"
    refuse_other_files(destination)
    if options.stage == "export" and not (work / "checkpoint.pt").exists():
        parser.error(f"--stage export: no checkpoint in {work}")
    data = translation_data(options.pairs, options.direction)
    repeated = [pair for name, pairs in data.training.items() for pair in pairs * REPEATS[name]]
    test_sources = data.test_sources(TESTS)
    work.mkdir(parents=True, exist_ok=True)
    init = str(options.init.resolve()) if options.init else None
    record = prepare(work, TrainingRecord(options.direction, init, digest(test_sources)), repeated, test_sources)
    if options.stage in ("all", "train"):
        done, tokens = saved_steps(work), options.batch * options.workers
        if not record.parts or tokens != record.parts[-1][1]:
            record.parts = [part for part in record.parts if part[0] < done] + [(done, tokens)]
            save_record(work, record)
        if options.only_pieces:
            repeated = pairs_with(options.only_pieces, repeated, options.seed)
        train(work, shape, repeated, data.development, options)
    if options.stage in ("all", "export"):
        torch.set_num_threads(options.workers)
        sample = [pair for pairs in data.training.values() for pair in pairs[:: len(pairs) // SAMPLE]]
        ship(work, shape, sample, destination)
        facts = model_facts(record, data, saved_steps(work), training_facts(work / "init").get("trainings"))
        (destination / "training.json").write_text(json.dumps(facts, indent=1) + "\n")
        figures.write_translator_card(destination, options.pairs)


if __name__ == "__main__":
    main()
