"""Recognition of the segment in progress: drafts, committed words, and the rest of it once it has ended."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

from ..events import EndOfInput, Pause, SpeechSegment, Transcript, TranscriptSoFar, Word
from ..languages import sets_sentences_apart
from ..languages.marks import final_marks
from ..run.options import DraftOptions
from .context import Heard
from .drafts import Agreement, DraftSchedule, divided, without_end
from .recognizer import DraftRecognizer, RecognitionOptions, Recognizer, StreamedSegments, Waits

# Drafts in a row that come to nothing, until the words that drafts have committed are in doubt, and what follows is heard without
# them. With 4 drafts a second, a beginning that was committed wrongly cost 8 s of text.
_MOST_UNHEARD = 2


class Drafting:
    """The segment in progress and what has been heard in it. Its calls block; ``due`` does not.

    If the recogniser drafts itself, words on which its drafts agree are committed. The drafts of a smaller one commit
    nothing: words are committed as the recogniser hears them when the segment pauses or has ended. Those of a recogniser that
    emits partial text itself (``streams``) are committed as far as it calls them stable.
    """

    def __init__(
        self,
        recognizer: Recognizer,
        drafter: DraftRecognizer | None,
        options: DraftOptions,
        clock: Callable[[], float],
        *,
        commits: bool = True,
    ) -> None:
        """``drafter``: recognises the segment in progress; None: there are no drafts. ``commits``: it is the recogniser itself.

        ``clock`` gives seconds, to find out how long a draft takes.
        """
        self._recognizer, self._drafter, self._clock = recognizer, drafter, clock
        self._schedule = DraftSchedule(options)
        self.enabled = drafter is not None
        self._commits, self.streams = commits, isinstance(drafter, StreamedSegments)
        self._agreement = Agreement(options.margin_ms / 1000, commits=commits)
        self._last: Transcript | None = None
        """The last one that committed words; the language and the marks before the segment are taken from it."""
        self._unheard = 0  # drafts in a row that did not hear the known words again
        self._doubtful = 0  # of the known words, those that several drafts did not hear again
        self._alone = False  # whether a draft of the segment did not hear what was said before it, or nothing after it
        self._carried: SpeechSegment | None = None
        """The segment that was cut in front of the committed words."""
        self.withheld: Transcript | None = None
        """What followed the committed words of the last segment and is not shown, because it was rejected."""

    def due(self, segment: SpeechSegment) -> bool:
        """Whether the segment is to be recognised now."""
        return self.enabled and self._schedule.due(segment)

    def missed(self, segment: SpeechSegment) -> bool:
        """Whether the segment, the newest one, was not recognised while in progress although it is long enough for that."""
        return self.enabled and self._schedule.segment != segment.id and self._schedule.long_enough(segment)

    def committed_in(self, segment: SpeechSegment) -> bool:
        """Whether words of the segment are committed."""
        return self._agreement.segment == segment.id and bool(self._agreement.committed)

    def goes_on(self, before: SpeechSegment, segment: SpeechSegment) -> None:
        """``before`` has not ended: ``segment`` is more of it."""
        if self._agreement.segment == before.id:
            self._agreement.segment = segment.id

    def draft(self, segment: SpeechSegment, options: RecognitionOptions) -> TranscriptSoFar | None:
        """Recognise the segment in progress; None if what was heard cannot be used.

        The context of ``options`` is not heard again once words are known.

        Raises DraftRefusedError: others need the recogniser more. Nothing has changed.
        """
        assert self._drafter is not None
        began = self._clock()
        agreement = self._agreement
        stable: int | None = None
        if self.streams:
            found = self._drafter.draft(segment, options)
            if found is not None:
                known = len(agreement.known) if agreement.segment == segment.id else 0
                stable = max(0, found.committed_words - known)
                found = replace(found, words=found.words[known:]) if found.words else None
        elif agreement.known and agreement.segment == segment.id:
            assert self._last is not None
            heard, rest = self._divided(segment, agreement.known)
            found = self._drafter.draft(rest, replace(options, context=heard, language=self._last.language))
            if found is not None and (self._commits or agreement.settled):  # committed marks are the recogniser's
                agreement.correct_marks(found.previous_end)
        else:
            found = self._drafter.draft(segment, replace(options, context=() if self._alone else options.context))
            if found is not None and not found.words:
                found = None  # there is speech, so something must be heard
            self._alone |= found is None
        self._unheard = self._unheard + 1 if found is None else 0
        if self._unheard == _MOST_UNHEARD and self._commits and agreement.segment == segment.id:
            self._unheard, self._doubtful = 0, len(agreement.known)
        waited_s = self._drafter.waited_s if isinstance(self._drafter, Waits) else 0.0
        self._schedule.ran(segment, self._clock() - began - waited_s)
        if found is None:
            return None
        self._begin(segment)
        if not agreement.known:
            self._last = replace(found, missing=())
            agreement.correct_marks(found.previous_end)
        agreement.push(found.words, segment.heard_s, _missing_s(found), stable)
        return self._shown(segment, found, without_end(agreement.draft))

    def pushed(self, segment: SpeechSegment, transcript: Transcript) -> TranscriptSoFar | None:
        """The segment pauses and is recognised as ``transcript``: a draft too."""
        if not self.enabled or transcript.rejected is not None or not transcript.words:
            return None
        agreement = self._agreement
        self._begin(segment)
        if not agreement.committed:
            self._last = replace(transcript, missing=())
        rest = transcript.words[len(agreement.committed) :]
        if self._commits:
            if not agreement.committed:
                agreement.correct_marks(transcript.previous_end)
            agreement.push(rest, segment.heard_s, _missing_s(transcript))
        else:
            agreement.confirm(rest, segment.heard_s, _missing_s(transcript))
        return self._shown(segment, transcript, agreement.draft)

    def _divided(self, segment: SpeechSegment, known: Sequence[Word]) -> tuple[tuple[Heard, ...], SpeechSegment]:
        """The words known of a segment that are not in doubt, as context, and what follows them."""
        doubtful = min(self._doubtful, len(known))
        heard, rest = divided(segment, known, whole=self._unheard > 0, doubtful=doubtful)
        return (heard,) if doubtful < len(known) else (), rest

    def _begin(self, segment: SpeechSegment) -> None:
        if self._agreement.segment != segment.id:
            self._agreement.begin(segment.id)

    def _shown(self, segment: SpeechSegment, heard: Transcript, draft: Sequence[Word]) -> TranscriptSoFar:
        return TranscriptSoFar(self._whole(segment, heard, (*self._agreement.known, *draft)))

    def recognised(
        self,
        segment: SpeechSegment,
        options: RecognitionOptions,
        attempt: Callable[[SpeechSegment, Callable[[], Transcript]], Transcript] = lambda _, recognise: recognise(),
    ) -> Transcript:
        """The transcript of a segment with committed words that has ended or pauses: the rest is recognised by ``attempt``."""
        assert self._last is not None
        agreement = self._agreement
        agreement.settled.clear()  # heard anew
        known, after = self._divided(segment, agreement.committed)
        self.withheld = None
        if not len(after.samples):
            return self._whole(segment, self._last, agreement.committed)
        options = replace(options, context=known, language=self._last.language)
        part = segment if self.streams else after
        rest = attempt(after, lambda: self._recognizer.transcribe([part], options)[0])
        if self.streams:
            rest = replace(rest, words=rest.words[len(agreement.committed) :], text="")
        agreement.correct_marks(rest.previous_end)
        if rest.rejected is not None:
            self.withheld = None if rest.is_noise else rest
            return self._whole(segment, self._last, agreement.committed)
        space = " " if sets_sentences_apart(rest.language) else ""
        words = rest.words or ((Word(space + rest.text, after.start_s, after.end_s),) if rest.text else ())
        return self._whole(segment, rest, (*agreement.committed, *words))

    def cut(self, segment: SpeechSegment) -> Transcript | None:
        """The transcript of a segment that was cut in front of committed words; they stay for the next segment.

        None if there are no such words: what follows the committed words up to the cut is to be recognised.
        """
        assert self._last is not None
        after = self._agreement.cut(segment.end_s)
        if not after:
            return None
        found = self._whole(segment, self._last, self._agreement.committed)
        self._agreement.begin(segment.id + 1, after)
        self._doubtful, self._carried = 0, segment
        self._last = replace(self._last, previous_end=None)
        return found

    def left_over(self, following: SpeechSegment | Pause | EndOfInput | None) -> Transcript | None:
        """The transcript of words that were carried over a cut if what comes next is not speech from there on."""
        before, agreement = self._carried, self._agreement
        if before is None or not agreement.committed or agreement.segment != before.id + 1:
            return None
        if isinstance(following, Pause) and following.start_s < before.start_s:
            return None  # a pause before the cut
        end = before.start_sample + len(before.samples)
        if isinstance(following, SpeechSegment) and following.start_sample == end:
            return None
        assert self._last is not None
        rest = replace(before, id=agreement.segment, start_sample=end, samples=before.samples[:0])
        found = self._whole(rest, self._last, agreement.committed)
        agreement.begin(-1)
        self._carried = None
        return found

    def finished(self, segment: SpeechSegment, transcript: Transcript) -> Transcript:
        """``segment`` has ended and is recognised as ``transcript``; its committed words stay as they were committed."""
        agreement = self._agreement
        if agreement.segment == segment.id:
            if count := len(agreement.committed):
                agreement.correct_marks(final_marks(transcript.words[count - 1].text.rstrip()))
                words = (*agreement.committed, *transcript.words[count:])
                text = "".join(word.text for word in words).strip()
                transcript = replace(transcript, text=text, words=words, committed_words=count)
            agreement.begin(segment.id + 1)
        self._unheard, self._doubtful, self._alone, self.withheld = 0, 0, False, None
        return transcript

    def _whole(self, segment: SpeechSegment, heard: Transcript, words: Sequence[Word]) -> Transcript:
        """The transcript of the segment with these words. Its confidence is that of what was ``heard`` last."""
        before = self._last or heard
        return replace(
            heard,
            segment_id=segment.id,
            start_s=segment.start_s,
            end_s=segment.end_s,
            text="".join(word.text for word in words).strip(),
            language=before.language,
            previous_end=before.previous_end,
            rejected=None,
            heard_s=segment.heard_s,
            speech_end_s=segment.speech_end_s,
            words=tuple(words),
            committed_words=len(self._agreement.committed),
        )


def _missing_s(found: Transcript) -> float:
    """Where the first stretch without words begins."""
    return min((each.start_s for each in found.missing), default=math.inf)
