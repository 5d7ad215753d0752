"""Recognition of the segment in progress: steady words, and a draft of the rest."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

from ...events import SpeechSegment, Transcript, Word
from ...run.options import DraftOptions
from ..context import HeardSegment
from ..recognizer import (
    DraftRecognizer,
    HearsWhole,
    RecognitionOptions,
    SharedRecognizer,
    StreamedSegments,
    check_transcripts,
)
from .agreement import Agreement, DraftSchedule, cut_after_steady, steadied, without_end

# Drafts in a row that come to nothing, until the steady words are in doubt, and what follows is heard without them. With 4 drafts a
# second, a wrong beginning has cost 8 s of text.
_MOST_UNHEARD = 2
# A probable word that one draft alone has is called steady after this share of ``steady_from_ms``; see ``Agreement.promised``.
_PROBABLE_FROM = 0.5


class Drafting:
    """The segment in progress and what has been heard in it. ``draft`` blocks."""

    def __init__(self, drafter: DraftRecognizer, options: DraftOptions, clock: Callable[[], float]) -> None:
        """``clock`` gives seconds, to find out how long a draft takes."""
        self._drafter, self._clock = drafter, clock
        self._steady_from_s = options.steady_from_ms / 1000
        self._streams = isinstance(drafter, StreamedSegments)
        self._schedule = DraftSchedule(options)
        self._agreement = Agreement(options.margin_ms / 1000)
        self._first: Transcript | None = None
        """The first draft of the segment: its language, and the marks before it."""
        self._other_marks = False  # whether other marks that the newest draft has there were left out
        self._unheard = 0  # drafts in a row that did not hear the steady words again
        self._doubtful = 0  # of the steady words, those that several drafts did not hear again
        self._without_context = False
        """True once a draft was lost with the speech before the segment as context: recognise without it."""

    def due(self, segment: SpeechSegment) -> bool:
        """Whether the segment is to be recognised now."""
        return self._schedule.due(segment)

    def missed(self, segment: SpeechSegment) -> bool:
        """Whether the segment was not recognised while in progress although it is long enough for that."""
        return self._schedule.segment != segment.start_sample and self._schedule.long_enough(segment)

    def draft(self, segment: SpeechSegment, options: RecognitionOptions) -> Transcript | None:
        """Recognise the segment in progress, without silence before it; None if what was heard cannot be used.

        The context of ``options`` is not heard again once words are steady.

        Raises DraftRefusedError: others need the recogniser more. Nothing has changed.
        """
        self._begin(segment)
        began, agreement, stable = self._clock(), self._agreement, None
        options = replace(options, expected="".join(word.text for word in agreement.draft))
        if self._streams:
            found = self._recognised(segment, options)
            if found is not None:
                known = len(agreement.steady)
                stable = max(0, found.steady_words - known)
                found = replace(found, words=found.words[known:]) if found.words else None
        elif agreement.steady:
            assert self._first is not None
            heard, rest = self._divided(segment)
            found = self._recognised(rest, replace(options, context=heard, language=self._first.language))
            if found is not None:
                agreement.correct_marks(found.previous_end)
        else:
            context = () if self._without_context else options.context
            found = self._recognised(segment, replace(options, context=context))
            if found is not None and not found.words:
                found = None  # there is speech, so something must be heard
            self._without_context |= found is None
        self._unheard = self._unheard + 1 if found is None else 0
        if self._unheard == _MOST_UNHEARD and agreement.steady:
            self._unheard, self._doubtful = 0, len(agreement.steady)
        waited_s = self._drafter.waited_s if isinstance(self._drafter, SharedRecognizer) else 0.0
        self._schedule.ran(segment, self._clock() - began - waited_s)
        if found is None:
            return None
        if not agreement.steady:
            found = self._begun_alike(found)
            self._first = replace(found, missing=())
            agreement.correct_marks(found.previous_end)
        speech_s, alone = segment.speech_end_s - segment.speech_start_s, stable is None
        if alone and speech_s < self._steady_from_s:
            stable = 0
        agreement.push(found.words, segment.heard_s, _missing_s(found), stable)
        shown = without_end(agreement.visible(segment.heard_s))
        probable = alone and speech_s >= _PROBABLE_FROM * self._steady_from_s
        steady = agreement.promised(segment.heard_s, _missing_s(found), probable=probable)
        return self._whole(segment, found, shown, steady)

    def _begun_alike(self, found: Transcript) -> Transcript:
        """A draft with the marks before the segment that the one before it had, and its first word as after them, unless two drafts
        in a row have others: each change would begin a sentence there, or end it.
        """
        before, words = self._first, list(found.words)
        if before is not None and before.language != found.language:
            self._agreement.show_anew()
            before = None
        self._other_marks = before is not None and found.previous_end != before.previous_end and not self._other_marks
        if before is None or not self._other_marks:
            return found
        words[:1] = steadied(before.words[:1] * 2, words[:1])
        return replace(found, previous_end=before.previous_end, words=tuple(words))

    def confirm(self, segment: SpeechSegment, transcript: Transcript) -> Transcript:
        """The segment pauses, and its group is recognised as a whole: later drafts go on from these words, unless they are provisional."""
        self._begin(segment)
        if transcript.rejected is not None or not transcript.words:
            return transcript
        if transcript.provisional:
            return replace(transcript, steady_words=self._agreement.kept(transcript.words, segment.heard_s))
        self._first = replace(transcript, missing=())
        self._unheard, self._doubtful, self._other_marks = 0, 0, False
        self._agreement.confirm(transcript.words, segment.heard_s, _missing_s(transcript))
        return replace(transcript, steady_words=self._agreement.promised(segment.heard_s))

    def _recognised(self, segment: SpeechSegment, options: RecognitionOptions) -> Transcript | None:
        found = self._drafter.draft(segment, options)
        if found is not None:
            check_transcripts([segment], [found])
        return found

    def _begin(self, segment: SpeechSegment) -> None:
        if self._agreement.segment != segment.start_sample:
            self._agreement.begin(segment.start_sample)
            self._unheard, self._doubtful, self._first = 0, 0, None
            self._without_context = self._other_marks = False

    def _divided(self, segment: SpeechSegment) -> tuple[tuple[HeardSegment, ...], SpeechSegment]:
        """The steady words of a segment that are not in doubt, as context, and what follows them."""
        steady = self._agreement.steady
        doubtful = min(self._doubtful, len(steady))
        whole = self._unheard > 0 or (isinstance(self._drafter, HearsWhole) and self._drafter.hears_whole)
        heard, rest = cut_after_steady(segment, steady, whole=whole, doubtful=doubtful)
        return (heard,) if doubtful < len(steady) else (), rest

    def _whole(self, segment: SpeechSegment, heard: Transcript, draft: Sequence[Word], steady: int) -> Transcript:
        """The transcript of the segment so far. Its confidence is that of what was ``heard`` last."""
        assert self._first is not None
        words = (*self._agreement.steady, *draft)
        return replace(
            heard,
            segment_id=segment.id,
            start_s=segment.start_s,
            end_s=segment.end_s,
            text="".join(word.text for word in words).strip(),
            language=self._first.language,
            previous_end=self._first.previous_end,
            ends_surely=False,
            rejected=None,
            heard_s=segment.heard_s,
            speech_end_s=segment.speech_end_s,
            words=words,
            steady_words=min(steady, len(words)),
        )


def _missing_s(found: Transcript) -> float:
    """Where the first stretch without words begins."""
    return min((each.start_s for each in found.missing), default=math.inf)
