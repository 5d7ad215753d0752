"""Sentences → cues that keep the rules: how each is broken, and when it stands on the screen. Pure.

A cue is written when it is made and never changed after, and what will be said next is not known then. So a cue that
needs longer than its speech lingers, at most as long as the rules allow; the next one starts after it, late if it must,
and pauses let it catch up. Where speech goes on for longer than a cue may stand, the cue is shown again, without a gap.

What always holds, in this order: no text is lost, cues do not overlap and keep their gap, none is shorter or longer than
allowed, no line is too wide and no cue has a line too many. Reading speed is kept as far as these leave room.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise, zip_longest

from pipeline.events import Delta, EndOfInput, PipelineEvent
from pipeline.subtitles.lines import Lines, layout
from pipeline.subtitles.rules import SubtitleRules
from pipeline.subtitles.sentences import Sentence, SentenceBuilder
from pipeline.subtitles.text import line_limit, reading_ms, width


@dataclass(frozen=True)
class Cue:
    """One subtitle."""

    index: int
    """From 1."""
    start_s: float
    """Whole milliseconds, as ``end_s`` is."""
    end_s: float
    lines: Lines
    """Of the translation; none where only the source goes on."""
    source_lines: Lines = ()
    """Of the source, in bilingual subtitles."""
    continued: bool = False
    """True where this is the cue before once more, without a gap: it is still being spoken."""


class CueBuilder:
    """Makes cues of deltas.

    A sentence that is over too soon for a cue of its own waits for the next one of its segment, to share a cue with it;
    where cues are late already, for the next segment's: steadily spoken short ones would fall behind without end.
    """

    def __init__(self, rules: SubtitleRules) -> None:
        self.rules = rules
        self._sentences = SentenceBuilder(bilingual=rules.bilingual)
        self._waiting: Sentence | None = None
        self._count = 0
        self._end_ms = -rules.gap_ms

    def push(self, event: PipelineEvent) -> list[Cue]:
        """One more event; the cues that it completes."""
        if isinstance(event, EndOfInput):
            return self.flush()
        sentence = self._sentences.push(event)
        if sentence is None:  # the last of a segment may be empty, and nothing of it comes after that
            return self.flush() if isinstance(event, Delta) and event.final else []
        cues: list[Cue] = []
        if self._waiting is not None:
            both = self._waiting.joined(sentence)
            if self._share_a_cue(both):
                self._waiting, sentence = None, both
            else:
                cues = self.flush()
        short = 1000 * (sentence.end_s - sentence.start_s) < self.rules.min_duration_ms
        late = self._end_ms + self.rules.gap_ms - 1000 * sentence.start_s > self.rules.linger_ms
        if short and (late or not sentence.final):
            self._waiting = sentence
            return cues
        return cues + self._cues(sentence)

    def flush(self) -> list[Cue]:
        """The cues of a sentence that still waits for the next one."""
        waiting, self._waiting = self._waiting, None
        return self._cues(waiting) if waiting else []

    def _share_a_cue(self, sentence: Sentence) -> bool:
        spoken_ms = 1000 * (sentence.end_s - sentence.start_s)
        return spoken_ms <= self.rules.max_duration_ms and len(self._blocks(sentence)) == 1

    def _blocks(self, sentence: Sentence) -> list[tuple[Lines, Lines]]:
        """The lines of each cue, of the translation and of the source."""
        rules = self.rules
        spoken_ms = 1000 * (sentence.end_s - sentence.start_s)
        # Speech that goes on for longer than a cue may stand is shown in several, where the text has places for that.
        widest: float | None = None
        if spoken_ms > rules.max_duration_ms:
            # Less than half a line is no subtitle of its own.
            least = line_limit(sentence.text, rules) / 2
            widest = max(least, width(sentence.text) * rules.max_duration_ms / spoken_ms)
        texts = layout(sentence.text, rules, widest=widest, seams=sentence.seams)
        if not rules.bilingual:
            return [(lines, ()) for lines in texts]
        sources = layout(sentence.source, rules)
        if len(sources) > len(texts):
            texts = layout(sentence.text, rules, cues=len(sources), seams=sentence.seams)
        elif len(sources) < len(texts):
            sources = layout(sentence.source, rules, cues=len(texts))
        return list(zip_longest(texts, sources, fillvalue=()))

    def _cues(self, sentence: Sentence) -> list[Cue]:
        blocks = self._blocks(sentence)
        rules = self.rules
        cues: list[Cue] = []
        for n, (said_ms, over_ms) in enumerate(pairwise(_shares_ms(sentence, blocks))):
            lines, source_lines = blocks[n]
            start_ms = max(said_ms, self._end_ms + rules.gap_ms)
            # Within a sentence the next cue is known: leave it its gap.
            natural_ms = over_ms - (rules.gap_ms if n + 1 < len(blocks) else 0)
            needed_ms = reading_ms("".join(lines or source_lines), rules)
            end_ms = min(max(natural_ms, start_ms + needed_ms), over_ms + rules.linger_ms)
            end_ms = max(end_ms, start_ms + rules.min_duration_ms)
            times = self._parts_ms(start_ms, end_ms, natural_ms)
            for part, (from_ms, to_ms) in enumerate(pairwise(times)):
                self._count += 1
                self._end_ms = to_ms
                cues.append(Cue(self._count, from_ms / 1000, to_ms / 1000, lines, source_lines, part > 0))
        return cues

    def _parts_ms(self, start_ms: int, end_ms: int, spoken_until_ms: int) -> list[int]:
        """When the cues begin that show a text from ``start_ms`` to ``end_ms``, and when the last one ends."""
        most, least = self.rules.max_duration_ms, self.rules.min_duration_ms
        if end_ms - start_ms <= most:
            return [start_ms, end_ms]
        # What is still being spoken stays; what is only still being read does not. An empty screen for less than the
        # shortest cue disturbs less than a cue that comes again.
        spoken_ms = spoken_until_ms - start_ms
        parts = math.ceil(spoken_ms / most)
        if spoken_ms - most < least or spoken_ms // parts < least:
            return [start_ms, start_ms + most]
        return [start_ms + spoken_ms * part // parts for part in range(parts + 1)]


def _shares_ms(sentence: Sentence, blocks: list[tuple[Lines, Lines]]) -> list[int]:
    """When the speech of each block begins, and when the last one's ends: by the width of its text."""
    shares = [width("".join(lines or source_lines)) for lines, source_lines in blocks]
    start_ms, duration_ms = 1000 * sentence.start_s, 1000 * max(0.0, sentence.end_s - sentence.start_s)
    total = max(1, sum(shares))
    return [round(start_ms + duration_ms * sum(shares[:n]) / total) for n in range(len(shares) + 1)]
