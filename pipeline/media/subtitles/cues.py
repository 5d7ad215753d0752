"""Sentences → cues that follow the rules: line breaks and display times. Pure.

A cue is final when it is made, before the next speech is known. So a cue that needs more time than its speech lingers,
at most as long as the rules allow. The next cue starts after it, late if necessary, and pauses let it catch up. The cues of
a sentence share its time by what each takes to read, in the language that takes longer. Speech that is longer than a cue's
maximum is shown in several cues where its text has places to break; else its only cue ends before it.

Guarantees, in order of priority: no text is lost; cues do not overlap and keep their gap; durations are within limits;
no line is too wide and no cue has too many lines. Reading speed is kept as far as these allow.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise, zip_longest

from ...core import EndOfInput, PipelineEvent
from .lines import Lines, layout
from .rules import SubtitleRules
from .sentences import Sentence, SentenceBuilder
from .text import line_limit, reading_ms, width

# No cue spans a pause of this length.
_LONG_PAUSE_S = 2.0
# How much wider than the mean one of several bilingual cues may be, to end with a clause.
_UNEVEN = 1.25


@dataclass(frozen=True)
class Cue:
    """One subtitle."""

    index: int
    """Number of the cue, from 1."""
    start_s: float
    """The begin in seconds, in whole milliseconds, like ``end_s``."""
    end_s: float
    lines: Lines
    """The translation's lines; empty if only the source continues."""
    source_lines: Lines = ()
    """The source's lines, in bilingual subtitles."""
    language: str = ""
    """The language of ``lines``."""
    speaker: str | None = None
    """The speaker's name; None if unknown."""
    source_language: str = ""
    """The language of ``source_lines``."""


class CueBuilder:
    """Builds the cues of one language.

    A sentence too short for its own cue waits for the next one, to share a cue, if no pause follows it. If cues are already
    late, it also waits over a pause: otherwise steady short sentences would fall further and further behind. A cue has one
    speaker.
    """

    def __init__(self, rules: SubtitleRules, language: str | None = None, *, named: bool = False) -> None:
        """``language``: the target language; None takes every translation, for a stream into one language.

        ``named``: for formats without a field for it, the speaker's name is in the text where the speaker changes.
        """
        self.rules, self.language = rules, language
        self._sentences = SentenceBuilder(
            bilingual=rules.bilingual, language=language, named=named, marked=rules.mark_uncertain
        )
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
            near = sentence.start_s - self._waiting.end_s < _LONG_PAUSE_S
            same = near and sentence.speaker == self._waiting.speaker
            if same and both.spoken_ms <= self.rules.max_duration_ms and len(self._blocks(both)) == 1:
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
        if (count := max(len(sources), len(texts))) > 1:
            # Of similar widths: cues that are long in one language and short in the other need more time than the speech.
            most, source_most = (_UNEVEN * width(text) / count for text in (sentence.text, sentence.source))
            texts = layout(sentence.text, rules, cues=count, widest=most, seams=sentence.seams)
            sources = layout(sentence.source, rules, cues=count, widest=source_most)
        return list(zip_longest(texts, sources, fillvalue=()))

    def _cues(self, sentence: Sentence) -> list[Cue]:
        blocks = self._blocks(sentence)
        rules = self.rules
        cues: list[Cue] = []
        needs_ms = [max(reading_ms("".join(lines), rules) for lines in block) for block in blocks]
        for n, (said_ms, over_ms) in enumerate(pairwise(_shares_ms(sentence, needs_ms))):
            lines, source_lines = blocks[n]
            start_ms = max(said_ms, self._end_ms + rules.gap_ms)
            # The next cue of the same sentence is known: leave its gap.
            natural_ms = over_ms - (rules.gap_ms if n + 1 < len(blocks) else 0)
            end_ms = min(max(natural_ms, start_ms + needs_ms[n]), over_ms + rules.linger_ms)
            end_ms = max(end_ms, start_ms + rules.min_duration_ms)
            self._end_ms = min(end_ms, start_ms + rules.max_duration_ms)
            self._count += 1
            times_s = start_ms / 1000, self._end_ms / 1000
            spoken = sentence.sources[0].language if source_lines else ""
            cues.append(Cue(self._count, *times_s, lines, source_lines, self.language or "", sentence.speaker, spoken))
        return cues


def _shares_ms(sentence: Sentence, shares: list[int]) -> list[int]:
    """When the text of each cue begins to be said, then when the last one ends. ``shares``: of the sentence, in any unit."""
    total = max(1, sum(shares))
    inner = [sentence.begin_at(sum(shares[:n]) / total) for n in range(1, len(shares))]
    return [round(1000 * time_s) for time_s in (sentence.start_s, *inner, max(sentence.start_s, sentence.end_s))]
