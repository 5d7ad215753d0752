"""Transcripts of segments → sentences, which may go on over pauses. Pure.

A sentence ends with a final mark that a word or a pause follows, with a long pause, at its maximum length, where the
language changes or speech is withheld, and at the end of the input. The final mark at the end of a segment is soft:
a recogniser that hears nothing after it writes a full stop in the middle of a sentence too. So it stays a draft until
the next words or a pause decide.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from ..captions.states import common_length, replacing
from ..events import Pause, SourceSentence, SourceText, Transcript, Word
from ..languages import sets_sentences_apart
from ..languages.marks import CLAUSE_MARKS, CLOSERS, MARKS, final_marks
from ..run.options import SentenceOptions
from .boundaries import CONTEXT, ends_open, is_end, word_lists
from .splitting import last_clause, split_sentences

SourceEvent = SourceText | SourceSentence

_SOFT_TAIL = re.compile(rf"[\s{re.escape(MARKS + CLAUSE_MARKS + CLOSERS)}]*$")
# A word's end may be aligned this much after the end of the speech. Segments are longer apart.
_OVERSHOOT_S = 0.3
# A gap between two words that counts as a pause after a sentence. Segments are at least the endpointer's hangover (0.5 s)
# apart, less the audio kept around them.
_PAUSE_S = 0.3
# From this share of the maximum length on, an unfinished sentence is cut at a clause mark in its newest text.
_LONG_SHARE = 0.75


@dataclass(frozen=True)
class _Text:
    """Text that has been recognised, with its times."""

    text: str
    words: tuple[Word, ...]
    """At least one; the texts, joined and stripped, are ``text``."""
    language: str
    start_s: float
    end_s: float
    heard_s: float
    earlier: int
    """Length of the text that was heard before the last segment."""
    earlier_s: float
    """``heard_s`` of that text."""
    timed: bool
    """Whether word times are known for all of the text."""

    @classmethod
    def of(cls, transcript: Transcript) -> _Text:
        end_s = transcript.end_s if transcript.speech_end_s is None else transcript.speech_end_s
        end_s = max(transcript.start_s, end_s)
        text = transcript.text.strip()
        words = transcript.words if "".join(word.text for word in transcript.words).strip() == text else ()
        if words:  # for the end of the last word, the endpointer is more accurate than the alignment
            words = (*words[:-1], replace(words[-1], end_s=max(words[-1].start_s, end_s)))
        return cls(
            text,
            words or (Word(text, transcript.start_s, end_s),),
            transcript.language,
            words[0].start_s if words else transcript.start_s,
            end_s,
            transcript.heard_s,
            0,
            0.0,
            bool(words),
        )


class SentenceAssembler:
    """Gives sentences their text and their end.

    The texts of its ``SourceSentence``s, joined, are those of the transcripts, apart from marks at the ends of segments
    that the next words corrected. What a ``SourceText`` commits is in all later ones.
    """

    def __init__(self, options: SentenceOptions | None = None) -> None:
        self._options = options or SentenceOptions()
        self._open: _Text | None = None
        self._shown: SourceText | None = None
        """The open sentence as it was put out last."""
        self._sentence = 0
        self._ahead: SourceText | None = None
        """The part of a draft that belongs to the next sentence, if the draft is right."""
        self._taken = 0  # words of the segment in progress that are in sentences

    def push(self, transcript: Transcript) -> list[SourceEvent]:
        """Add the transcript of the next segment; of one that was in progress, what follows its committed words."""
        # Words that were committed before the segment was cut in front of them belong to the next one.
        beyond = max(0, self._taken - transcript.committed_words)
        taken, self._taken = self._taken - beyond, beyond
        rest = _part(transcript, taken, len(transcript.words), ended=True) if taken else transcript
        events: list[SourceEvent] = []
        if rest.text or not taken:
            events += self._add(rest, continuing=taken > 0)
        elif self._open is not None and not beyond:  # only the marks at its end may be new
            self._open = _ended(_with_end(self._open, rest.previous_end), transcript)
        if self._open is not None and not beyond and not self._ending_pause_ms(self._open):
            events += self._close(self._open, before_pause=True)
        return events + self._show(self._open)

    def so_far(self, transcript: Transcript) -> list[SourceEvent]:
        """Add the committed words of the segment in progress, and show the others as a draft."""
        events: list[SourceEvent] = []
        if transcript.committed_words > self._taken:
            committed = _part(transcript, self._taken, transcript.committed_words)
            events += self._add(committed, continuing=self._taken > 0)
            self._taken = transcript.committed_words
        draft = _part(transcript, self._taken, len(transcript.words))
        follows = self._open is None or self._taken > 0 or self._continues(self._open, draft)
        whole = self._with(draft, continuing=self._taken > 0) if draft.text and follows else self._open
        return events + self._show(whole, may_end=True)

    def _add(self, transcript: Transcript, *, continuing: bool) -> list[SourceEvent]:
        """Add text to the open sentence and close those that it ends. ``continuing``: in the same segment."""
        events: list[SourceEvent] = []
        if transcript.is_noise or (transcript.rejected is None and not transcript.text.strip()):
            return events  # a noise does not end a sentence
        if self._open is not None and not continuing and not self._continues(self._open, transcript):
            events += self._close(self._open, before_pause=True)
        if transcript.rejected is not None:
            return events
        return events + self._take(self._with(transcript, continuing=continuing))

    def _with(self, transcript: Transcript, *, continuing: bool) -> _Text:
        """The open sentence with more text."""
        whole = _Text.of(transcript)
        if self._open is None:
            return whole
        marks = self._marks_before(whole, transcript)
        return _joined(self._open, _with_end(self._open, marks), whole, continuing=continuing)

    def _marks_before(self, following: _Text, transcript: Transcript) -> str | None:
        """The marks at the end of the open text, now that the next words are known; None to keep its own."""
        assert self._open is not None
        before = self._open.text[-CONTEXT:] + " "
        known = final_marks(self._open.text)
        if known == "." and is_end(before, following.text, word_lists(following.language)) is False:
            return None  # the full stop of an abbreviation
        marks = transcript.previous_end
        if following.text[:1].islower() and (marks or known) == ".":
            return ""  # recognisers write a small letter only where a sentence goes on
        return marks

    def pause(self, pause: Pause) -> list[SourceEvent]:
        """Nothing has been said for a while."""
        if self._open is None or pause.start_s < self._open.end_s - _OVERSHOOT_S:
            return []
        length_ms = 1000 * pause.length_s
        if length_ms < self._ending_pause_ms(self._open):
            return []
        return self._close(self._open, before_pause=True)

    def end(self) -> list[SourceEvent]:
        """The input has ended."""
        return [] if self._open is None else self._close(self._open, before_pause=True)

    def _take(self, whole: _Text) -> list[SourceEvent]:
        """Close the sentences of ``whole`` that have ended, and leave its last one open."""
        events: list[SourceEvent] = []
        for sentence in self._sentences(whole):
            left, whole = _divided(whole, len(sentence))
            events += self._close(left, before_pause=whole.start_s - left.end_s >= _PAUSE_S)
        long = 1000 * (whole.end_s - whole.start_s) >= _LONG_SHARE * self._options.max_sentence_ms
        if long and ends_open(whole.text, whole.language):
            cut = last_clause(whole.text)
            if cut is not None and cut >= self._committed:
                left, whole = _divided(whole, cut)
                events += self._close(left, before_pause=whole.start_s - left.end_s >= _PAUSE_S)
        self._open = whole
        return events

    def _sentences(self, whole: _Text, committed: int = 0) -> list[str]:
        """The sentences at the beginning of ``whole`` that have ended; none ends before its first ``committed`` characters."""
        committed = max(committed, self._committed)
        *ended, _ = split_sentences(whole.text, whole.language) or [""]
        # Committed text stays in its sentence, even if an end inside it shows only now.
        first = ""
        while ended and len(first.rstrip()) < committed:
            first += ended.pop(0)
        if len(first.rstrip()) < committed:
            return []
        return [first, *ended] if first else ended

    def _continues(self, before: _Text, after: Transcript) -> bool:
        return (
            after.rejected is None
            and after.language == before.language
            and 1000 * (after.start_s - before.end_s) < self._ending_pause_ms(before)
            and 1000 * (before.end_s - before.start_s) < self._options.max_sentence_ms
        )

    def _ending_pause_ms(self, text: _Text) -> int:
        """The pause that ends the sentence."""
        longest = self._options.long_pause_ms
        return longest if ends_open(text.text, text.language) else min(longest, self._options.pause_ms)

    def _show(self, now: _Text | None, *, may_end: bool = False) -> list[SourceEvent]:
        """Show the open sentence, with or without a draft after it.

        ``may_end``: the draft may reach into the next sentence, whose words are shown there.
        """
        ahead: _Text | None = None
        committed = _settled_length(self._open.text) if self._open is not None else 0
        if may_end and now is not None and (ended := self._sentences(now, committed)):
            now, ahead = _divided(now, len(ended[0]))
        events, self._shown = self._changed(self._shown, self._sentence, now, committed)
        more, self._ahead = self._changed(self._ahead, self._sentence + 1, ahead, 0)
        return events + more

    @property
    def _committed(self) -> int:
        """Length of the open sentence's committed text."""
        return self._shown.committed if self._shown is not None else 0

    def _changed(
        self, shown: SourceText | None, number: int, now: _Text | None, committed: int
    ) -> tuple[list[SourceEvent], SourceText | None]:
        """The text of a sentence as it is to be shown, as an event if it differs from what is ``shown``; None: nothing of it.

        At least the first ``committed`` characters are committed.
        """
        if now is None:
            if shown is None or not shown.text:
                return [], shown
            newest = SourceText(number, shown.language, "")
        else:
            committed = max(committed, shown.committed if shown else 0)
            if (now.text, committed) == ((shown.text, shown.committed) if shown else ("", 0)):
                return [], shown
            newest = SourceText(number, now.language, now.text, committed, now.start_s, now.end_s, now.heard_s)
        replacing(shown, newest)
        return [newest], newest

    def _close(self, ended: _Text, *, before_pause: bool) -> list[SourceEvent]:
        events, _ = self._changed(self._shown, self._sentence, ended, len(ended.text))
        words = ended.words if ended.timed else ()
        sentence = SourceSentence(
            self._sentence, ended.language, ended.text, ended.start_s, ended.end_s, ended.heard_s, words, before_pause
        )
        self._open, self._sentence = None, self._sentence + 1
        self._shown, self._ahead = self._ahead, None
        return [*events, sentence]


