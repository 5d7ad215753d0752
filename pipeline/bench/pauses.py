"""Measure what pauses inside sentences cost: translations with and without a pause, compared by chrF.

Sentences are cut out of recordings of speech. A pause of 0.6, 1.0 or 1.4 s is put into each, at a real gap between two
words: after a comma in half of the sentences, inside a clause in the others. Both are translated, in two modes: as
recordings (recognised in windows of several segments) and as live speech, each with and without the assembler that
joins a sentence over its pauses. The reference is the translation of the sentence without the pause.

Recogniser and translator sometimes give another text after any small change of the audio. To tell how much of the loss
comes from that, each sentence is also translated with 0.3 s of noise before it, and no pause.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import aclosing
from dataclasses import asdict, dataclass, replace
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline.apps.cli import some_path, whole_number
from pipeline.apps.options import add_model_arguments, configured
from pipeline.apps.outputs import SUFFIXES
from pipeline.apps.translate import for_recordings
from pipeline.audio.recording import read_audio
from pipeline.audio.source import CHUNK_SAMPLES
from pipeline.bench.asr import packs
from pipeline.bench.errors import edits, units
from pipeline.bench.pause_material import Gap, at_clause, gaps, inside_sentence, sentences_in, shifted, with_pause
from pipeline.bench.target import only_target
from pipeline.bench.vad import segments_of
from pipeline.config import PipelineConfig
from pipeline.errors import UsageError
from pipeline.events import SAMPLE_RATE, PipelineEvent, Samples, SourceSentence, SpeechSegment, Translation, Word
from pipeline.languages import sets_sentences_apart
from pipeline.names import escaped
from pipeline.nmt.compiler.chrf import chrf

if TYPE_CHECKING:
    from pipeline.loading import Models

PAUSES_S = (0.6, 1.0, 1.4)
# Minimum number of words in a sentence: two on either side of the pause.
_FEWEST_WORDS = 4
_SHIFT_S = 0.3
_MODES = ("recording", "live")
_SHIFTED = "shifted"
_ASSEMBLER = ("off", "on")


@dataclass(frozen=True, eq=False)
class Broken:
    """A spoken sentence, without and with a pause."""

    name: str
    whole: Samples
    broken: Samples
    pause_s: float
    comma: bool
    """Whether the pause is after a comma or another clause mark."""
    heard: str
    """The sentence as recognised in the whole recording, with | at the pause."""


@dataclass(frozen=True)
class Texts:
    """The recognised and the translated text of one spoken sentence."""

    sources: tuple[str, ...]
    """The recognised sentences as they were translated."""
    targets: tuple[str, ...]
    """Their translations."""


@dataclass(frozen=True)
class Result:
    """A sentence with a pause, compared with the same without."""

    name: str
    mode: str
    assembler: str
    pause_s: float
    comma: bool
    heard: str
    whole: Texts
    broken: Texts
    score: float
    """chrF of the translation with the pause, against the one without."""
    source_errors: int
    """Edit distance of the recognised texts in characters, with case and punctuation."""
    letter_errors: int
    """The same without case and punctuation."""
    characters: int
    """Length of the recognised text without the pause."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folders", nargs="+", type=some_path, metavar="FOLDER", help="folder of recordings of speech")
    add_model_arguments(parser)
    parser.add_argument(
        "--count", type=whole_number(1, 100_000), default=100, metavar="N", help="sentences, at most (default: 100)"
    )
    parser.add_argument(
        "--mode", type=_some_of(_MODES), default=_MODES, metavar="M,…", help="recording, live (default: both)"
    )
    parser.add_argument(
        "--assembler", type=_some_of(_ASSEMBLER), default=_ASSEMBLER, metavar="A,…",
        help="off translates each segment by itself, on joins sentences over pauses (default: both)",
    )  # fmt: skip
    parser.add_argument("--json", type=some_path, metavar="FILE", help="also write each result as a line of JSON")


def _some_of(allowed: Sequence[str]) -> Any:
    def parsed(text: str) -> tuple[str, ...]:
        found = tuple(part.strip() for part in text.split(","))
        if not set(found) <= set(allowed):
            raise argparse.ArgumentTypeError(f"{text!r} is not a list of {', '.join(allowed)}")
        return tuple(name for name in allowed if name in found)

    return parsed


def run(options: argparse.Namespace) -> int:
    from pipeline.loading import load_models

    config = configured(options)
    only_target(config)
    if options.json and not options.json.parent.is_dir():
        raise UsageError(f"the folder {options.json.parent} of --json does not exist; create it, or choose another")
    paths = recordings_in(options.folders)
    models = load_models(config)
    pairs = list(spoken_pairs(paths, models, config, options.count))
    if not pairs:
        raise UsageError(
            f"no sentence with a gap between two words was found in {len(paths)} recordings; give recordings of one "
            "speaker at a time without noise, in the source language"
        )
    results = []
    for number, pair in enumerate(pairs, 1):
        print(f"{number} of {len(pairs)}: {escaped(pair.name)}", file=sys.stderr, flush=True)
        results += asyncio.run(compare(pair, config, models, options.mode, options.assembler))
    print(as_text(results))
    if options.json:
        lines = (json.dumps(asdict(result), ensure_ascii=False) for result in results)
        options.json.write_text("\n".join(lines) + "\n", "utf-8")
    return 0


