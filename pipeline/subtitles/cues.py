"""Sentences → cues that follow the rules: line breaks and display times. Pure.

A cue is final when it is made, before the next speech is known. So a cue that needs more time than its speech lingers,
at most as long as the rules allow. The next cue starts after it, late if necessary, and pauses let it catch up. Speech
that is longer than a cue's maximum is shown as the same cue again, without a gap.

Guarantees, in order of priority: no text is lost; cues do not overlap and keep their gap; durations are within limits;
no line is too wide and no cue has too many lines. Reading speed is kept as far as these allow.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise, zip_longest

from pipeline.events import EndOfInput, PipelineEvent
from pipeline.subtitles.lines import Lines, layout
from pipeline.subtitles.rules import SubtitleRules
from pipeline.subtitles.sentences import Sentence, SentenceBuilder
from pipeline.subtitles.text import line_limit, reading_ms, width

# No cue spans a pause of this length.
_LONG_PAUSE_S = 2.0


@dataclass(frozen=True)
class Cue:
    """One subtitle."""

    index: int
    """Counts from 1."""
    start_s: float
    """Whole milliseconds, like ``end_s``."""
    end_s: float
    lines: Lines
    """The translation's lines; empty if only the source continues."""
    source_lines: Lines = ()
    """The source's lines, in bilingual subtitles."""
    continued: bool = False
    """True if this repeats the preceding cue without a gap, because its text is still being spoken."""
    language: str = ""
    """The language of ``lines``."""


class CueBuilder:
    """Builds the cues of one language.

    A sentence too short for its own cue waits for the next one, to share a cue, if no pause follows it. If cues are already
    late, it also waits over a pause: otherwise steady short sentences would fall further and further behind.
    """

    def __init__(self, rules: SubtitleRules, language: str | None = None) -> None:
        """``language``: the target language; None takes every translation, for a stream into one language."""
        self.rules, self.language = rules, language
        self._sentences = SentenceBuilder(bilingual=rules.bilingual, language=language)
        self._waiting: Sentence | None = None
        self._count = 0
        self._end_ms = -rules.gap_ms

    def push(self, event: PipelineEvent) -> list[Cue]:
        """Take one event and return the cues it completes."""
        if isinstance(event, EndOfInput):
            return self.flush()
        sentence = self._sentences.push(event)
        if sentence is None:
            return []
        cues: list[Cue] = []
        if self._waiting is not None:
            both = self._waiting.joined(sentence)
            if sentence.start_s - self._waiting.end_s < _LONG_PAUSE_S and self._share_a_cue(both):
                self._waiting, sentence = None, both
            else:
                cues = self.flush()
        short = sentence.spoken_ms < self.rules.min_duration_ms
        late = self._end_ms + self.rules.gap_ms - 1000 * sentence.start_s > self.rules.linger_ms
        if short and (late or not sentence.before_pause):
            self._waiting = sentence
            return cues
        return cues + self._cues(sentence)

    def flush(self) -> list[Cue]:
        """The cues of a sentence that is waiting for the next one."""
        waiting, self._waiting = self._waiting, None
        return self._cues(waiting) if waiting else []

    def _share_a_cue(self, sentence: Sentence) -> bool:
        return sentence.spoken_ms <= self.rules.max_duration_ms and len(self._blocks(sentence)) == 1

    def _blocks(self, sentence: Sentence) -> list[tuple[Lines, Lines]]:
        """The lines of each cue: translation and source."""
        rules = self.rules
        spoken_ms = sentence.spoken_ms
        # Speech longer than a cue's maximum duration is split into several cues where the text allows it.
        widest: float | None = None
        if spoken_ms > rules.max_duration_ms:
            # No cue narrower than half a line.
            least = line_limit(sentence.text, rules) / 2
            widest = max(least, width(sentence.text) * rules.max_duration_ms / spoken_ms)
        texts = layout(sentence.text, rules, widest=widest, seams=sentence.seams)
        if not (rules.bilingual and sentence.source):
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
            # The next cue of the same sentence is known: leave its gap.
            natural_ms = over_ms - (rules.gap_ms if n + 1 < len(blocks) else 0)
            needed_ms = reading_ms("".join(lines or source_lines), rules)
            end_ms = min(max(natural_ms, start_ms + needed_ms), over_ms + rules.linger_ms)
            end_ms = max(end_ms, start_ms + rules.min_duration_ms)
            times = self._parts_ms(start_ms, end_ms, natural_ms)
            for part, (from_ms, to_ms) in enumerate(pairwise(times)):
                self._count += 1
                self._end_ms = to_ms
                cues.append(
                    Cue(self._count, from_ms / 1000, to_ms / 1000, lines, source_lines, part > 0, self.language or "")
                )
        return cues

    def _parts_ms(self, start_ms: int, end_ms: int, spoken_until_ms: int) -> list[int]:
        """The start of each cue that shows a text from ``start_ms`` to ``end_ms``, then the end of the last one."""
        most, least = self.rules.max_duration_ms, self.rules.min_duration_ms
        if end_ms - start_ms <= most:
            return [start_ms, end_ms]
        # Repeat a cue while it is being spoken, not while it is only being read. A blank screen shorter than the
        # shortest cue disturbs less than a repeated cue.
        spoken_ms = spoken_until_ms - start_ms
        parts = math.ceil(spoken_ms / most)
        if spoken_ms - most < least or spoken_ms // parts < least:
            return [start_ms, start_ms + most]
        return [start_ms + spoken_ms * part // parts for part in range(parts + 1)]


def _shares_ms(sentence: Sentence, blocks: list[tuple[Lines, Lines]]) -> list[int]:
    """When the text of each block begins to be said, then when the last one ends.

    A block's share of the text's width is its share of the words said.
    """
    shares = [width("".join(lines or source_lines)) for lines, source_lines in blocks]
    total = max(1, sum(shares))
    inner = [sentence.begin_at(sum(shares[:n]) / total) for n in range(1, len(shares))]
    return [round(1000 * time_s) for time_s in (sentence.start_s, *inner, max(sentence.start_s, sentence.end_s))]