def _settled_length(text: str) -> int:
    """Length of the text without the marks at its end that later words may change."""
    return _SOFT_TAIL.search(text).start()  # type: ignore[union-attr]  # matches every text


def _with_end(open_text: _Text, marks: str | None) -> _Text:
    """The text with ``marks`` at its end, as they were heard together with the next words."""
    old = final_marks(open_text.text)
    if marks is None or marks == old or not open_text.text.endswith(old):
        return open_text
    if not set(marks) <= set(MARKS + CLAUSE_MARKS) or open_text.text.endswith(tuple(CLOSERS)):
        return open_text  # closing quotation marks may belong to either text
    text = (open_text.text.removesuffix(old) + marks).rstrip()  # French puts a blank before "?"
    last = open_text.words[-1]
    if not text.strip() or not last.text.rstrip().endswith(old):
        return open_text
    words = (*open_text.words[:-1], replace(last, text=last.text.rstrip().removesuffix(old) + marks))
    return replace(open_text, text=text, words=words)


def _part(transcript: Transcript, begin: int, end: int, *, ended: bool = False) -> Transcript:
    """The words of a transcript from ``begin`` to ``end`` as a transcript of their own.

    Unless ``ended``, the last of them ends as the recogniser says: more may have been spoken since.
    """
    words = transcript.words[begin:end]
    last = ended or not words
    return replace(
        transcript,
        text="".join(word.text for word in words).strip(),
        words=words,
        start_s=words[0].start_s if words and begin else transcript.start_s,
        end_s=transcript.end_s if last else words[-1].end_s,
        speech_end_s=transcript.speech_end_s if last else None,
        previous_end=final_marks(transcript.words[begin - 1].text) if begin else transcript.previous_end,
    )