def recordings_in(folders: Iterable[Path]) -> list[Path]:
    """The recordings below the folders, by name.

    Raises:
        UsageError: there are none.
    """
    paths = [path for folder in folders for path in sorted(folder.rglob("*")) if path.suffix.lower() in SUFFIXES]
    if not paths:
        raise UsageError(f"no recordings in {', '.join(map(str, folders))}; give folders of recordings of speech")
    return paths


def spoken_pairs(paths: Iterable[Path], models: Models, config: PipelineConfig, count: int) -> Iterator[Broken]:
    """Sentences with a pause put in, at most ``count``. Sentences without a gap are left out.

    Pauses after commas and inside clauses are kept equally frequent. In each of the two groups, the lengths of the pause
    are used in turn.
    """
    taken: Counter[bool] = Counter()
    language = config.languages.source
    for path in paths:
        samples = read_audio(path)
        for number, (whole, words) in enumerate(sentences_in(samples, recognised(samples, models, config), language)):
            for gap in candidates(whole, words, prefer_comma=taken[True] <= taken[False]):
                if words_stay_whole(whole, words, gap, models, language):
                    break
            else:
                continue
            comma = at_clause(words, gap)
            pause_s = PAUSES_S[taken[comma] % len(PAUSES_S)]
            taken[comma] += 1
            name = f"{path.parent.name}/{path.stem}" + (f"#{number}" if number else "")
            heard = "".join(word.text + " |" * (i == gap.after) for i, word in enumerate(words)).strip()
            yield Broken(name, whole, with_pause(whole, gap, pause_s), pause_s, comma, heard)
            if taken.total() == count:
                return


def recognised(samples: Samples, models: Models, config: PipelineConfig) -> list[Word]:
    """The words of a recording, recognised in windows of several segments; none if a part is withheld."""
    words: list[Word] = []
    for pack in packs(segments_of(samples, config.vad)):
        for transcript in models.recognizer.transcribe_packed(pack):
            if transcript.rejected is not None or not transcript.words:
                return []
            first, *others = transcript.words
            space = " " if words and sets_sentences_apart(transcript.language) else ""
            words += [replace(first, text=space + first.text.lstrip()), *others]
    return words


def candidates(samples: Samples, words: Sequence[Word], *, prefer_comma: bool) -> list[Gap]:
    """The gaps inside a sentence: those of the preferred kind first, the longest first."""
    if len(words) < _FEWEST_WORDS:
        return []
    found = [gap for gap in gaps(samples, words) if inside_sentence(words, gap)]
    return sorted(found, key=lambda gap: (at_clause(words, gap) is not prefer_comma, gap.begin - gap.end))


def words_stay_whole(samples: Samples, words: Sequence[Word], gap: Gap, models: Models, language: str) -> bool:
    """Whether the words on either side of a gap are recognised in the two parts as in the whole.

    If not, the gap is inside a word: word times may err by a syllable, and the closure of a consonant is silent, too. Other
    words may be recognised differently, because that is part of the measured loss.
    """
    texts = [
        units(models.recognizer.transcribe(SpeechSegment(0, 0, part)).text, language)
        for part in (samples[: gap.middle], samples[gap.middle :])
    ]
    before, after = (units(words[at].text, language) for at in (gap.after, gap.after + 1))
    return texts[0][-1:] == before[-1:] and texts[1][:1] == after[:1]


async def compare(
    pair: Broken, config: PipelineConfig, models: Models, modes: Sequence[str], assembler: Sequence[str]
) -> list[Result]:
    """Translate a sentence without the pause as a recording, the same with noise before it, and with the pause in each
    way."""
    usual = variant(config, "recording", "on")
    whole = await translated(pair.whole, usual, models, live=False)
    later = await translated(shifted(pair.whole, _SHIFT_S), usual, models, live=False)
    found = [compared(pair, _SHIFTED, "on", whole, later, config)]
    for mode, state in product(modes, assembler):
        broken = await translated(pair.broken, variant(config, mode, state), models, live=mode == "live")
        found.append(compared(pair, mode, state, whole, broken, config))
    return found


def variant(config: PipelineConfig, mode: str, assembler: str) -> PipelineConfig:
    """The configuration of a mode, with the assembler on or off. Overload measures, which depend on the machine's speed,
    are never taken."""
    if mode == "recording":
        config = for_recordings(config)
    if assembler == "off":
        config = replace(config, sentences=replace(config.sentences, long_pause_ms=0))
    return replace(config, overload=replace(config.overload, behind_s=3_600.0, backlog_s=7_200.0))


