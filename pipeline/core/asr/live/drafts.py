"""What is heard in the open group of a live run: its segments as if it had closed, and a draft of the one in progress."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace

from ....errors import PipelineError
from ...events import SpeechSegment, Transcript, TranscriptSoFar
from ...run.options import DraftOptions
from ..context import Context, same_audio
from ..final import FinalRecognition
from ..groups import Group
from ..language_segmenter import LanguageSegmenter, divided_by_language
from ..matching import first_new_word
from ..recognizer import DraftRecognizer, DraftRefusedError
from .drafting import Drafting

log = logging.getLogger(__name__)

# Audio recognised at once for a draft, with its context, in milliseconds. With 6,500, a shorter window, more words change.
_DRAFT_MS = 9_000


class LiveDrafts:
    """Drafts for one live run. They read what the final path has recognised and never change it. All calls block.

    In each pause the open group is recognised as a whole, as if it had closed; if it closes like that, this is its final
    text. While somebody speaks, only the segment in progress is recognised, after what was heard before.
    """

    def __init__(
        self,
        final: FinalRecognition,
        drafter: DraftRecognizer | None,
        options: DraftOptions,
        context: Context,
        clock: Callable[[], float],
    ) -> None:
        """``drafter``: None: only pauses bring drafts. ``context``: the final text before, kept here."""
        self._final, self._context = final, context
        self._drafting = Drafting(drafter, options, clock) if drafter is not None else None
        self._languages = LanguageSegmenter.told_by(final.recognizer if final.several_languages else None)
        self._parts: list[SpeechSegment] = []
        """The parts of the segment in progress before the one in another language."""
        self._heard: dict[int, Transcript] = {}
        """What was heard last in the segments of the open group, by their first sample."""
        self._early: tuple[Group, list[Transcript]] | None = None
        """The group that was recognised last as if it had closed."""

    def due(self, segment: SpeechSegment) -> bool:
        """Whether the segment in progress is to be recognised now. Does not block."""
        return self._drafting is not None and self._drafting.due(_speech(segment))

    def missed(self, segment: SpeechSegment) -> bool:
        """Whether a segment that has ended had no draft although it is long enough. Does not block."""
        return self._drafting is not None and self._drafting.missed(_speech(segment))

    def look(self, group: Group, segment: SpeechSegment, *, pausing: bool) -> TranscriptSoFar | None:
        """Recognise the segment in progress, which the open group will have; None if nothing is heard that can be shown."""
        if self._parts and self._parts[0].id != segment.id:
            self._parts.clear()
        *ended, segment = divided_by_language(self._languages, segment)
        self._parts += ended
        group = (*group, *self._parts)
        if pausing:
            return self._whole((*group, segment))
        if ended and self._whole(group) is None:
            return None
        if self._drafting is None or self._languages.unsure:
            return None
        context = self._context.followed_by([(one, self._heard[one.start_sample]) for one in group if self._known(one)])
        speech = _speech(segment)
        options = replace(self._final.options, context=context.before(speech, _DRAFT_MS))
        with self._final.stats.busy("asr"):
            try:
                found = self._drafting.draft(speech, options)
            except PipelineError:
                raise
            except Exception as error:
                if not isinstance(error, DraftRefusedError):
                    log.debug("a draft of segment %d failed", segment.id, exc_info=True)
                return None
        self._final.stats.drafts += 1
        if found is None:
            return None
        self._heard[segment.start_sample] = found
        return self._so_far((*group, segment))

    def ended(self, group: Group) -> TranscriptSoFar | None:
        """The last segment of the open group has ended; None if the group was recognised like this already."""
        last = group[-1]
        drafted = self._heard.get(last.start_sample) if last.forced_cut else None
        found = None if self._early is not None and _same(self._early[0], group) else self._whole(group)
        rest = self._after_cut(last, drafted, found.transcripts[-1].text) if drafted is not None and found else None
        if found is None or rest is None:
            return found
        self._heard[last.start_sample + len(last.samples)] = rest
        return TranscriptSoFar((*found.transcripts, rest))

    def _after_cut(self, segment: SpeechSegment, heard: Transcript, known: str) -> Transcript | None:
        """What drafts have ``heard`` after the cut that ends a segment, and after its ``known`` text: the next one begins so."""
        words = heard.words[first_new_word(known, heard.words, segment.end_s) or len(heard.words) :]
        if not words:
            return None
        text = "".join(word.text for word in words).strip()
        return replace(heard, start_s=segment.end_s, text=text, words=words, previous_end=None, steady_words=0)

    def prepared(self, group: Group) -> list[Transcript] | None:
        """The transcripts of a closed group if it was recognised like this already, and no longer search may find other words."""
        if self._early is None or not _same(self._early[0], group) or any(one.provisional for one in self._early[1]):
            return None
        return [
            replace(found, heard_s=segment.heard_s, speech_end_s=segment.speech_end_s, steady_words=0)
            for segment, found in zip(group, self._early[1], strict=True)
        ]

    def closed(self, group: Group, transcripts: Sequence[Transcript]) -> None:
        """A group has its final text, which is the context of what follows."""
        for segment, transcript in zip(group, transcripts, strict=True):
            self._heard.pop(segment.start_sample, None)
            self._context.push(_speech(segment), transcript)
        last = group[-1].start_sample
        self._heard = {start: one for start, one in self._heard.items() if start > last}

    def _known(self, segment: SpeechSegment) -> bool:
        return segment.start_sample in self._heard

    def _whole(self, group: Group) -> TranscriptSoFar | None:
        found = self._final.as_if_closed(group)
        if found is None:
            return None
        self._early = group, found
        for segment, transcript in zip(group, found, strict=True):
            if transcript.provisional and transcript.rejected and self._known(segment):
                continue  # what drafts have heard stays
            if segment is group[-1] and self._drafting is not None:
                transcript = self._drafting.confirm(_speech(segment), transcript)
            self._heard[segment.start_sample] = transcript
        return self._so_far(group)

    def _so_far(self, group: Group) -> TranscriptSoFar:
        """What is heard of the open group, up to a segment of which nothing was heard yet: what was said later is not shown before it.
        After a segment that was not heard to its end, nothing is steady."""
        early = list(zip(*self._early, strict=True)) if self._early is not None else []
        found, steady = list[Transcript](), True
        for segment in group:
            whole = [transcript for looked_at, transcript in early if same_audio(looked_at, segment)]
            complete = any(not transcript.provisional for transcript in whole)
            heard, newest = self._heard.get(segment.start_sample), segment is group[-1]
            if heard is None or not (heard.text or whole or newest):
                break
            if not newest:
                heard = _ended(segment, heard, complete=complete)
            found.append(heard if steady else replace(heard, steady_words=0))
            steady = steady and complete
        return TranscriptSoFar(tuple(found))


def _speech(segment: SpeechSegment) -> SpeechSegment:
    """A segment without the silence before its speech."""
    silence = len(segment.samples) - len(segment.speech)
    return replace(segment, start_sample=segment.start_sample + silence, samples=segment.speech)


def _ended(segment: SpeechSegment, heard: Transcript, *, complete: bool) -> Transcript:
    """What was heard in a segment that has ended, without words after a cut: they belong to the next one.

    ``complete``: it was heard to its end, so that its words are as steady as they get.
    """
    words = tuple(word for word in heard.words if (word.start_s + word.end_s) / 2 <= segment.end_s)
    if len(words) < len(heard.words):
        heard = replace(heard, text="".join(word.text for word in words).strip(), words=words)
    steady_words = len(words) if complete else min(heard.steady_words, len(words))
    return replace(heard, end_s=segment.end_s, steady_words=steady_words)


def _same(before: Group, group: Group) -> bool:
    return len(before) == len(group) and all(map(same_audio, before, group))
