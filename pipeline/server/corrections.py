"""Which corrections of finished text a session takes."""

from __future__ import annotations

from collections.abc import Callable

from ..core import MASK, Correction, Masking
from .guard import Rate
from .history import History
from .limits import ServerLimits
from .protocol import Correct, Mask, ProtocolError, check_length, sendable, shown
from .speakers import speaker_name

_MOST_MASKS = 1_000
_MOST_BLANKS = 10  # characters that are sent for each that is left


class Corrections:
    """Checks the corrections of one session."""

    def __init__(self, limits: ServerLimits, history: History, masking: Masking, clock: Callable[[], float]) -> None:
        self._limits, self._history, self._masking = limits, history, masking
        self._rate, self._masks = Rate(limits.corrections_a_minute, clock), 0

    def checked(self, wanted: Correct | Mask) -> Correction:
        """The correction, with its text in one line and masked. A word to mask is masked from now on.

        Raises:
            ProtocolError: there is no such text, or no longer; the new one is empty or too long; it does not have the word to
                mask; the name of the speaker cannot be one; or there are too many.
        """
        new = self._new_text(wanted.text) if isinstance(wanted, Correct) and wanted.text is not None else None
        if (finished := self._history.finished(wanted.sentence, wanted.language)) is None:
            language = f" in {shown(wanted.language)}" if wanted.language else ""
            raise ProtocolError(
                "no-line",
                f"sentence {shown(wanted.sentence)} has no finished text{language} here; it may be among the older ones, of "
                f"which only the last {self._limits.kept_sentences} are kept",
            )
        end, before = finished
        text = new if new is not None else (before or end).text
        speaker = before.speaker if before is not None else None
        if isinstance(wanted, Mask):
            word = self._word(wanted.text, text, end.language)
        elif wanted.speaker is not None:
            if wanted.language:
                raise ProtocolError("bad-correction", "the speaker is that of what was said; leave the language out")
            speaker = speaker_name(wanted.speaker)
        if not self._rate.allows(""):
            a_minute = self._limits.corrections_a_minute
            raise ProtocolError("too-many", f"{a_minute} lines were corrected in a minute; wait before the next")
        if isinstance(wanted, Mask):
            if self._masks >= _MOST_MASKS:
                raise ProtocolError("too-many", f"{_MOST_MASKS} words of this session are masked, which is the limit")
            self._masks += 1
            self._masking.add(end.language, word)
        return Correction(wanted.sentence, wanted.language, self._masking.text(text, end.language), speaker)

    def _new_text(self, wanted: str) -> str:
        most = self._limits.correction_characters
        check_length("the line", wanted, _MOST_BLANKS * most, "bad-correction")
        text = " ".join(sendable(wanted).split())
        if not 0 < len(text) <= most:
            raise ProtocolError("bad-correction", f"the line has {len(text)} characters; it must have 1 to {most}")
        return text

    def _word(self, wanted: str, text: str, language: str) -> str:
        """A word to mask, which must be in ``text``."""
        from ..glossary import TableError, normalized_form

        try:
            word = normalized_form(sendable(wanted))
        except TableError as error:
            raise ProtocolError("bad-word", str(error)) from None
        if MASK in word or Masking([(language, word)]).text(text, language) == text:
            raise ProtocolError("bad-word", f"the line does not have the word {shown(word)}; choose a whole word of it")
        return word
