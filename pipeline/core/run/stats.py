"""Counters and timings of one run, readable by an embedding app while it runs."""

from __future__ import annotations

import itertools
import statistics
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from ..events import (
    SAMPLE_RATE,
    EndOfInput,
    PipelineEvent,
    SourceSentence,
    SpeechSegment,
    TargetText,
    Transcript,
    Translation,
)

_MAX_WAITING = 1000  # segments between the VAD and the reader; the queues hold far fewer
_MAX_WITHHELD = 1000  # the newest withheld passages are kept
_NAMED_TERMS = 5  # missed most often, in the summary


@dataclass(frozen=True)
class Withheld:
    """A passage that was recognised as speech, but is not shown."""

    start_s: float
    end_s: float
    reason: str
    """``Transcript.rejected``, or "repetition" if only a part was cut; "not translated into …" if that failed."""


@dataclass
class _Pending:
    """A segment on its way from the VAD to the reader."""

    closed_at: float
    end_s: float
    """Audio consumed by the VAD when the segment was cut."""
    heard_s: float
    start_s: float
    waiting: bool = True
    """Whether its first target token is still to come."""


@dataclass
class PipelineStats:
    """Times are in seconds. Memory is bounded: only the newest 1,000 latencies are kept."""

    audio_samples: int = 0
    """Audio consumed by the VAD."""
    received_samples: int = 0
    """Audio fed, including audio that still waits for the VAD."""
    backlog_s: Callable[[], float] = lambda: 0.0
    """Seconds of audio that a live source holds because the stages are behind."""
    segments: int = 0
    undrafted: int = 0
    """Segments without drafts, while behind, that are long enough for one."""
    overflows: int = 0
    """How often the audio source lost audio because it was not read in time."""
    lost_s: float = 0.0
    """Audio lost because the backlog was full or, if known, by the device. Silence replaced it."""
    reconnections: int = 0
    """How often the microphone was lost and came back."""
    load_level: int = 0
    """Level of the measures that are taken against overload, from 0; see ``pipeline.core.run.overload``."""
    longest_lag_s: float = 0.0
    drafts: int = 0
    """How often speech in progress was recognised."""
    rejected: int = 0
    """Rejected transcripts, which are not translated."""
    withheld_s: dict[str, float] = field(default_factory=dict)
    """Seconds of audio, by reason, of which nothing or only a part is shown."""
    withheld: deque[Withheld] = field(default_factory=lambda: deque(maxlen=_MAX_WITHHELD))
    """The newest withheld passages."""
    withheld_count: int = 0
    failures: dict[str, str] = field(default_factory=dict)
    """Stage → why its newest failed call failed, which cost a segment or a sentence."""
    sentences: int = 0
    uncertain: int = 0
    """Sentences that may be misheard."""
    terms: int = 0
    """Terms of the glossary in what was said."""
    corrected: int = 0
    """Terms of the glossary that were misheard and corrected."""
    tokens: int = 0
    translated_terms: int = 0
    """Terms of the glossary in translated sentences, for each language."""
    instead: int = 0
    """Translations of the local translator instead of that of ``nmt.url``."""
    doubtful: int = 0
    """Translations that are marked as doubtful."""
    missed_terms: Counter[str] = field(default_factory=Counter)
    """How often each of them has no accepted translation in the text."""
    appended_otherwise: int = 0
    """Words of final text that protocols of deltas, which take nothing back, have sent otherwise, or not."""
    busy_s: dict[str, float] = field(default_factory=dict)
    """Working time of each stage."""
    calls: dict[int, tuple[str, str]] = field(default_factory=dict)
    """Calls of models in progress: the stage of each and its target language, or "", by number."""
    load_s: float = 0.0
    started: float = field(default_factory=time.perf_counter)
    first_token_s: deque[float] = field(default_factory=lambda: deque(maxlen=1000))
    """Seconds from when a segment was cut to its first target token, for the newest segments."""
    clock: Callable[[], float] = time.perf_counter
    languages: set[str] = field(default_factory=set)
    """The languages that are translated into. Empty: those that translations came in."""
    lost_languages: dict[str, str] = field(default_factory=dict)
    """Languages that are no longer translated into, and why."""
    _pending: dict[int, _Pending] = field(default_factory=dict)
    """Segments that are not yet completely translated and read, oldest first."""
    _translated_s: dict[str, float] = field(default_factory=dict)
    """Seconds of audio heard of which everything is translated, by language."""
    _first_audio: float | None = None
    _numbers: Iterator[int] = field(default_factory=itertools.count, repr=False, compare=False)
    _counting: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)

    @property
    def audio_s(self) -> float:
        return self.audio_samples / SAMPLE_RATE

    @property
    def stream_s(self) -> float:
        """Wall-clock time since the first sample was spoken; 0 before any audio."""
        return 0.0 if self._first_audio is None else self.clock() - self._first_audio

    @property
    def lag_s(self) -> float:
        """Seconds of audio by which the reader is behind the speaker.

        Measured from the end of the oldest segment that is not yet completely translated and read or, if there is none,
        from the oldest audio that the VAD has not seen. A segment in progress does not count, nor does a recording that
        is read faster than real time.
        """
        return self.age_s(min((each.end_s for each in self._pending.values()), default=self.audio_s))

    @property
    def ahead_s(self) -> float:
        """Seconds by which the audio that has come is longer than the time since its first sample.

        Above 0: audio comes faster than real time. May be called on any thread.
        """
        return self._heard_s - self.stream_s

    @property
    def _heard_s(self) -> float:
        return self.received_samples / SAMPLE_RATE + self.backlog_s()

    def age_s(self, spoken_s: float) -> float:
        """Seconds since the audio before ``spoken_s`` was spoken; 0 for that of a recording read faster than real time.

        May be called on any thread.
        """
        return max(0.0, min(self._heard_s, self.stream_s) - spoken_s)

    @contextmanager
    def busy(self, stage: str, target: str = "") -> Iterator[None]:
        """Count the time inside the block as working time of ``stage``. May be called on several threads at once."""
        began, call = self.clock(), next(self._numbers)
        self.calls[call] = stage, target
        try:
            yield
        finally:
            spent = self.clock() - began
            del self.calls[call]
            with self._counting:  # a new dictionary: another thread may be reading the old one
                self.busy_s = self.busy_s | {stage: self.busy_s.get(stage, 0.0) + spent}

    def received(self, samples: int) -> None:
        """Count audio that was fed; negative if feeding it was cancelled."""
        if self._first_audio is None:
            self._first_audio = self.clock() - samples / SAMPLE_RATE
        self.received_samples += samples

    def spoken_from(self, at_s: float) -> None:
        """The first sample was spoken at ``at_s`` by ``clock``, if that is before it could be known here."""
        self._first_audio = at_s if self._first_audio is None else min(self._first_audio, at_s)

    def segment_closed(self, segment: SpeechSegment) -> None:
        self.segments += 1
        self._pending[segment.id] = _Pending(self.clock(), self.audio_s, segment.heard_s, segment.start_s)
        if len(self._pending) > _MAX_WAITING:  # bounded even if ``delivered`` is never called
            del self._pending[next(iter(self._pending))]

    def grouped(self, segment: SpeechSegment) -> None:
        """A segment waits for its group to close. That is no lag: it may wait."""
        self._pending.pop(segment.id, None)

    def group_closed(self, group: Iterable[SpeechSegment], heard_s: float) -> None:
        """A group has closed, as audio until ``heard_s`` shows: it is late from now on."""
        for segment in group:
            self._pending[segment.id] = _Pending(self.clock(), heard_s, segment.heard_s, segment.start_s)

    def transcribed(self, transcript: Transcript) -> None:
        """Count a recognised segment and what is missing in its text."""
        for stretch in transcript.missing:
            self.not_shown(stretch.start_s, stretch.end_s, stretch.reason)
        reason = transcript.rejected or ("repetition" if transcript.repeated else None)
        if reason is None:
            return
        self.not_shown(transcript.start_s, transcript.end_s, reason)
        if transcript.rejected:
            self.rejected += 1

    def not_shown(self, start_s: float, end_s: float, reason: str) -> None:
        """Count a passage of which nothing or only a part is shown."""
        self.withheld_s[reason] = self.withheld_s.get(reason, 0.0) + end_s - start_s
        self.withheld_count += 1
        self.withheld.append(Withheld(start_s, end_s, reason))

    def token(self, heard_s: float) -> None:
        """A target token was made, from what was heard until ``heard_s``."""
        self.tokens += 1
        for segment in self._pending.values():
            if segment.waiting and segment.heard_s <= heard_s:
                segment.waiting = False
                self.first_token_s.append(self.clock() - segment.closed_at)

    def translated(self, language: str, heard_s: float) -> None:
        """Everything heard until ``heard_s`` is translated into ``language``, and the reader has it."""
        self._translated_s[language] = max(heard_s, self._translated_s.get(language, 0.0))
        self._settle()

    def _settle(self) -> None:
        """Forget the segments that are translated into every language."""
        languages = self.languages or set(self._translated_s)
        done_s = min((self._translated_s.get(language, -1.0) for language in languages), default=-1.0)
        self._forget(lambda segment: segment.heard_s <= done_s)

    def _forget(self, done: Callable[[_Pending], bool]) -> None:
        for segment_id in [number for number, segment in self._pending.items() if done(segment)]:
            del self._pending[segment_id]

    def language_lost(self, language: str, reason: str) -> None:
        """The translation into a language has failed; the others go on."""
        self.languages.discard(language)
        self.lost_languages[language] = reason
        self._settle()

    def delivered(self, event: PipelineEvent) -> None:
        """The reader has taken ``event``: segments that it completes no longer count towards the lag."""
        if isinstance(event, EndOfInput):
            self._pending.clear()
        elif isinstance(event, Transcript):
            if event.rejected is not None or not event.text.strip():
                self._pending.pop(event.segment_id, None)
                # Those before it that were recognised with it have no transcript of their own.
                self._forget(lambda segment: event.start_s <= segment.start_s < event.end_s)
        elif isinstance(event, SourceSentence):
            self.terms += len(event.terms)
            self.corrected += sum(bool(word.heard) for word in event.words)
            self.uncertain += event.uncertain
        elif isinstance(event, Translation) or (isinstance(event, TargetText) and event.complete):
            self.translated(event.language, event.heard_s)

    def withheld_summary(self, named: int = 10) -> str:
        """Total seconds withheld, and times and reasons of the newest ``named`` passages; empty if there are none."""
        if not self.withheld_s:
            return ""
        total_s = sum(self.withheld_s.values())
        newest = list(self.withheld)[-named:]
        times = ", ".join(f"{passage.reason} {_clock(passage.start_s)}–{_clock(passage.end_s)}" for passage in newest)
        more = self.withheld_count - len(newest)
        return f"{total_s:.1f} s: {times}" + (f", and {more} more before" if more else "")

    def summary(self) -> str:
        """A report for the end of a run: one line, and one more for each thing that a user should know."""
        elapsed = self.clock() - self.started
        speed = self.audio_s / max(elapsed, 1e-9)
        sentences = "1 sentence" if self.sentences == 1 else f"{self.sentences} sentences"
        lines = [f"{self.audio_s:.1f} s of audio in {elapsed:.1f} s ({speed:.1f} times real time), {sentences}"]
        if self.terms:
            lines.append(f"{self.terms} terms of the glossary heard, {self.corrected} of them corrected")
        if self.uncertain:
            lines.append(f"sentences that may be misheard, marked as uncertain: {self.uncertain}")
        if withheld := self.withheld_summary():
            lines.append(f"heard and not shown, {withheld}")
        lines += [
            f"the {stage} stage failed at times, the last time with: {why}" for stage, why in self.failures.items()
        ]
        if self.translated_terms:
            missed = self.missed_terms.total()
            named = ", ".join(name for name, _ in self.missed_terms.most_common(_NAMED_TERMS))
            of_these = f"; missed {missed}: {named}" if missed else ""
            lines.append(
                f"{self.translated_terms - missed} of {self.translated_terms} terms translated as given{of_these}"
            )
        if self.instead:
            lines.append(f"{self.instead} translations are local, because the server of nmt.url gave none")
        if self.doubtful:
            lines.append(
                f"texts without a translation, because there is no translator from their language: {self.doubtful}"
            )
        if self.appended_otherwise:
            lines.append(f"{self.appended_otherwise} words were sent in deltas otherwise than in the final text")
        if self.overflows or self.lost_s:
            lines.append(f"audio was lost {self.overflows} times: this machine does not keep up")
        return "\n".join(lines)

    def details(self) -> str:
        """What the stages did and how long it took, a few lines."""
        stages = ", ".join(f"{name} {spent:.2f} s" for name, spent in self.busy_s.items())
        lines = [
            f"{self.segments} segments, {self.rejected} not translated, {self.tokens} tokens; models loaded in "
            f"{self.load_s:.2f} s; time in stages: {stages or 'none'}"
        ]
        if self.first_token_s:
            lines.append(
                f"first token after a segment's end: median {statistics.median(self.first_token_s):.2f} s, "
                f"longest {max(self.first_token_s):.2f} s"
            )
        if self.longest_lag_s:
            lines.append(
                f"lag: {self.longest_lag_s:.1f} s at most; {self.undrafted} segments without drafts to keep up"
            )
        return "\n".join(lines)


def _clock(seconds: float) -> str:
    whole = int(seconds)
    return f"{whole // 3600}:{whole // 60 % 60:02}:{whole % 60:02}"
