"""Measure error rate and speed of recognition, compared with faster-whisper's ``transcribe`` on the same weights.

Recordings, each with its text in ``NAME.txt``, are cut into segments by voice activity detection. Each row of the
result is one way to recognise these segments. The rows take turns on each recording.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..archives import SUFFIXES
from ..backends import AsrConfig, WhisperEngine, WhisperRecognizer
from ..config import PipelineConfig
from ..console import some_path, some_text, whole_number, whole_numbers
from ..core import SAMPLE_RATE, Samples, SpeechSegment, Transcript, VadConfig
from ..errors import UsageError
from ..languages import LanguageConfig
from ..media import read_audio
from .play import PACK_MS, faster_whisper, packs, segments_of
from .words import edits, scored_units

_PHRASE_S = (1.0, 8.0)
_PARTS = ("features", "encode", "generate", "align")


@dataclass(frozen=True)
class Clip:
    """A recording, its reference text, and its segments of speech."""

    path: Path
    text: str
    samples: Samples
    segments: list[SpeechSegment]


Recognise = Callable[[Clip], list[Transcript]]


@dataclass
class Row:
    """One way to recognise, and its results."""

    name: str
    recognise: Recognise | None = None
    """Recognises a whole recording. Either this or ``recognise_segment`` is set."""
    recognise_segment: Callable[[SpeechSegment], Transcript] | None = None
    """Recognises one segment."""
    parts_s: dict[str, float] = field(default_factory=dict)
    """Seconds in features, encode, generate and align."""
    wrong: int = 0
    """Edit distance in words (or characters), counting only transcripts that are not withheld."""
    wrong_if_all: int = 0
    """Edit distance with all transcripts."""
    words: int = 0
    """Words (or characters) of the references."""
    withheld: int = 0
    """Rejected transcripts that contain words."""
    right_withheld: int = 0
    """Rejected transcripts whose words are a contiguous part of the reference."""
    transcripts: int = 0
    seconds: float = 0.0
    phrases_s: float = 0.0
    """Part of ``seconds`` spent on segments of 1 to 8 s; 0 if segments are not recognised one by one."""
    by_clip: dict[str, list[str]] = field(default_factory=dict)
    """Path → one transcript per segment; withheld ones are followed by the reason."""

    def score(self, clip: Clip, language: str) -> None:
        transcripts = self._recognised(clip)
        reference = scored_units(clip.text, language)
        shown = [result.text for result in transcripts if result.rejected is None]
        self.words += len(reference)
        self.transcripts += len(transcripts)
        self.wrong += edits(reference, scored_units(" ".join(shown), language))
        self.wrong_if_all += edits(reference, scored_units(" ".join(result.text for result in transcripts), language))
        for result in transcripts:
            said = scored_units(result.text, language)
            if result.rejected is not None and said:
                self.withheld += 1
                self.right_withheld += any(
                    reference[i : i + len(said)] == said for i in range(len(reference) - len(said) + 1)
                )
        self.by_clip[str(clip.path)] = [
            f"{result.text} ({result.rejected})" if result.rejected else result.text for result in transcripts
        ]

    def _recognised(self, clip: Clip) -> list[Transcript]:
        began = time.perf_counter()
        if self.recognise is not None:
            transcripts = self.recognise(clip)
        else:
            assert self.recognise_segment is not None, "a row needs recognise or recognise_segment"
            transcripts = []
            for segment in clip.segments:
                started = time.perf_counter()
                transcripts.append(self.recognise_segment(segment))
                if _PHRASE_S[0] <= segment.end_s - segment.start_s <= _PHRASE_S[1]:
                    self.phrases_s += time.perf_counter() - started
        self.seconds += time.perf_counter() - began
        return transcripts

    def record(self) -> dict[str, Any]:
        """Return the fields to write as JSON."""
        return {key: value for key, value in vars(self).items() if not key.startswith("recognise")}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "folders",
        nargs="+",
        type=some_path,
        metavar="FOLDER",
        help="folder of recordings, each with its text in NAME.txt",
    )
    parser.add_argument("--asr", type=some_text, default="base", metavar="M", help="speech model (default: base)")
    parser.add_argument("--language", type=some_text, default="en", metavar="L", help="language spoken (default: en)")
    parser.add_argument(
        "--windows", type=_numbers, default=[10.0], metavar="S,…", help="encoder windows in s (default: 10)"
    )
    parser.add_argument(
        "--hypotheses", type=whole_numbers(1, 100), default=[5], metavar="N,…", help="beam sizes (default: 5)"
    )
    parser.add_argument("--threads", type=whole_number(0, 256), default=0, metavar="N", help="default: all cores")
    parser.add_argument(
        "--turns",
        type=whole_numbers(0, 999_999_999),
        metavar="SEED,…",
        help="instead: join the recordings in random order, once for each seed, at speeds of 0.8 to 1.3 with pauses of 0.1 to "
        "0.7 s, and count the words that are lost, doubled and wrong, with faster-whisper's transcribe beside it",
    )
    parser.add_argument("--long-pauses", action="store_true", help="with --turns: some pauses of 2 to 12 s")
    parser.add_argument("--live", action="store_true", help="with --turns: also a live run at real pace")
    parser.add_argument("--json", type=some_path, metavar="FILE", help="also write all results and transcripts as JSON")


def _numbers(text: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a list of numbers such as 10,30") from None


def run(options: argparse.Namespace) -> int:
    config = AsrConfig(model=options.asr, threads=options.threads)
    clips = [clip for folder in options.folders for clip in clips_in(folder)]
    if options.turns is not None:
        return _turns(clips, config, options)
    rows = rows_for(config, options.language, options.windows, options.hypotheses)
    for number, clip in enumerate(clips):
        for i in range(len(rows)):  # start with another row on each recording
            rows[(number + i) % len(rows)].score(clip, options.language)
    print(as_text(rows, clips))
    if options.json:
        options.json.write_text(json.dumps([row.record() for row in rows], ensure_ascii=False, indent=1), "utf-8")
    return 0


def _turns(clips: Sequence[Clip], asr: AsrConfig, options: argparse.Namespace) -> int:
    from .quick_turns import as_text, counted, joined_clips

    languages = LanguageConfig(options.language, options.language)
    speech = [(_spoken(clip), clip.text) for clip in clips if clip.segments]
    turns = [joined_clips(speech, seed, long=options.long_pauses) for seed in options.turns]
    counts = counted(turns, PipelineConfig(languages=languages, asr=asr), live=options.live)
    print(as_text(counts, len(turns)))
    if options.json:
        options.json.write_text(json.dumps([vars(each) for each in counts], ensure_ascii=False, indent=1), "utf-8")
    return 0


def _spoken(clip: Clip) -> Samples:
    """The samples without silence around the speech."""
    return clip.samples[
        max(0, clip.segments[0].start_sample) : round(SAMPLE_RATE * (clip.segments[-1].speech_end_s + 0.05))
    ]


def clips_in(folder: Path) -> list[Clip]:
    """Find the recordings below a folder that have a text file, and cut them into segments."""
    paths = [path for path in sorted(folder.rglob("*")) if path.suffix.lower() in SUFFIXES]
    recordings = [path for path in paths if path.with_suffix(".txt").is_file()]
    if not recordings:
        raise UsageError(
            f"{folder} has no recording with a text file beside it; expected pairs such as talk.wav and talk.txt"
        )
    clips = []
    for path in recordings:
        samples = read_audio(path)
        clips.append(
            Clip(path, path.with_suffix(".txt").read_text("utf-8").strip(), samples, segments_of(samples, VadConfig()))
        )
    return clips


def rows_for(config: AsrConfig, language: str, windows: Sequence[float], beams: Sequence[int]) -> list[Row]:
    """Return rows: faster-whisper on recordings and segments, each window with each beam size, packed segments."""
    rows = [_peer(config, language, max(beams), whole=True), *(_peer(config, language, n, whole=False) for n in beams)]
    recognizers = {
        (w, n): WhisperRecognizer(dataclasses.replace(config, window_s=w, beam_size=n), language)
        for w in windows
        for n in beams
    }
    rows += [_by_segment(recognizer) for recognizer in recognizers.values()]
    return [*rows, _packed(recognizers[windows[0], max(beams)])]


def _by_segment(recognizer: WhisperRecognizer) -> Row:
    parts_s: dict[str, float] = {}
    config = recognizer.config

    def recognise(segment: SpeechSegment) -> Transcript:
        with _timed_parts(recognizer.engine, parts_s):
            return recognizer.transcribe([segment])[0]

    return Row(
        f"{config.window_s:g} s window, {config.beam_size} hypotheses", recognise_segment=recognise, parts_s=parts_s
    )


def _packed(recognizer: WhisperRecognizer) -> Row:
    parts_s: dict[str, float] = {}

    def recognise(clip: Clip) -> list[Transcript]:
        with _timed_parts(recognizer.engine, parts_s):
            return [transcript for group in packs(clip.segments) for transcript in recognizer.transcribe(group)]

    return Row(f"packed to {PACK_MS // 1000} s, {recognizer.config.beam_size} hypotheses", recognise, parts_s=parts_s)


@contextmanager
def _timed_parts(engine: WhisperEngine, parts_s: dict[str, float]) -> Iterator[None]:
    """Add the seconds spent in each part of the engine to ``parts_s``."""

    def watch(name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*arguments: Any, **options: Any) -> Any:
            began = time.perf_counter()
            try:
                return call(*arguments, **options)
            finally:
                spent = time.perf_counter() - began
                parts_s[name] = parts_s.get(name, 0.0) + spent
                if name == "features":  # encode calls features, so do not count it twice
                    parts_s["encode"] = parts_s.get("encode", 0.0) - spent

        return timed

    for name in _PARTS:
        setattr(engine, name, watch(name, getattr(engine, name)))
    try:
        yield
    finally:
        for name in _PARTS:
            delattr(engine, name)


def _peer(config: AsrConfig, language: str, beams: int, *, whole: bool) -> Row:
    """Return a row for faster-whisper's ``transcribe`` with its defaults, such as fallback to higher temperatures."""
    model = faster_whisper(config)

    def text_of(samples: Samples) -> str:
        segments, _ = model.transcribe(
            samples.astype("float32") / 32768.0, language=language, beam_size=beams, word_timestamps=not whole
        )  # fmt: skip
        return "".join(segment.text for segment in segments).strip()

    def recognise(clip: Clip) -> list[Transcript]:
        return [Transcript(0, 0.0, 0.0, text_of(clip.samples), language)]

    def recognise_segment(segment: SpeechSegment) -> Transcript:
        return Transcript(segment.id, segment.start_s, segment.end_s, text_of(segment.samples), language)

    name = f"faster-whisper, 30 s, {beams} hypotheses"
    return (
        Row(f"{name}, whole recordings", recognise)
        if whole
        else Row(f"{name}, segments", recognise_segment=recognise_segment)
    )


