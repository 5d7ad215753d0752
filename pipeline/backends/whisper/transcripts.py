"""Transcripts of segments from the words of searches, as far as these pass the guards."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ...core import MissingSpeech, SpeechSegment, Transcript
from ...store import Thresholds
from ..script import in_script
from .guards import Evidence, compression_ratio, rejection
from .search import Search
from .words import TimedWord, plausible, without_pauses

if TYPE_CHECKING:
    from ...languages import Convert

# Mean natural-log probability of the tokens of a draft's last word below which it is left out: it is probably cut off.
_CUT_OFF = math.log(0.5)
# Natural-log probability of the final mark at which a sentence surely ends, and the marks that are one token and no sign of hesitation.
_SURE_END = math.log(0.9)
_ENDS = tuple(".!?。！？؟۔")
# Words at the end of a draft that may be left out because they are doubtful.
_MOST_LEFT_OUT = 2
NOTHING = Evidence("", 0, 0.0, 0.0)
"""The evidence of a segment in which nothing was said."""


class Transcripts:
    """Makes transcripts in the configured script. The times of words and of stretches without words are those of the stream."""

    def __init__(self, thresholds: Thresholds, convert: Mapping[str, Convert | None], *, timed: bool) -> None:
        """``convert``: by language. ``timed``: with the times of words."""
        self._thresholds, self._convert, self._timed = thresholds, convert, timed

    def accepted(self, segment: SpeechSegment, result: Search, *, judged: bool = False) -> Transcript | None:
        """The transcript of one segment of a window from its words, or None if they do not pass the checks.

        ``judged``: the window is one segment, divided, and has passed them. Few words alone would often seem uncertain.
        """
        probabilities = [p for word in result.words for p in word.log_probabilities]
        text = "".join(word.text for word in result.words).strip()
        sure = math.fsum(probabilities) / len(probabilities) if probabilities else 0.0
        evidence = Evidence(text, len(probabilities), sure, result.hypothesis.no_speech_probability)
        rejected = rejection(evidence, self._thresholds)
        if rejected is not None and not (judged and rejected == "uncertain"):
            return None
        found = self.build(segment, result.encoded.language, evidence, result.words, result.missing)
        return replace(found, provisional=result.provisional)

    def sure(self, segment: SpeechSegment, result: Search, *, judged: bool = False) -> Transcript | None:
        """The transcript of words of which the last ones may be doubtful: they may be cut off. None if all are."""
        words = result.words
        cut_off = bool(words) and words[-1].mean_log_probability < _CUT_OFF
        for left_out in range(int(cut_off), min(len(words), _MOST_LEFT_OUT + 1)):
            transcript = self.accepted(segment, replace(result, words=words[: len(words) - left_out]), judged=judged)
            if transcript is not None:
                return transcript if transcript.words else None
        return None

    def alone(self, segment: SpeechSegment, result: Search, *, repeated: bool = False) -> Transcript:
        """The transcript of a segment from a search over it alone."""
        hypothesis, result = result.hypothesis, result.moved(segment.start_s)
        evidence = Evidence(hypothesis.text.strip(), 0, hypothesis.log_probability, hypothesis.no_speech_probability)
        words = result.words if result.rejected is None else ()
        transcript = self.build(segment, result.encoded.language, evidence, words, result.missing)
        return replace(
            transcript,
            rejected=result.rejected,
            repeated=repeated,
            uncertain=result.uncertain,
            provisional=result.provisional,
        )

    def build(
        self,
        segment: SpeechSegment,
        language: str,
        evidence: Evidence,
        words: Sequence[TimedWord] = (),
        missing: Sequence[MissingSpeech] = (),
    ) -> Transcript:
        text, of_mark = evidence.text, words[-1].log_probabilities[-1:] if words else ()
        timed = [word.plain for word in without_pauses(words)]
        believed = self._timed and plausible(timed, text, segment.start_s, segment.end_s)
        shown, timed = in_script(text, timed if believed else (), self._convert[language])
        return Transcript(
            segment_id=segment.id,
            start_s=segment.speech_start_s,
            end_s=segment.end_s,
            text=shown,
            language=language,
            no_speech_probability=evidence.no_speech,
            mean_log_probability=evidence.log_probability,
            compression_ratio=compression_ratio(text),
            heard_s=segment.heard_s,
            speech_end_s=segment.speech_end_s,
            words=tuple(timed),
            missing=tuple(missing),
            ends_surely=text.endswith(_ENDS) and not text.endswith("..") and of_mark >= (_SURE_END,),
        )
