"""What a recogniser's weights went through: ``run.json`` beside each training's checkpoint, and the card's words for it."""

from __future__ import annotations

import hashlib
import json
import shutil
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from heldout import SENTENCES
from speech import load_speech


@dataclass(frozen=True)
class Shape:
    """The network's size; ``ffn`` is the number of inner units of a feed-forward layer."""

    d_model: int
    encoder_layers: int
    decoder_layers: int
    ffn: int

    def __str__(self) -> str:
        return f"{self.encoder_layers} + {self.decoder_layers} layers, d_model {self.d_model}, feed-forward {self.ffn}"


def grows(before: Shape, after: Shape) -> bool:
    """Whether weights of ``before`` can begin a training of ``after``."""
    return (
        after.d_model % before.d_model == 0
        and after.encoder_layers >= before.encoder_layers
        and after.decoder_layers == before.decoder_layers
        and after.ffn >= before.ffn
    )


@dataclass
class Run:
    """One training. ``parts`` are its first step, utterances a step and highest learning rate, anew when they change."""

    shape: Shape
    init: Path | None  # as it was named; what a finished model was then is kept in the training's folder
    parts: list[tuple[int, int, float]]
    steps: int = 0
    note: str = ""  # what else the card should tell; added by hand
    decoder_alone: bool = False  # its encoder is that of ``init``
    share: float = 1.0  # of the trained weights in what is shipped; the rest are those that it began with

    @property
    def whole(self) -> str:
        """What cannot change while it lasts."""
        part = "the decoder alone of " if self.decoder_alone else ""
        return f"{part}{self.shape}, begun with {self.init or 'random weights'}"

    def __str__(self) -> str:
        told = " and ".join(
            f"{count:,} steps of {utterances} utterances, learning rate at most {peak:g}"
            for count, (_, utterances, peak) in zip(lengths(self.parts, self.steps), self.parts, strict=True)
        )
        if self.decoder_alone:
            told += ", of the decoder alone"
        return (
            told
            if self.share == 1
            else f"{told} ({self.share:g} of these weights and {1 - self.share:g} of those before)"
        )


def lengths(parts: Sequence[tuple[Any, ...]], steps: int) -> list[int]:
    """The steps of each part of a training that made ``steps``; a part begins with its first step."""
    firsts = [first for first, *_ in parts]
    return [end - first for first, end in zip(firsts, [*firsts[1:], steps], strict=True)]


def keep(work: Path, run: Run) -> None:
    write_whole(work / "run.json", asdict(run) | {"init": run.init and str(run.init)})


def write_whole(path: Path, facts: dict[str, Any]) -> None:
    """Write JSON; a process that is stopped leaves what was there before."""
    partial = path.with_suffix(".partial")
    partial.write_text(json.dumps(facts, indent=1) + "\n")
    partial.rename(path)


def run_of(work: Path) -> Run:
    """The training in ``work``, which has a checkpoint. Exits if it is none of this recipe's."""
    lacking = [name for name in ("checkpoint.pt", "tokenizer.json", "run.json") if not (work / name).exists()]
    if lacking:
        sys.exit(f"{work} is not the --work of a training that saved something: it lacks {', '.join(lacking)}")
    kept = json.loads((work / "run.json").read_text())
    kept["shape"], kept["parts"] = Shape(**kept["shape"]), [tuple(part) for part in kept["parts"]]
    return Run(**kept | {"init": kept["init"] and Path(kept["init"])})


def finished(folder: Path) -> bool:
    """Whether ``folder`` has a model, ready to be used, rather than the --work of a training."""
    return (folder / "model.bin").exists()


def training_of(model: Path) -> dict[str, Any]:
    """What a finished model's training.json says. Exits if it does not say what can be gone on from."""
    path, wanted = model / "training.json", ("shape", "trainings", "tests", "heard_before", "spoken_before")
    facts: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    if lacking := [key for key in wanted if key not in facts]:
        sys.exit(
            f"{path} does not say how {model} was trained: it lacks {', '.join(lacking)}. Go on from another model"
        )
    return facts


def shape_of(folder: Path) -> Shape:
    """The network of a finished model, or of a training that saved something."""
    return Shape(**training_of(folder)["shape"]) if finished(folder) else run_of(folder).shape


def begun_with(work: Path, run: Run) -> Path | None:
    """Where the weights are, still, that the training in ``work`` began with; None if they were random."""
    return work / "init" if finished(work / "init") else run.init


