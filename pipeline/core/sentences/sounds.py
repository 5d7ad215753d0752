"""Which sounds get a caption: none where something is said, and one of a sound that goes on. Pure."""

from __future__ import annotations

from ...languages import sound_label
from ..events import SoundEvent, Transcript

# A sound that was away for less goes on.
_AWAY_S = 10.0


class SoundCaptions:
    """Takes transcripts and sounds in the order in which they come from recognition."""

    def __init__(self, language: str) -> None:
        """``language``: the one that is spoken, until something is."""
        self.language = language
        self._said_until_s = 0.0
        """When the text of the last transcript ends."""
        self._until_s: dict[str, float] = {}
        """When the sounds that have a caption were heard last, by kind."""

    def heard(self, transcript: Transcript) -> None:
        """Remember what is said, and in which language."""
        if transcript.rejected is not None or not transcript.text.strip():
            return
        self.language = transcript.language
        end_s = transcript.words[-1].end_s if transcript.words else transcript.end_s
        self._said_until_s = max(self._said_until_s, end_s)

    def caption(self, sound: SoundEvent, sentence_until_s: float = 0.0) -> str | None:
        """The text for a sound; None if it has none. ``sentence_until_s``: a sentence may go on until then.

        A sound before text that has come already has none: captions are in order.
        """
        over_text = sound.start_s < max(sentence_until_s, self._said_until_s)
        goes_on = sound.start_s - self._until_s.get(sound.kind, float("-inf")) < _AWAY_S
        if over_text and not goes_on:
            return None
        self._until_s[sound.kind] = sound.end_s
        return None if goes_on else sound_label(sound.kind, self.language)