async def translated(samples: Samples, config: PipelineConfig, models: Models, *, live: bool) -> Texts:
    """Translate audio with the whole chain, faster than real time."""
    from pipeline.translator import SpeechTranslator

    async with (
        SpeechTranslator(config, models, live=live) as translator,
        aclosing(translator.run(_InMemory(samples))) as events,
    ):
        return await texts_of(events)


async def texts_of(events: AsyncIterator[PipelineEvent]) -> Texts:
    """The sentences and translations that the events of a run carry, in order."""
    sources: list[str] = []
    targets: list[str] = []
    async for event in events:
        if isinstance(event, SourceSentence):
            sources.append(event.text)
        elif isinstance(event, Translation):
            targets.append(event.text.strip())
    return Texts(tuple(sources), tuple(targets))


class _InMemory:
    """An audio source that reads from an array."""

    overflows = 0

    def __init__(self, samples: Samples) -> None:
        self.duration_s: float | None = len(samples) / SAMPLE_RATE
        self._samples, self._at = samples, 0

    def read(self) -> Samples | None:
        chunk = self._samples[self._at : self._at + CHUNK_SAMPLES]
        self._at += len(chunk)
        return chunk if len(chunk) else None

    def close(self) -> None:
        self._at = len(self._samples)


def compared(pair: Broken, mode: str, assembler: str, whole: Texts, broken: Texts, config: PipelineConfig) -> Result:
    """Score the texts of a sentence with a pause against those without."""
    source, target = config.languages.source, only_target(config)
    expected, found = _joined(whole.sources, source), _joined(broken.sources, source)
    return Result(
        pair.name, mode, assembler, pair.pause_s, pair.comma, pair.heard, whole, broken,
        score=chrf([_joined(broken.targets, target)], [_joined(whole.targets, target)]),
        source_errors=edits(expected, found),
        letter_errors=edits(" ".join(units(expected, source)), " ".join(units(found, source))),
        characters=len(expected),
    )  # fmt: skip


def _joined(texts: Sequence[str], language: str) -> str:
    return (" " if sets_sentences_apart(language) else "").join(texts)


def as_text(results: Sequence[Result]) -> str:
    """Format the mean scores: a line per mode and state of the assembler, and the ratio of the losses."""
    pairs = {result.name: result for result in results}.values()
    commas = sum(result.comma for result in pairs)
    lines = [
        f"{len(pairs)} sentences with a pause: {commas} after a comma, {len(pairs) - commas} inside a clause",
        f"{'':24}{'chrF':>6}{'loss':>7}" + "".join(f"{f'{s:g} s':>8}" for s in PAUSES_S)
        + f"{'comma':>8}{'clause':>8}{'same':>7}{'sent.':>7}{'source':>8}{'letters':>9}",
    ]  # fmt: skip
    ways = dict.fromkeys((result.mode, result.assembler) for result in results)
    for mode, assembler in ways:
        lines.append(_row(mode, assembler, [r for r in results if (r.mode, r.assembler) == (mode, assembler)]))
    for mode in dict.fromkeys(mode for mode, _ in ways):
        if {(mode, "off"), (mode, "on")} <= ways.keys():
            before, after = (loss(r for r in results if (r.mode, r.assembler) == (mode, state)) for state in _ASSEMBLER)
            lines.append(
                f"{mode}: loss with the assembler on / off: {after / before:.2f}" if before else f"{mode}: no loss"
            )
    return "\n".join([*lines, *_LEGEND])


_LEGEND = (
    "chrF: mean over sentences, of the translation with the pause against the one without; loss: 100 - chrF, also for",
    "each length and place of the pause; same: translations that are equal; sent.: sentences that one became;",
    "source: errors of the recognised text against the one without the pause, in characters; letters: the same without",
    f"case and punctuation; shifted: without a pause, but with {_SHIFT_S:g} s of noise before the sentence",
)


def loss(results: Iterable[Result]) -> float:
    """100 less the mean score; nan without results."""
    scores = [result.score for result in results]
    return 100 - sum(scores) / len(scores) if scores else float("nan")


def _row(mode: str, assembler: str, results: Sequence[Result]) -> str:
    def share(counts: Iterable[int]) -> str:
        return f"{sum(counts) / max(1, sum(result.characters for result in results)):.1%}"

    parts = [loss(r for r in results if r.pause_s == pause_s) for pause_s in PAUSES_S]
    parts += [loss(r for r in results if r.comma is comma) for comma in (True, False)]
    same = sum(result.whole.targets == result.broken.targets for result in results)
    return (
        f"{f'{mode}, assembler {assembler}':24}{100 - loss(results):6.1f}{loss(results):7.1f}"
        + "".join(f"{part:8.1f}" for part in parts)
        + f"{same / len(results):7.0%}{sum(len(r.broken.sources) for r in results) / len(results):7.2f}"
        + f"{share(r.source_errors for r in results):>8}{share(r.letter_errors for r in results):>9}"
    )