def as_text(rows: Sequence[Row], clips: Sequence[Clip]) -> str:
    """Format the results, one line per row."""
    speech_s = sum(len(s.samples) for clip in clips for s in clip.segments) / 16_000
    width = max(len(row.name) for row in rows)
    lines = [
        f"{len(clips)} recordings, {rows[0].words} words, {sum(len(c.segments) for c in clips)} segments, {speech_s:.0f} s of speech",
        f"{'':{width}}  {'wrong':>6}  {'if all':>6}  {'withheld':>8}  {'right':>5}  {'s':>7}  {'1–8 s':>7}  parts",
    ]
    for row in rows:
        parts = ", ".join(f"{name} {row.parts_s[name]:.1f}" for name in _PARTS if name in row.parts_s)
        lines.append(
            f"{row.name:{width}}  {row.wrong / max(1, row.words):6.1%}  {row.wrong_if_all / max(1, row.words):6.1%}  "
            f"{row.withheld:8}  {row.right_withheld:5}  {row.seconds:7.1f}  {f'{row.phrases_s:.1f}' if row.phrases_s else '':>7}  {parts}"
        )
    lines.append(
        "wrong: error rate; if all: error rate with withheld transcripts; right: transcripts withheld although right;"
    )
    lines.append("1–8 s: seconds for segments of that length; parts: seconds in each part of this project's recogniser")
    return "\n".join(lines)
