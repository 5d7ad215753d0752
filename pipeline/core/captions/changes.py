"""States of a text as changes, for readers that keep the text themselves: files, WebSockets, programs. And back. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from ..events import (
    Correction,
    EndOfInput,
    PipelineEvent,
    SourceSentence,
    SourceText,
    TargetText,
    TargetToken,
    Transcript,
    Translation,
)
from ..notices import Notice
from .states import OpenTexts, common_length


@dataclass(frozen=True)
class SourceDelta:
    """A change of the text recognised in a sentence, for readers that keep the text themselves.

    ``withdrawn`` characters are removed from the end of the sentence's text, then ``text`` is appended. Afterwards the
    first ``steady`` characters are expected to stay. The other fields are those of ``SourceText``.
    """

    sentence: int
    language: str
    text: str
    withdrawn: int = 0
    steady: int = 0
    start_s: float = 0.0
    end_s: float = 0.0
    heard_s: float = 0.0
    speaker: str | None = None


@dataclass(frozen=True)
class Delta:
    """A change of a sentence's translation: normally the text of one target token, appended.

    ``withdrawn``, ``text`` and ``steady`` are those of ``SourceDelta``, the other fields those of ``TargetText``.
    """

    sentence: int
    language: str
    text: str
    """Empty if the token completes no character; may be empty at the end."""
    withdrawn: int = 0
    steady: int = 0
    token: int | None = None
    """The token's id in the model's vocabulary; None if the change stands for several tokens."""
    log_probability: float = 0.0
    """Natural-log probability of the token, or the sum of several: of all tokens, if the translation began anew."""
    heard_s: float = 0.0
    complete: bool = False


Change = SourceDelta | Delta
ChangeEvent = Transcript | SourceSentence | Translation | Correction | Notice | EndOfInput | Change
"""An event of a stream of changes."""


def edit(old: str, new: str) -> tuple[int, str]:
    """The smallest change at the end that turns ``old`` into ``new``: characters withdrawn, text appended."""
    same = common_length(old, new)
    return len(old) - same, new[same:]


class Changes:
    """The events of a stream for one reader, each state as the change of the one before."""

    def __init__(self) -> None:
        self._texts = OpenTexts()

    def push(self, event: PipelineEvent) -> ChangeEvent:
        """The next event, with a change in the place of a state.

        Raises:
            TextChangeError: see ``pipeline.core.captions.states.OpenTexts``.
        """
        before = self._texts.push(event)
        if isinstance(event, SourceText):
            withdrawn, text = edit(before.text if before else "", event.text)
            times_and_speaker = event.start_s, event.end_s, event.heard_s, event.speaker
            return SourceDelta(event.sentence, event.language, text, withdrawn, event.steady, *times_and_speaker)
        if isinstance(event, TargetText):
            return _delta(before if isinstance(before, TargetText) else None, event)
        return event


def _delta(before: TargetText | None, newest: TargetText) -> Delta:
    withdrawn, text = edit(before.text if before else "", newest.text)
    earlier = () if before is None or before.complete else before.tokens
    new = newest.tokens[common_length(earlier, newest.tokens) :]
    return Delta(
        sentence=newest.sentence,
        language=newest.language,
        text=text,
        withdrawn=withdrawn,
        steady=newest.steady,
        token=new[0].id if len(new) == 1 else None,
        log_probability=sum(token.log_probability for token in new),
        heard_s=newest.heard_s,
        complete=newest.complete,
    )


class States:
    """The events of a stream, read back from its changes."""

    def __init__(self) -> None:
        self._texts = OpenTexts()

    def push(self, event: PipelineEvent | ChangeEvent) -> PipelineEvent:
        """The next event, with a state in the place of a change. Its tokens are one for each change.

        Raises:
            TextChangeError: see ``pipeline.core.captions.states.OpenTexts``.
        """
        state = self._state(event) if isinstance(event, SourceDelta | Delta) else event
        self._texts.push(state)
        return state

    def _state(self, change: Change) -> SourceText | TargetText:
        of_source = isinstance(change, SourceDelta)
        before = self._texts.get(change.sentence, "" if of_source else change.language)
        kept = before.text[: max(0, len(before.text) - change.withdrawn)] if before else ""
        text = kept + change.text
        if isinstance(change, SourceDelta):
            times_and_speaker = change.start_s, change.end_s, change.heard_s, change.speaker
            return SourceText(change.sentence, change.language, text, change.steady, *times_and_speaker)
        earlier = before.tokens if isinstance(before, TargetText) and not before.complete else ()
        tokens = (
            *(token for token in earlier if token.end <= len(kept)),
            TargetToken(change.token, change.log_probability, len(text)),
        )
        return TargetText(
            sentence=change.sentence,
            language=change.language,
            text=text,
            steady=change.steady,
            tokens=tokens,
            heard_s=change.heard_s,
            complete=change.complete,
        )
