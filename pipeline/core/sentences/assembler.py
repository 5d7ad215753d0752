"""Transcripts of segments → sentences, which may go on over pauses. Pure.

A sentence ends with a final mark that a word or a pause follows, with a long pause, at its maximum length, where the
language or the voice changes or speech is withheld, where uncertain text begins or ends, and at the end of the input. The final mark at the end of a segment is soft:
a recogniser that hears nothing after it writes a full stop in the middle of a sentence too. So it is open until the next
words or a pause decide.
"""

from __future__ import annotations

import copy
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, takewhile

from ...languages import CLAUSE_MARKS, CLOSERS, MARKS, final_marks, sets_sentences_apart
from ..captions.states import common_length
from ..events import Pause, SoundEvent, SourceSentence, SourceText, Transcript, Word
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
# Segments follow each other in time; a sample is shorter than this.
_SAME_S = 0.001
# From this share of the maximum length on, an unfinished sentence is cut at a clause mark in its newest text.
_LONG_SHARE = 0.75


@dataclass(frozen=True)
class _Text:
    """Text that has been recognised, with its times."""

    text: str
    words: tuple[Word, ...]
    """The words, at least one; their texts, joined and stripped, are ``text``."""
    language: str
    start_s: float
    end_s: float
    heard_s: float
    earlier: int
    """Length of the text that was heard before the last segment."""
    earlier_s: float
    """``heard_s`` of the text that was heard before the last segment."""
    timed: bool
    """Whether word times are known for all of the text."""
    uncertain: bool
    """Whether words may be misheard; see ``Transcript.uncertain``."""
    ends_surely: bool
    """See ``Transcript.ends_surely``."""

    @classmethod
    def of(cls, transcript: Transcript) -> _Text:
        end_s = transcript.end_s if transcript.speech_end_s is None else transcript.speech_end_s
        end_s = max(transcript.start_s, end_s)
        text = transcript.text.strip()
        words = transcript.words if "".join(word.text for word in transcript.words).strip() == text else ()
        if words:  # for the end of the last word, the endpointer is more accurate than the alignment
            ends_s = [*(min(word.end_s, end_s) for word in words[:-1]), end_s]
            words = tuple(
                replace(w, start_s=min(w.start_s, end_s), end_s=e) for w, e in zip(words, ends_s, strict=True)
            )
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
            transcript.uncertain,
            transcript.ends_surely,
        )


