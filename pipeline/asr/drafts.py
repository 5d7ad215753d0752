"""Drafts: when speech in progress is recognised again, and which of the words heard in it are certain. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate, takewhile

from pipeline.asr.context import first_new_word
from pipeline.asr.engine import letters
from pipeline.events import SpeechSegment, Transcript, Word
from pipeline.languages.marks import final_marks
from pipeline.run.drafts import DraftOptions
from pipeline.sentences.growing import common_length

# A draft may begin once this many times its computing time of new speech has come, so that finals find the recogniser idle.
_REST = 1.2
# Weight of the newest run in the estimate of the computing time.
_NEWEST = 0.5


class DraftSchedule:
    """Decides when the segment in progress is recognised again. Silence alone brings no new draft."""

    def __init__(self, options: DraftOptions) -> None:
        self._options = options
        self._segment = -1
        self._heard_s = 0.0
        self._took_s = 0.0

    def due(self, segment: SpeechSegment) -> bool:
        """Whether enough speech has come since the last draft."""
        if segment.id != self._segment:
            return segment.speech_end_s - segment.start_s >= self._options.first_ms / 1000
        return segment.speech_end_s - self._heard_s >= max(self._options.every_ms / 1000, _REST * self._took_s)

    def ran(self, segment: SpeechSegment, took_s: float) -> None:
        """``segment`` was recognised in ``took_s`` seconds."""
        self._segment, self._heard_s = segment.id, segment.speech_end_s
        self._took_s = took_s if not self._took_s else (1 - _NEWEST) * self._took_s + _NEWEST * took_s


class Agreement:
    """The committed words of the segment in progress, and the words heard after them.

    LocalAgreement-2 (Liu, Spanakis and Niehues, 2020; Macháček, Dabre and Bojar, 2023): words on which two drafts in a
    row agree are committed. Case and marks need not agree; those of the newest draft stay.
    """

    def __init__(self, margin_s: float = 0.4) -> None:
        self._margin_s = margin_s
        self.segment = -1
        """The id of the segment in progress."""
        self.language = ""
        """The language of the committed words."""
        self.previous_end: str | None = None
        self.committed: list[Word] = []
        self.draft: list[Word] = []

    def begin(self, segment: int) -> None:
        """A new segment is in progress; None of it has been heard."""
        self.__init__(self._margin_s)  # type: ignore[misc]
        self.segment = segment

    def push(self, transcript: Transcript, heard_s: float) -> bool:
        """Take the newest draft, of audio received until ``heard_s``; False if it cannot be used.

        It is not used if it was rejected, has no word times, does not begin as the committed words, or is in another
        language.
        """
        if transcript.rejected is not None or not transcript.words:
            return False
        if self.committed and transcript.language != self.language:
            return False
        at = self._after_committed(transcript.words)
        if at is None:
            return False
        if not self.committed:
            self.language, self.previous_end = transcript.language, transcript.previous_end
        self._correct_marks(transcript.words, at)
        words = list(transcript.words[at:])
        agreed = words[: agreeing(self.draft, words)]
        certain = sum(1 for _ in takewhile(lambda word: word.end_s <= heard_s - self._margin_s, agreed))
        self.committed += words[:certain]
        self.draft = words[certain:]
        return True

    def finished(self, transcript: Transcript) -> Transcript:
        """The transcript of the whole segment with the committed words in it, and how many they are.

        If it was rejected, or is in another language, it has only the words of the drafts.
        """
        if not self.committed:
            return transcript
        words = transcript.words or spread(transcript)
        if transcript.rejected is not None:
            rest: Sequence[Word] = ()
        elif transcript.language != self.language:
            rest = self.draft
        else:
            at = self._after_committed(words)
            if at is None:
                last_s = self.committed[-1].end_s
                at = sum(1 for _ in takewhile(lambda word: (word.start_s + word.end_s) / 2 <= last_s, words))
            self._correct_marks(words, at)
            rest = words[at:]
        return self.whole(transcript, rest)

    def whole(self, transcript: Transcript, rest: Sequence[Word]) -> Transcript:
        """``transcript`` with the text of the committed words and ``rest``."""
        words = (*self.committed, *rest)
        return replace(
            transcript,
            text="".join(word.text for word in words).strip(),
            words=words,
            language=self.language or transcript.language,
            previous_end=self.previous_end if self.committed else transcript.previous_end,
            rejected=None,
            committed_words=len(self.committed),
        )

    def divided(self, at_s: float) -> list[Word]:
        """Remove and return the committed words after ``at_s``, where the segment was cut."""
        kept = [word for word in self.committed if (word.start_s + word.end_s) / 2 <= at_s]
        rest, self.committed = self.committed[len(kept) :], kept
        return rest

    def _after_committed(self, words: Sequence[Word]) -> int | None:
        """The index of the first word after the committed ones; None if they are not at the beginning of ``words``."""
        if not self.committed:
            return 0
        return first_new_word("".join(word.text for word in self.committed), words, self.committed[-1].end_s)

    def _correct_marks(self, words: Sequence[Word], at: int) -> None:
        """Give the last committed word the marks that it has in ``words``, where it is the one before index ``at``."""
        if not self.committed or not at:
            return
        old, new = self.committed[-1], words[at - 1]
        if letters(old.text) == letters(new.text):
            stem = old.text.rstrip().removesuffix(final_marks(old.text))
            self.committed[-1] = replace(old, text=stem + final_marks(new.text))


def agreeing(old: Sequence[Word], new: Sequence[Word]) -> int:
    """Number of words at the beginning of ``new`` that ``old`` begins with too, whatever their case and marks.

    Text without spaces may be divided into words differently: they agree up to a place where both have a boundary.
    """
    same = common_length(_letters(old), _letters(new))
    ends = set(accumulate(len(letters(word.text)) for word in old))
    at = found = 0
    for number, word in enumerate(new, 1):
        at += len(letters(word.text))
        if at > same:
            break
        if at in ends:
            found = number
    return found


def _letters(words: Sequence[Word]) -> str:
    return "".join(letters(word.text) for word in words)


def without_end(words: Sequence[Word]) -> list[Word]:
    """``words`` without the marks at their end: a recogniser ends what it hears with a full stop, wherever it is cut."""
    if not words:
        return []
    last = words[-1].text.rstrip()
    text = last.removesuffix(final_marks(last))
    return [*words[:-1], *([replace(words[-1], text=text)] if text.strip() else [])]


def spread(transcript: Transcript) -> tuple[Word, ...]:
    """The words of a text whose word times are unknown; the segment's time is divided evenly among the letters."""
    text = transcript.text.strip()
    parts = text.split(" ")
    parts = [part if not index else f" {part}" for index, part in enumerate(parts)]
    length_s = (transcript.end_s - transcript.start_s) / max(1, len(text))
    words: list[Word] = []
    begin = 0
    for part in parts:
        end = begin + len(part)
        words.append(Word(part, transcript.start_s + begin * length_s, transcript.start_s + end * length_s))
        begin = end
    return tuple(words)
