"""python -m pipeline.nmt: lines of text on standard input, translations on standard output."""

from __future__ import annotations

import argparse
import os
import sys
from dataclasses import replace

from ..backends import (
    AUTO,
    UNDETERMINED,
    MarianModel,
    NmtConfig,
    PivotTranslator,
    all_pairs,
    find_translation_model,
    load_translation_model,
    route,
    route_line,
    weights,
)
from ..console import Parser, description_of, some_text, standard_input, whole_number
from ..core import Changes, SourceSentence, Translation, TranslationRequest
from ..errors import SinkError, UsageError
from ..media import line

_EXAMPLES = (
    "echo 'Where is the hotel?' | %(prog)s --model models/demo/nmt-en-zh",
    "%(prog)s --source en --target de --beams 4 < text.txt",
)


def arguments(prog: str = "python -m pipeline.nmt") -> Parser:
    parser = Parser(prog=prog, description=description_of(__doc__), examples=_EXAMPLES)
    models = parser.add_argument_group("languages and models")
    models.add_argument(
        "--model",
        type=some_text,
        metavar="M",
        help="a directory, a student such as firefox/en-pt-tiny, or a hub id (default: looked up in the table of pairs by "
        "--source and --target)",
    )
    models.add_argument(
        "--file-suffix", default="", metavar="S", help='precision among a hub repository\'s files, such as "_quantized"'
    )
    models.add_argument("--source", metavar="L", help="language of the text (default: the model's)")
    models.add_argument("--target", metavar="L", help="language to translate into (default: the model's)")
    models.add_argument(
        "--via", type=some_text, default="en", metavar="L",
        help="pivot language if no model translates directly (default: en); none forbids two steps",
    )  # fmt: skip
    search = parser.add_argument_group("search")
    search.add_argument(
        "--beams", type=whole_number(1, 100), default=1, metavar="N", help="hypotheses kept; 1 (default) is greedy"
    )
    search.add_argument(
        "--max-tokens", type=whole_number(1, 100_000), default=256, metavar="N", help="target token limit per sentence"
    )
    search.add_argument(
        "--threads", type=whole_number(0, 256), default=1, metavar="N", help="0: as many as the machine has cores"
    )
    parser.add_argument(
        "--jsonl", action="store_true", help="one JSON object per token, and one per line of input; see docs/events.md"
    )
    return parser


def run(argv: list[str], prog: str = "python -m pipeline.nmt") -> int:
    options = arguments(prog).parse_args(argv)
    if sys.stdout is None:
        raise SinkError("standard output is closed, so translations cannot be written; redirect it to a file")
    model = _load(options)
    source, target = options.source or model.languages[0] or "en", options.target or model.languages[1] or UNDETERMINED
    model.check_languages(source, target)
    changes = Changes()
    for number, raw in enumerate(standard_input()):
        text = raw.decode("utf-8", "replace").rstrip("\r\n")  # invalid UTF-8 must not end the run
        if "\ufffd" in text and "\ufffd".encode() not in raw:
            print(f"line {number + 1} is not UTF-8: what is no character is left out", file=sys.stderr, flush=True)
        cut = False
        for event in model.stream(TranslationRequest(SourceSentence(number, source, text), target)):
            if options.jsonl:
                print(line(changes.push(event)), end="", flush=True)
            if isinstance(event, Translation):
                cut = event.truncated
                if not options.jsonl:  # a pipe cannot withdraw text: print what is final
                    print(event.text, flush=True)
        if cut:
            print(
                f"line {number + 1}: the translation of a sentence looped or reached the token limit and was cut off; "
                "split the sentence, or raise --max-tokens",
                file=sys.stderr,
                flush=True,
            )
    return 0


def _load(options: argparse.Namespace) -> MarianModel | PivotTranslator:
    nmt = NmtConfig(
        AUTO,
        file_suffix=options.file_suffix,
        via=options.via,
        beam_size=options.beams,
        max_tokens=options.max_tokens,
        threads=options.threads,
    )
    if options.model is not None:
        nmt = replace(nmt, model=options.model)
        if not os.path.isdir(options.model):
            note = next((pair.note for pair in all_pairs() if pair.repository == options.model), "")
            print(weights(options.model, note), file=sys.stderr, flush=True)
        return MarianModel.load(find_translation_model(nmt), nmt)
    if options.source is None or options.target is None:
        raise UsageError("no model is given; give --model, or both --source and --target to look one up")
    print(route_line(route(options.source, options.target, nmt.via)), file=sys.stderr, flush=True)
    return load_translation_model(options.source, options.target, nmt)
