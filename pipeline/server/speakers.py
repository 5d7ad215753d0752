"""Who speaks in a session, as its operator says: the names of the sentences. Pure."""

from __future__ import annotations

from collections import deque
from dataclasses import replace

from ..core import PipelineEvent, SourceSentence, SourceText
from ..names import escaped
from .protocol import ProtocolError, check_length, sendable, shown

_LONGEST = 60  # characters of a name
_MOST_CHANGES = 256  # that are kept until their sentences have ended


def speaker_name(text: str) -> str:
    """A name in one line; empty: nobody in particular.

    Raises:
        ProtocolError: it is too long, or has control or invisible characters.
    """
    check_length("the name", text, 10 * _LONGEST, "bad-speaker")
    name = " ".join(sendable(text).split())
    if len(name) > _LONGEST or name != escaped(name):
        raise ProtocolError(
            "bad-speaker",
            f"the name {shown(name)} has {len(name)} characters; it may have {_LONGEST}, all of them visible",
        )
    return name


class Speakers:
    """Gives each sentence the name that holds for most of its time: who says the name does so a moment late, or early."""

    def __init__(self) -> None:
        self.name: str | None = None
        """The name of who speaks now; None: nobody in particular."""
        self._changes: deque[tuple[float, str | None]] = deque(maxlen=_MOST_CHANGES)
        self._voices: dict[str, str] = {}
        """The names of voices that are told apart: a name that is given while one speaks stays with it."""
        self._told: deque[tuple[int, str]] = deque(maxlen=_MOST_CHANGES)
        """The voices of the last sentences."""

    def change(self, at_s: float, name: str) -> None:
        """Somebody speaks from this time on; an empty name: nobody in particular."""
        if (name or None) != self.name:
            self.name = name or None
            self._changes.append((at_s, self.name))

    def named(self, event: PipelineEvent) -> PipelineEvent:
        """The event, with its speaker if it has the text of a sentence. Sentences come in order."""
        if not isinstance(event, SourceText | SourceSentence):
            return event
        if isinstance(event, SourceSentence) and event.sound is not None:
            return event
        if isinstance(event, SourceSentence) and event.speaker is not None:
            return self._of_voice(event, event.speaker)
        if self._told:  # of a sentence in progress, the voice is not known
            return event
        middle_s = (event.start_s + event.end_s) / 2
        name = next((name for at_s, name in reversed(self._changes) if at_s <= middle_s), None)
        if isinstance(event, SourceSentence):  # forget what no later sentence needs
            while len(self._changes) > 1 and self._changes[1][0] <= event.start_s:
                self._changes.popleft()
        return event if name is None else replace(event, speaker=name)

    def correct(self, sentence: int, name: str) -> None:
        """A sentence is by somebody else: so is all that its voice says from now on, if it is told from others."""
        if (voice := dict(self._told).get(sentence)) is not None:
            self._voices[voice] = name or voice

    def _of_voice(self, event: SourceSentence, voice: str) -> SourceSentence:
        self._told.append((event.sentence, voice))
        while self._changes and self._changes[0][0] <= (event.start_s + event.end_s) / 2:
            self._voices[voice] = self._changes.popleft()[1] or voice
        return replace(event, speaker=self._voices.get(voice, voice))