class SentenceAssembler:
    """Gives sentences their text and their end.

    The texts of its ``SourceSentence``s, joined, are those of the transcripts, apart from marks at the ends of segments
    that the next words corrected. Drafts of what follows the last transcript are shown in the sentences that they would make.
    """

    def __init__(self, options: SentenceOptions | None = None) -> None:
        self._options = options or SentenceOptions()
        self._open: _Text | None = None
        self._sentence = 0
        self._drafts: tuple[Transcript, ...] = ()
        """The drafts of the segments without a final transcript."""
        self._shown: dict[int, SourceText] = {}
        """The sentences in progress as they were put out last."""

    def push(self, transcript: Transcript) -> list[SourceEvent]:
        """Add the transcript of the next segment."""
        self._drafts = tuple(each for each in self._drafts if each.start_s >= transcript.end_s - _SAME_S)
        return [*self._add(transcript), *self._show()]

    def so_far(self, transcripts: Sequence[Transcript]) -> list[SourceEvent]:
        """Show what is heard so far of the segments that follow, as if it were all."""
        self._drafts = tuple(transcripts)
        return self._show()

    def pause(self, pause: Pause) -> list[SourceEvent]:
        """Nothing has been said for a while, and what was said before is all heard."""
        if self._open is None or pause.start_s < self._open.end_s - _OVERSHOOT_S:
            return []
        if 1000 * pause.length_s < self._ending_pause_ms(self._open):
            return []
        return [*self._close(self._open, before_pause=True), *self._show()]

    @property
    def goes_on_until_s(self) -> float:
        """Until when speech may go on with the open sentence, in seconds; 0 without one."""
        return self._open.end_s + self._ending_pause_ms(self._open) / 1000 if self._open is not None else 0.0

    def sound(self, sound: SoundEvent, caption: str, language: str) -> list[SourceEvent]:
        """A caption takes the place of the next sentence. Nothing that is said later goes on with the open one."""
        events = [] if self._open is None else self._close(self._open, before_pause=True)
        self._shown.pop(self._sentence, None)
        heard = SourceSentence(
            sentence=self._sentence,
            language=language,
            text=caption,
            start_s=sound.start_s,
            end_s=sound.end_s,
            heard_s=sound.heard_s,
            sound=sound.kind,
        )
        self._sentence += 1
        return [*events, heard, *self._show()]

    def end(self) -> list[SourceEvent]:
        """The input has ended."""
        self._drafts = ()
        return [*([] if self._open is None else self._close(self._open, before_pause=True)), *self._show()]

    def _add(self, transcript: Transcript, *, draft: bool = False) -> list[SourceEvent]:
        """Add text to the open sentence and close those that it ends. A ``draft`` is not cut for its length."""
        events: list[SourceEvent] = []
        if transcript.is_noise or (transcript.rejected is None and not transcript.text.strip()):
            return events  # a noise does not end a sentence
        if self._open is not None and not self._continues(self._open, transcript):
            events += self._close(self._open, before_pause=True)
        if transcript.rejected is not None:
            return events
        for another_voice, part in _turns(transcript):
            if self._open is not None and another_voice:
                events += self._close(self._open, before_pause=part.start_s - self._open.end_s >= _PAUSE_S)
            events += self._take(self._with(part), cut=not draft)
        if self._open is not None and not self._ending_pause_ms(self._open):
            events += self._close(self._open, before_pause=True)
        return events

    def _with(self, transcript: Transcript) -> _Text:
        """The open sentence with more text."""
        whole = _Text.of(transcript)
        if self._open is None:
            return whole
        marks = self._marks_before(whole, transcript)
        return _joined(self._open, _with_end(self._open, marks), whole)

    def _marks_before(self, following: _Text, transcript: Transcript) -> str | None:
        """The marks at the end of the open text, now that the next words are known; None to keep its own."""
        assert self._open is not None
        before = self._open.text[-CONTEXT:] + " "
        end_mark = final_marks(self._open.text)
        if end_mark == "." and is_end(before, following.text, word_lists(following.language)) is False:
            return None  # the full stop of an abbreviation
        marks = transcript.previous_end
        if following.text[:1].islower() and (marks or end_mark) == ".":
            return ""  # recognisers write a small letter only where a sentence goes on
        return marks

    def _take(self, whole: _Text, *, cut: bool) -> list[SourceEvent]:
        """Close the sentences of ``whole`` that have ended; leave the last one open, or if ``cut``, of a long one its last clause."""
        events: list[SourceEvent] = []
        *ended, _ = split_sentences(whole.text, whole.language) or [""]
        for sentence in ended:
            closed, whole = _divided(whole, len(sentence))
            events += self._close(closed, before_pause=whole.start_s - closed.end_s >= _PAUSE_S)
        long = 1000 * (whole.end_s - whole.start_s) >= _LONG_SHARE * self._options.max_sentence_ms
        if cut and long and ends_open(whole.text, whole.language):
            clause = last_clause(whole.text)
            if clause is not None:
                closed, whole = _divided(whole, clause)
                events += self._close(closed, before_pause=whole.start_s - closed.end_s >= _PAUSE_S)
        self._open = whole
        return events

    def _continues(self, before: _Text, after: Transcript) -> bool:
        return (
            after.rejected is None
            and (after.language, after.uncertain) == (before.language, before.uncertain)
            and 1000 * (after.start_s - before.end_s) < self._ending_pause_ms(before)
            and 1000 * (before.end_s - before.start_s) < self._options.max_sentence_ms
        )

    def _ending_pause_ms(self, text: _Text) -> int:
        """The pause that ends the sentence."""
        options = self._options
        if ends_open(text.text, text.language):
            return options.long_pause_ms
        sure = text.ends_surely and not _may_go_on(text)
        return min(options.long_pause_ms, options.pause_ms, options.sure_pause_ms if sure else options.pause_ms)

    def _show(self) -> list[SourceEvent]:
        """The sentences in progress, as far as they differ from what is shown: the open one, and those that drafts would make."""
        texts = self._in_progress()
        events: list[SourceEvent] = []
        for number in sorted({*self._shown, *texts}):
            shown, text = self._shown.get(number), texts.get(number)
            if text is None:  # there are fewer sentences than before
                assert shown is not None
                del self._shown[number]
                events.append(SourceText(number, shown.language, ""))
            elif shown is None or (shown.text, shown.steady, shown.language) != (text.text, text.steady, text.language):
                self._shown[number] = text
                events.append(text)
        return events

    def _in_progress(self) -> dict[int, SourceText]:
        ahead = copy.copy(self)
        ahead._shown, ahead._drafts = {}, ()
        steady_s = self._open.end_s if self._open is not None else 0.0
        texts: list[SourceSentence | SourceText] = []
        for draft in self._drafts:
            texts += [event for event in ahead._add(draft, draft=True) if isinstance(event, SourceSentence)]
            if draft.rejected is None and draft.steady_words:
                steady_s = min(draft.words[draft.steady_words - 1].end_s, _Text.of(draft).end_s)
        if (last := ahead._open) is not None:
            words = last.words if last.timed else ()
            texts.append(_sentence(ahead._sentence, last, words, before_pause=False))
        begun = self._sentence if self._open is not None else self._sentence - 1  # those after it are all drafts
        return {
            text.sentence: _draft(replace(text, text=_begun(text.text)) if text.sentence > begun else text, steady_s)
            for text in texts
            if isinstance(text, SourceSentence)
        }

    def _close(self, ended: _Text, *, before_pause: bool) -> list[SourceEvent]:
        sentence = _sentence(self._sentence, ended, ended.words if ended.timed else (), before_pause=before_pause)
        shown = self._shown.pop(self._sentence, None)
        self._open, self._sentence = None, self._sentence + 1
        if shown is not None and shown.text == sentence.text and shown.steady == len(shown.text):
            return [sentence]
        return [_draft(sentence, math.inf), sentence]


