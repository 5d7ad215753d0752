"""Count the terms of a glossary that recognition gets right with the glossary and without.

The recordings, each with its text in ``NAME.txt``, are recognised segment by segment, in order, as one stream. The rows
take turns. Recordings without terms show how often a term is invented.
"""

from __future__ import annotations

import argparse
import dataclasses
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from pipeline.apps.cli import some_path, some_text, whole_number
from pipeline.asr.options import AsrConfig
from pipeline.asr.terms import HeardTerms
from pipeline.asr.whisper import WhisperRecognizer
from pipeline.bench.asr import Clip, clips_in
from pipeline.bench.errors import edits, units
from pipeline.events import SpeechSegment, Transcript
from pipeline.glossary.files import load_glossary
from pipeline.glossary.options import GlossaryOptions
from pipeline.glossary.terms import Glossary


@dataclass
class Row:
    """One way to recognise, and its results."""

    name: str
    recognizer: WhisperRecognizer
    terms: HeardTerms | None = None
    drafts: bool = False
    """Whether each segment is first recognised without its end, as in a live run."""
    right: int = 0
    """Terms that the text has and the transcript too."""
    missed: int = 0
    """Terms that only the text has."""
    invented: int = 0
    """Terms that only the transcript has."""
    corrected: int = 0
    wrong: int = 0
    """Edit distance in words (or characters)."""
    words: int = 0
    seconds: float = 0.0

    def score(self, clip: Clip, glossary: Glossary, language: str) -> None:
        began = time.perf_counter()
        found = [self._recognised(segment) for segment in clip.segments]
        self.seconds += time.perf_counter() - began
        shown = [one for one in found if one.rejected is None]
        text = " ".join(one.text for one in shown)
        said, heard = (Counter(match.term.source for match in glossary.found_in(each)) for each in (clip.text, text))
        self.right += (said & heard).total()
        self.missed += (said - heard).total()
        self.invented += (heard - said).total()
        self.corrected += sum(bool(word.heard) for one in shown for word in one.words)
        reference = units(clip.text, language)
        self.words += len(reference)
        self.wrong += edits(reference, units(text, language))

    def _recognised(self, segment: SpeechSegment) -> Transcript:
        if self.terms is None:
            return self.recognizer.transcribe(segment)
        if self.drafts:
            heard = segment.samples[: len(segment.samples) * 4 // 5]
            draft = self.recognizer.draft((), dataclasses.replace(segment, samples=heard))
            if draft is not None:
                self.terms.heard(draft)
        found = self.recognizer.transcribe(segment)
        if found.rejected is None:
            self.terms.heard(found)
        return found


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "folders",
        nargs="+",
        type=some_path,
        metavar="FOLDER",
        help="folder of recordings, each with its text in NAME.txt",
    )
    parser.add_argument("--glossary", type=some_path, required=True, metavar="FILE", help="the terms (TSV or TOML)")
    parser.add_argument("--asr", type=some_text, default="base", metavar="M", help="speech model (default: base)")
    parser.add_argument("--language", type=some_text, default="en", metavar="L", help="language spoken (default: en)")
    parser.add_argument(
        "--prompt-terms",
        type=_numbers,
        default=[GlossaryOptions.prompt_terms],
        metavar="N,…",
        help="terms in the prompt",
    )
    parser.add_argument(
        "--drafts", action="store_true", help="recognise each segment without its end first, as live runs do"
    )
    parser.add_argument("--threads", type=whole_number(0, 256), default=0, metavar="N", help="default: all cores")


def _numbers(text: str) -> list[int]:
    return [whole_number(0, 50)(part) for part in text.split(",")]


def run(options: argparse.Namespace) -> int:
    glossary = load_glossary(options.glossary).spoken(options.language)
    clips = [clip for folder in options.folders for clip in clips_in(folder)]
    recognizer = WhisperRecognizer(AsrConfig(model=options.asr, threads=options.threads), options.language)
    rows = [Row("no glossary", recognizer)]
    for count in options.prompt_terms:
        for correct in (False, True):
            terms = HeardTerms(lambda: glossary, GlossaryOptions(None, count, correct))
            name = f"{count} terms in the prompt{', corrected' if correct else ''}"
            rows.append(Row(name, recognizer.with_terms(terms), terms, options.drafts))
    for number, clip in enumerate(clips):
        for i in range(len(rows)):  # start with another row on each recording
            rows[(number + i) % len(rows)].score(clip, glossary, options.language)
    print(as_text(rows, glossary))
    return 0


def as_text(rows: Sequence[Row], glossary: Glossary) -> str:
    """Format the results, one line per row."""
    width = max(len(row.name) for row in rows)
    lines = [
        f"{len(glossary.terms)} terms, said {rows[0].right + rows[0].missed} times in {rows[0].words} words",
        f"{'':{width}}  {'right':>5}  {'missed':>6}  {'invented':>8}  {'corrected':>9}  {'wrong':>6}  {'s':>7}",
    ]
    lines += [
        f"{row.name:{width}}  {row.right:5}  {row.missed:6}  {row.invented:8}  {row.corrected:9}  "
        f"{row.wrong / max(1, row.words):6.1%}  {row.seconds:7.1f}"
        for row in rows
    ]
    return "\n".join(lines)