def _ended(text: _Text, transcript: Transcript) -> _Text:
    """The text at the end of a segment that has no further words."""
    *before, last = text.words
    end_s = transcript.end_s if transcript.speech_end_s is None else transcript.speech_end_s
    end_s = max(last.start_s, end_s)
    return replace(text, words=(*before, replace(last, end_s=end_s)), end_s=end_s, heard_s=transcript.heard_s)


def _joined(heard: _Text, first: _Text, second: _Text, *, continuing: bool) -> _Text:
    """``first`` and ``second`` as one text. ``heard`` is ``first`` before ``second`` corrected its marks.

    ``continuing``: both are of one segment, so the second begins with a blank if there is one between them.
    """
    *before, last = first.words
    following, *after = second.words
    space = " " if sets_sentences_apart(second.language) else ""
    if continuing:
        space = " " if following.text[:1].isspace() else ""
    words = (
        *before,
        replace(last, text=last.text.rstrip()),
        replace(following, text=space + following.text.lstrip()),
        *after,
    )
    return replace(
        second,
        text=first.text + space + second.text,
        words=tuple(word for word in words if word.text),
        start_s=first.start_s,
        earlier=common_length(heard.text, first.text),
        earlier_s=first.heard_s,
        timed=first.timed and second.timed,
    )


def _divided(whole: _Text, at: int) -> tuple[_Text, _Text]:
    """The text before character ``at`` and the text from there on; both have letters or marks."""
    left: list[Word] = []
    right: list[Word] = []
    begin = -(len(whole.words[0].text) - len(whole.words[0].text.lstrip()))  # the text begins without the first blank
    for word in whole.words:
        cut = min(len(word.text), max(0, at - begin))
        cut = cut if word.text[:cut].strip() else 0  # a word's blank stays with it
        begin += len(word.text)
        middle_s = word.start_s + (word.end_s - word.start_s) * cut / max(1, len(word.text))
        left += [replace(word, text=word.text[:cut], end_s=middle_s)] if word.text[:cut] else []
        right += [replace(word, text=word.text[cut:], start_s=middle_s)] if word.text[cut:] else []
    text, rest = whole.text[:at].strip(), whole.text[at:].strip()
    heard_s = whole.earlier_s if len(text) <= whole.earlier else whole.heard_s
    return (
        replace(whole, text=text, words=tuple(left), end_s=left[-1].end_s, heard_s=heard_s),
        replace(whole, text=rest, words=tuple(right), start_s=right[0].start_s, earlier=max(0, whole.earlier - at)),
    )
