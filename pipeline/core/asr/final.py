"""Final recognition: a group of segments, once it has closed, as a whole. The same for live runs and recordings."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ...errors import PipelineError
from ...languages import letters
from ..events import SpeechSegment, Transcript
from ..run.stats import PipelineStats
from ..run.worker import FAILED, FailedCalls
from .groups import Group, lead
from .language_segmenter import LanguageSegmenter, divided_by_language
from .recognizer import BatchRecognizer, RecognitionOptions, Recognizer, SharedRecognizer, check_transcripts

if TYPE_CHECKING:
    from .terms import HeardTerms

log = logging.getLogger(__name__)

# Segments that are kept for later groups: more than a window has room for.
_KEPT = 20
# Letters of the end of a text by which two are compared: a word, or the end of one.
_END_LETTERS = 6


class FinalRecognition:
    """Recognises groups in their order. Its calls block.

    What it knows of the groups before is their audio, the language spoken last, if there are several, and the terms of the
    glossary that were heard. A call of the recogniser that fails costs its segment, whose transcript is rejected as "failed";
    segments that were recognised together are tried one by one. The third segment in a row that fails, or a
    ``PipelineError``, is raised.
    """

    def __init__(
        self,
        recognizer: Recognizer,
        stats: PipelineStats | None = None,
        *,
        several_languages: bool = False,
        terms: HeardTerms | None = None,
    ) -> None:
        """``several_languages``: the recogniser tells them apart. ``terms``: the glossary of the stream."""
        self.recognizer, self.stats, self.terms = recognizer, stats or PipelineStats(), terms
        self.several_languages = several_languages
        self._language = ""
        self._before: Group = ()
        """The last segments of the groups before."""
        self._newest: Transcript | None = None
        """The transcript of the last of these segments."""
        self._calls = FailedCalls()

    def parts(self, segment: SpeechSegment) -> list[SpeechSegment]:
        """The parts of a segment that are each in one language."""
        if not self.several_languages:
            return [segment]
        return divided_by_language(LanguageSegmenter.told_by(self.recognizer), segment)

    def recognised(self, groups: Sequence[Group]) -> list[list[Transcript]]:
        """The transcripts of the next groups; of each, one for each segment."""
        transcripts_by_group = self._together(groups) if len(groups) > 1 and self.at_once else None
        if transcripts_by_group is not None:
            for group, transcripts in zip(groups, transcripts_by_group, strict=True):
                self.take(group, transcripts)
            return transcripts_by_group
        transcripts_by_group = []
        for group in groups:
            transcripts_by_group.append(self._group(group))
            self.take(group, transcripts_by_group[-1])
        return transcripts_by_group

    def as_if_closed(self, group: Group) -> list[Transcript] | None:
        """The transcripts of a group if nothing more comes, some of them perhaps provisional; None if the recogniser fails.
        Nothing is remembered.
        """
        try:
            return self._whole(group, *self._leads([group]), brief=True)
        except PipelineError:
            raise
        except Exception:
            log.debug("the group from %.1f s could not be recognised early", group[0].start_s, exc_info=True)
            return None

    def take(self, group: Group, transcripts: Sequence[Transcript]) -> None:
        """Remember what later groups depend on: a group that has closed, and its transcripts."""
        self._before, self._newest = (*self._before, *group)[-_KEPT:], transcripts[-1]
        for transcript in transcripts:
            if transcript.is_sure:
                self._language = transcript.language
                if self.terms is not None:
                    self.terms.heard(transcript)

    @property
    def at_once(self) -> bool:
        """Whether groups do not depend on each other, and the recogniser takes several at once."""
        depends = self.several_languages or (self.terms is not None and not self.terms.empty)
        waited_for = isinstance(self.recognizer, SharedRecognizer)  # by others, for whom several would take too long
        return not depends and not waited_for and isinstance(self.recognizer, BatchRecognizer)

    @property
    def options(self) -> RecognitionOptions:
        before = (self._language or None) if self.several_languages else None
        return RecognitionOptions(before=before, terms=self.terms)

    def _together(self, groups: Sequence[Group]) -> list[list[Transcript]] | None:
        """The transcripts of several groups, recognised at once; None if that fails."""
        assert isinstance(self.recognizer, BatchRecognizer)
        try:
            with self.stats.busy("asr"):
                transcripts = self._batch(self.recognizer, groups, self._leads(groups))
            self._calls.worked()
        except PipelineError:
            raise
        except Exception:
            log.debug("%d groups could not be recognised together", len(groups), exc_info=True)
            return None
        return transcripts

    def _leads(self, groups: Sequence[Group]) -> list[Group]:
        """The segments of earlier groups that each of the next groups is heard with."""
        if not isinstance(self.recognizer, BatchRecognizer) or self.several_languages:
            return [()] * len(groups)
        before, leads = self._before, []
        for group in groups:
            leads.append(lead(before, group))
            before += group
        return leads

    def _whole(self, group: Group, leading: Group = (), *, brief: bool = False) -> list[Transcript]:
        """The transcripts of a group, heard together with the segments before it of ``leading``."""
        with self.stats.busy("asr"):
            if isinstance(self.recognizer, BatchRecognizer) and not self.several_languages:
                return self._batch(self.recognizer, [group], [leading], brief=brief)[0]
            transcripts = self.recognizer.transcribe(group, self.options)
        check_transcripts(group, transcripts)
        return transcripts

    def _batch(
        self, recognizer: BatchRecognizer, groups: Sequence[Group], leads: Sequence[Group], *, brief: bool = False
    ) -> list[list[Transcript]]:
        """The transcripts of groups, each heard together with its lead, unless that is heard to end otherwise than before: then a
        word may have come to the wrong side.
        """
        together = [(*leading, *group) for leading, group in zip(leads, groups, strict=True)]
        heard = self._checked(recognizer, together, brief=brief)
        batch, before = list[list[Transcript]](), self._newest
        for leading, group, transcripts in zip(leads, groups, heard, strict=True):
            recognised = transcripts[len(leading) :]
            in_doubt = any(transcript.provisional for transcript in transcripts)
            if leading and (before is None or _end(transcripts[len(leading) - 1]) != _end(before)):
                (recognised,) = self._checked(recognizer, [group], brief=brief)
            batch.append([replace(one, provisional=True) for one in recognised] if in_doubt else recognised)
            before = recognised[-1]
        return batch

    def _checked(
        self, recognizer: BatchRecognizer, groups: Sequence[Group], *, brief: bool = False
    ) -> list[list[Transcript]]:
        batch = recognizer.transcribe_batch(groups, replace(self.options, brief=brief))
        if not isinstance(batch, list) or len(batch) != len(groups):
            raise PipelineError(
                f"transcribe_batch returned {str(batch)[:60]}; expected a list for each of {len(groups)} groups"
            )
        for group, transcripts in zip(groups, batch, strict=True):
            check_transcripts(group, transcripts)
        return batch

    def _group(self, group: Group) -> list[Transcript]:
        (leading,) = self._leads([group])
        if len(group) > 1 or leading:
            try:
                return self._whole(group, leading)
            except PipelineError:
                raise
            except Exception:
                log.debug("%d segments could not be recognised together", len(leading) + len(group), exc_info=True)
        return [self._attempt(segment, lambda: self._whole((segment,))[0]) for segment in group]  # noqa: B023  # called at once

    def _attempt(self, segment: SpeechSegment, recognise: Callable[[], Transcript]) -> Transcript:
        """The transcript of a segment; one without text if the recogniser fails."""
        try:
            transcripts = recognise()
        except Exception as error:
            reason = self._calls.reason(error)
            log.warning("the speech from %.1f to %.1f s is not recognised: %s", segment.start_s, segment.end_s, reason)
            self.stats.failures["ASR"] = reason
            return Transcript(
                segment_id=segment.id,
                start_s=segment.speech_start_s,
                end_s=segment.end_s,
                text="",
                language=self._language,
                rejected=FAILED,
                heard_s=segment.heard_s,
                speech_end_s=segment.speech_end_s,
            )
        self._calls.worked()
        return transcripts


def _end(transcript: Transcript) -> str:
    """The last letters of what was heard."""
    return letters(transcript.text)[-_END_LETTERS:]