def _may_go_on(text: _Text) -> bool:
    """Whether the mark at the end may be that of an abbreviation."""
    before, lists = text.text[-CONTEXT:] + " ", word_lists(text.language)
    return any(is_end(before, after, lists) is False for after in ("Xxx", "xxx", "5"))


def _turns(transcript: Transcript) -> list[tuple[bool, Transcript]]:
    """The parts of a transcript that are each in one voice, and whether that is another one than before."""
    words = transcript.words
    if not transcript.turns or "".join(word.text for word in words).strip() != transcript.text.strip():
        return [(False, transcript)]
    parts: list[tuple[bool, Transcript]] = []
    for first, end in pairwise(sorted({0, *transcript.turns, len(words)})):
        part = replace(transcript, text="".join(word.text for word in words[first:end]).strip(), words=words[first:end])
        if first:
            part = replace(part, start_s=words[first].start_s, previous_end=None)
        if end < len(words):
            part = replace(part, end_s=words[end - 1].end_s, speech_end_s=None)
        parts.append((first in transcript.turns, part))
    return parts


def _sentence(number: int, text: _Text, words: tuple[Word, ...], *, before_pause: bool) -> SourceSentence:
    return SourceSentence(
        sentence=number,
        language=text.language,
        text=text.text,
        start_s=text.start_s,
        end_s=text.end_s,
        heard_s=text.heard_s,
        words=words,
        before_pause=before_pause,
        uncertain=text.uncertain,
    )


def _draft(sentence: SourceSentence, steady_s: float) -> SourceText:
    """The text of a sentence in progress. Its words up to ``steady_s`` are steady, but not the marks after the last of all."""
    steady = len(sentence.text)
    if sentence.words and steady_s <= sentence.words[-1].end_s:
        heard = "".join(word.text for word in takewhile(lambda word: word.start_s < steady_s, sentence.words))
        steady = _settled_length(heard.strip())
    return SourceText(
        sentence=sentence.sentence,
        language=sentence.language,
        text=sentence.text,
        steady=steady,
        start_s=sentence.start_s,
        end_s=sentence.end_s,
        heard_s=sentence.heard_s,
    )


def _begun(text: str) -> str:
    """The draft of a sentence with a capital, which its final text will have: the first draft of a segment often has none."""
    return text[:1].upper() + text[1:] if not text[1:2].isupper() and len(text[:1].upper()) == 1 else text


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


def _joined(heard: _Text, first: _Text, second: _Text) -> _Text:
    """``first`` and ``second`` as one text. ``heard`` is ``first`` before ``second`` corrected its marks."""
    *before, last = first.words
    following, *after = second.words
    space = " " if sets_sentences_apart(second.language) else ""
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


def _divided(whole: _Text, index: int) -> tuple[_Text, _Text]:
    """The text before ``index`` and the text from there on; both have letters or marks."""
    before: list[Word] = []
    right: list[Word] = []
    begin = -(len(whole.words[0].text) - len(whole.words[0].text.lstrip()))  # the text begins without the first blank
    for word in whole.words:
        cut = min(len(word.text), max(0, index - begin))
        cut = cut if word.text[:cut].strip() else 0  # a word's blank stays with it
        begin += len(word.text)
        middle_s = word.start_s + (word.end_s - word.start_s) * cut / max(1, len(word.text))
        before += [replace(word, text=word.text[:cut], end_s=middle_s)] if word.text[:cut] else []
        right += [replace(word, text=word.text[cut:], start_s=middle_s)] if word.text[cut:] else []
    text, after = whole.text[:index].strip(), whole.text[index:].strip()
    heard_s = whole.earlier_s if len(text) <= whole.earlier else whole.heard_s
    return (
        replace(whole, text=text, words=tuple(before), end_s=before[-1].end_s, heard_s=heard_s),
        replace(whole, text=after, words=tuple(right), start_s=right[0].start_s, earlier=max(0, whole.earlier - index)),
    )
