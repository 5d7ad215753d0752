"""What a recogniser's weights went through: ``run.json`` beside each training's checkpoint, and the card's words for it."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

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


@dataclass
class Run:
    """One training. ``parts`` are its first step, utterances a step and highest learning rate, anew when they change."""

    shape: Shape
    init: Path | None
    parts: list[tuple[int, int, float]]
    steps: int = 0
    note: str = ""  # what else the card should tell; added by hand

    def __str__(self) -> str:
        ends = [first for first, *_ in self.parts[1:]] + [self.steps]
        return " and ".join(
            f"{end - first:,} steps of {utterances} utterances, learning rate at most {peak:g}"
            for (first, utterances, peak), end in zip(self.parts, ends, strict=True)
        )


def keep(work: Path, run: Run) -> None:
    partial = work / "run.partial"
    partial.write_text(json.dumps(asdict(run) | {"init": run.init and str(run.init)}, indent=1) + "\n")
    partial.rename(work / "run.json")


def run_of(work: Path) -> Run:
    """The training in ``work``, which has a checkpoint. Exits if it is none of this recipe's."""
    lacking = [name for name in ("checkpoint.pt", "tokenizer.json", "run.json") if not (work / name).exists()]
    if lacking:
        sys.exit(f"{work} is not the --work of a training that saved something: it lacks {', '.join(lacking)}")
    kept = json.loads((work / "run.json").read_text())
    kept["shape"], kept["parts"] = Shape(**kept["shape"]), [tuple(part) for part in kept["parts"]]
    return Run(**kept | {"init": kept["init"] and Path(kept["init"])})


def begin(work: Path, new: Run) -> Run:
    """``new`` is what a training in ``work`` is to be; what it is, if it goes on from a checkpoint there.

    Exits if the checkpoint is of another training, or if its weights cannot come from ``new.init``.
    """
    if (work / "checkpoint.pt").exists():
        run = run_of(work)
        init = new.init or run.init
        if (new.shape, init) != (run.shape, run.init):
            sys.exit(
                f"{work} has a training of {run.shape}, begun with {run.init or 'random weights'}; this one is to have "
                f"{new.shape}, begun with {init or 'random weights'}: use another --work, or the same options"
            )
        if new.parts[0][1:] != run.parts[-1][1:]:
            run.parts = [part for part in run.parts if part[0] < run.steps] + [(run.steps, *new.parts[0][1:])]
        return run
    if new.init:
        before = lineage(new.init)[-1][1].shape
        same, may_grow = ("d_model", "decoder_layers"), ("encoder_layers", "ffn")
        if any(getattr(before, key) != getattr(new.shape, key) for key in same) or any(
            getattr(before, key) > getattr(new.shape, key) for key in may_grow
        ):
            sys.exit(
                f"--init {new.init} has {before}; that becomes {new.shape} only if no more than encoder layers and "
                "feed-forward units are added"
            )
    return new


def lineage(work: Path) -> list[tuple[Path, Run]]:
    """The trainings whose weights ``work`` began with, the oldest first, and itself: where, and how."""
    run = run_of(work)
    return [*(lineage(run.init) if run.init else []), (work, run)]


@dataclass(frozen=True)
class Told:
    """What the card tells of all trainings of some weights."""

    trainings: str
    recordings: int  # of the last
    sentences: int
    heard_before: list[str]  # of the tests, in earlier trainings
    spoken_before: int  # of what the demo and the tests say


def tell(work: Path, tests: set[str]) -> Told:
    """Exits if a training's recordings are gone, or if the last one has ``tests`` among them."""
    lines, before, texts, shape = [], set[str](), list[str](), None
    for folder, run in lineage(work):
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
    return Told("; then ".join(lines), len(texts), len(set(texts)), sorted(tests & before), len(SENTENCES & before))
