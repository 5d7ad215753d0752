"""Which sounds get a caption: none where something is said, and one of a sound that goes on. Pure."""

from __future__ import annotations

from collections import deque

from ...languages import sound_label
from ..events import SoundEvent, Transcript

# A sound that was away for less goes on.
_AWAY_S = 10.0
# Sounds come at most so long after their audio: a group of segments is shorter.
_KEPT_S = 60.0


class SoundCaptions:
    """Takes transcripts and sounds in the order in which they come from recognition."""

    def __init__(self, language: str) -> None:
        """``language``: the one that is spoken, until something is."""
        self.language = language
        self._said: deque[tuple[float, float]] = deque()
        """When the text of the last transcripts begins and ends."""
        self._until_s: dict[str, float] = {}
        """When the sounds that have a caption were heard last, by kind."""

    def heard(self, transcript: Transcript) -> None:
        """Remember what is said, and in which language."""
        if transcript.rejected is not None or not transcript.text.strip():
            return
        self.language = transcript.language
        words = transcript.words
        self._said.append((words[0].start_s, words[-1].end_s) if words else (transcript.start_s, transcript.end_s))
        while self._said[0][1] < transcript.start_s - _KEPT_S:
            self._said.popleft()

    def caption(self, sound: SoundEvent, sentence_until_s: float = 0.0) -> str | None:
        """The text for a sound; None if it has none. ``sentence_until_s``: a sentence may go on until then."""
        over_text = sound.start_s < sentence_until_s or any(
            start_s < sound.end_s and end_s > sound.start_s for start_s, end_s in self._said
        )
        goes_on = sound.start_s - self._until_s.get(sound.kind, float("-inf")) < _AWAY_S
        if over_text and not goes_on:
            return None
        self._until_s[sound.kind] = sound.end_s
        return None if goes_on else sound_label(sound.kind, self.language)