def digest(tests: set[str]) -> str:
    """What tells one set of test sentences from another."""
    return hashlib.sha256("\n".join(sorted(tests)).encode()).hexdigest()


def refuse_own_copy(work: Path, init: Path) -> None:
    """Exit if ``init`` is the copy that ``work`` keeps of what it began with: it would be made of itself."""
    if init.resolve() == (work / "init").resolve():
        sys.exit(f"--init {init} is what the training in {work} keeps of its own: name another model or --work")


def begin(work: Path, new: Run) -> Run:
    """``new`` is what a training in ``work`` is to be; what it is, if it goes on from a checkpoint there.

    Exits if the checkpoint is of another training, or if its weights cannot come from ``new.init``. A finished model to
    begin with is copied into ``work``, since the training may end where that is.
    """
    if (work / "checkpoint.pt").exists():
        run = run_of(work)
        init = new.init or run.init
        if (new.shape, init, new.decoder_alone) != (run.shape, run.init, run.decoder_alone):
            sys.exit(
                f"{work} has a training of {run.whole}; this one is to have {replace(new, init=init).whole}: use another "
                "--work, or the same options"
            )
        if new.parts[0][1:] != run.parts[-1][1:]:
            run.parts = [part for part in run.parts if part[0] < run.steps] + [(run.steps, *new.parts[0][1:])]
        return run
    if new.init:
        refuse_own_copy(work, new.init)
        before = shape_of(new.init)
        if not grows(before, new.shape):
            sys.exit(
                f"--init {new.init} has {before}; that becomes {new.shape} only by encoder layers and feed-forward units "
                "that are added, and a d_model that is a multiple"
            )
    shutil.rmtree(work / "init", ignore_errors=True)
    if new.init and finished(new.init):
        (work / "init").mkdir(parents=True)
        for name in ("training.json", "tokenizer.json", "model.bin"):  # which, the last, makes it a finished one
            shutil.copy(new.init / name, work / "init" / name)
    return new


def lineage(work: Path) -> list[tuple[Path, Run]]:
    """The trainings whose weights ``work`` began with, the oldest first, and itself: where, and how.

    A finished model that the oldest went on from is not among them.
    """
    run = run_of(work)
    init = begun_with(work, run)
    return [*(lineage(init) if init and not finished(init) else []), (work, run)]


@dataclass(frozen=True)
class Told:
    """What the card tells of all trainings of some weights."""

    trainings: str
    recordings: int  # of the last
    sentences: int
    heard_before: list[str]  # of the tests, in earlier trainings
    spoken_before: int  # of what the demo and the tests say


def check_tests(facts: dict[str, Any], tests: set[str]) -> None:
    """Exit if a finished model, of whose training.json ``facts`` are, may have learned some of ``tests``."""
    if facts.get("tests") != digest(tests):
        sys.exit(
            "this model was trained with another edition of --pairs, whose test sentences are others: it has learned many "
            "of these. Take the edition that it was trained with, or train from random weights"
        )


def tell(work: Path, tests: set[str]) -> Told:
    """Exits if a training's recordings are gone, or if the last one has ``tests`` among them.

    Of a finished model that they went on from only its training.json is known, which is of these ``tests`` or none.
    """
    lines, before, texts, shape, spoken = [], set[str](), list[str](), None, 0
    runs = lineage(work)
    if (init := begun_with(*runs[0])) is not None:
        facts = training_of(init)
        check_tests(facts, tests)
        lines, shape, spoken = [facts["trainings"]], Shape(**facts["shape"]), facts["spoken_before"]
        before = set(facts["heard_before"])
    for folder, run in runs:
        before.update(texts)
        now = [clip.text for clip in load_speech(folder / "speech", "train")]
        line = str(run)
        if run.shape != shape:
            line += f", with {run.shape}"
        if now != texts:
            line += f", on {len(now):,} recordings of {len(set(now)):,} sentences"
        lines.append(line + run.note)
        texts, shape = now, run.shape
    if heard := tests.intersection(texts):
        sys.exit(f"{len(heard)} test sentences are in the training of {work}, such as {min(heard)!r}: speak it anew")
    return Told(
        "; then ".join(lines), len(texts), len(set(texts)), sorted(tests & before), spoken + len(SENTENCES & before)
    )
