"""When speech in progress is recognised again, and which of the words heard in it are steady. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate, takewhile

from ....languages import CLAUSE_MARKS, CLOSERS, MARKS, final_marks, letters
from ...events import SAMPLE_RATE, SpeechSegment, Word
from ...run.options import DraftOptions
from ..context import HeardSegment

# A draft may begin once this many times its computing time of new speech has come, so that finals find the recogniser idle.
_REST = 1.2
# Weight of the newest run in the estimate of the computing time.
_NEWEST = 0.5
# Seconds of steady speech that are heard again before the words that follow: enough to recognise it, and no more, since
# every word costs a step of the decoder.
_LEAST_KNOWN_S, _MOST_KNOWN_S = 2.0, 5.0
# A number may go on as long as fewer words than this follow it: "8,800", "8,800 and", "8,849".
_AFTER_NUMBER = 2
# Drafts also agree on what is wrong. A word less probable than the first is promised only so many seconds after its end, and one more
# probable than the second as soon as one draft has it; docs/benchmarks.md has the measurement.
_LEAST_PROBABLE, _PROBABLE = 0.35, 0.6
_IN_DOUBT_S = 5.0
# A word that ends in the last so many seconds may be cut in two: it is shown at once only if it is so probable; measured there, too.
_CUT_S, _PROBABLY_WHOLE = 0.4, 0.8
# The alignment may begin a word a little late.
_LEAD_S = 0.1


class DraftSchedule:
    """Decides when the segment in progress is recognised again. Silence alone brings no new draft."""

    def __init__(self, options: DraftOptions) -> None:
        self._options = options
        self.segment = -1
        """The first sample of the segment that was recognised last."""
        self._heard_s = 0.0
        self._took_s = 0.0

    def due(self, segment: SpeechSegment) -> bool:
        """Whether enough speech has come since the last draft."""
        if segment.start_sample != self.segment:
            return self.long_enough(segment)
        return segment.speech_end_s - self._heard_s >= max(self._options.every_ms / 1000, _REST * self._took_s)

    def long_enough(self, segment: SpeechSegment) -> bool:
        """Whether there is enough speech for a first draft."""
        return segment.speech_end_s - segment.speech_start_s >= self._options.first_ms / 1000

    def ran(self, segment: SpeechSegment, took_s: float) -> None:
        """``segment`` was recognised in ``took_s`` seconds."""
        self.segment, self._heard_s = segment.start_sample, segment.speech_end_s
        self._took_s = took_s if not self._took_s else (1 - _NEWEST) * self._took_s + _NEWEST * took_s


class Agreement:
    """The steady words of the segment in progress, and the words heard after them.

    LocalAgreement-2 (Liu, Spanakis and Niehues, 2020; Macháček, Dabre and Bojar, 2023): words on which two drafts in a
    row agree are steady; later drafts go on from them. Case and marks need not agree; see ``steadied``.
    """

    def __init__(self, margin_s: float) -> None:
        """``margin_s``: words that end in the last ``margin_s`` seconds of audio are not steady."""
        self._margin_s = margin_s
        self.begin(-1)

    def begin(self, segment: int) -> None:
        """Another segment is in progress, named by its first sample."""
        self.segment = segment
        self.steady: list[Word] = []
        self.draft: list[Word] = []
        """The words after the steady ones."""
        self._shown: list[Word] = []
        self._held = False  # whether what is shown is not what the newest draft has
        self._start = ""  # the marks heard before the segment
        self._after_sentence = False
        """Whether the marks before the draft were corrected since, and those before or those now end a sentence."""

    def push(
        self, heard: Sequence[Word], heard_s: float, missing_s: float = math.inf, stable: int | None = None
    ) -> None:
        """Take the newest draft: the words after the steady ones, from audio received until ``heard_s``.

        Nothing after ``missing_s`` is steady: where speech has no words yet. ``stable``: how many words the recogniser
        itself calls stable; then these are steady.
        """
        if stable is None:
            after_sentence = self._after_sentence or any(map(_ends_sentence, self.steady[-1:]))
            heard = steadied(self.draft, heard, after_sentence=after_sentence)
            stable = self._ended(heard[: agreeing_words(self.draft, heard)], heard_s, missing_s)
        self.steady += heard[:stable]
        self.draft, self._after_sentence = list(heard[stable:]), False

    def promised(self, heard_s: float, missing_s: float = math.inf, *, probable: bool = False) -> int:
        """How many of the words that are shown can be called steady to others. ``probable``: also words that one draft alone has."""
        sure = sum(1 for _ in takewhile(lambda word: _is_sure(word, heard_s), self.steady))
        if not probable or sure < len(self.steady):
            return sure
        draft = self.draft[: self._ended(self.draft, heard_s, missing_s)]
        likely = takewhile(lambda word: (word.probability or 0.0) >= _PROBABLE, draft)
        return max(sure, agreeing_words([*self.steady, *likely], self._shown))

    def visible(self, heard_s: float) -> list[Word]:
        """The words after the steady ones that are shown: those of the draft, but for some at the end that may be cut and are not
        shown already. A draft that takes back what is shown is not: the next one often has it again.
        """
        words = [*self.steady, *self.draft]
        again = max(len(self.steady), agreeing_words(self._shown, words))
        newest = [*words[:again], *takewhile(lambda word: _is_whole(word, heard_s), words[again:])]
        known = agreeing_words(self.steady, self._shown)
        takes_back = not _letters(newest).startswith(_letters(self._shown))
        self._held = takes_back and not self._held and _letters(self._shown[:known]) == _letters(self.steady)
        end_s = (
            self.steady[-1].end_s if self.steady else 0.0
        )  # in the newest draft, of which the old words know nothing
        old = [replace(w, start_s=max(w.start_s, end_s), end_s=max(w.end_s, end_s)) for w in self._shown[known:]]
        self._shown = [*self.steady, *old] if self._held else newest
        return self._shown[len(self.steady) :]

    def show_anew(self) -> None:
        """The next draft is shown whatever is shown."""
        self._shown, self._held = [], False

    def kept(self, heard: Sequence[Word], heard_s: float) -> int:
        """How many words of another hearing, which is shown, are those called steady at its beginning."""
        self._shown, self._held = list(heard), False
        return agreeing_words(self.steady[: self.promised(heard_s)], heard)

    def confirm(self, heard: Sequence[Word], heard_s: float, missing_s: float = math.inf) -> None:
        """The words of the segment as they are heard in a pause, with all of its group; they replace the drafts'."""
        certain = self._ended(heard, heard_s, missing_s)
        self.steady, self.draft, self._after_sentence = list(heard[:certain]), list(heard[certain:]), False
        self._shown, self._held = list(heard), False

    def _ended(self, words: Sequence[Word], heard_s: float, missing_s: float) -> int:
        """Number of words at the beginning that end early enough to be steady, without a number that may go on."""
        latest_s = heard_s - self._margin_s
        count = sum(1 for _ in takewhile(lambda word: word.end_s <= latest_s and word.start_s < missing_s, words))
        for index in reversed(range(count)):
            if count - index <= _AFTER_NUMBER and any(map(str.isdigit, words[index].text)):
                count = index
        return count

    def correct_marks(self, marks: str | None) -> None:
        """Replace the marks after the last steady word by those heard there together with the next words, if any.

        If no word is steady, they are the marks before the segment.
        """
        if marks is None:
            return
        if self.steady:
            last = self.steady[-1].text.rstrip()
            before = final_marks(last)
            self.steady[-1] = replace(self.steady[-1], text=last.removesuffix(before) + marks)
        else:
            before, self._start = self._start, marks
        self._after_sentence = bool(set(MARKS) & {*before, *marks})


def _is_sure(word: Word, heard_s: float) -> bool:
    """Whether a word on which drafts agree is probable enough, or has stayed long enough, to be promised."""
    unlikely = word.probability is not None and word.probability < _LEAST_PROBABLE
    return not unlikely or heard_s - word.end_s >= _IN_DOUBT_S


def _is_whole(word: Word, heard_s: float) -> bool:
    return word.end_s <= heard_s - _CUT_S or word.probability is None or word.probability >= _PROBABLY_WHOLE


def agreeing_words(old: Sequence[Word], new: Sequence[Word]) -> int:
    """Number of words at the beginning of ``new`` that ``old`` begins with too, whatever their case and marks.

    Text without spaces may be divided into words differently: they agree up to a place where both have a boundary.
    """
    pairs = zip(_letters(old), _letters(new), strict=False)
    same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
    ends = set(accumulate(len(letters(word.text)) for word in old))
    end = agreeing = 0
    for number, word in enumerate(new, 1):
        end += len(letters(word.text))
        if end > same:
            break
        if end in ends:
            agreeing = number
    return agreeing


def steadied(old: Sequence[Word], new: Sequence[Word], *, after_sentence: bool = False) -> list[Word]:
    """``new``, written as in ``old`` as far as they have the same words and differ only in case or in commas and the like.

    These differ by chance, and each change would take back all words that follow. A word is written as in ``new``, which has
    heard more, if ``old`` ends with it, or if it ends or begins a sentence in one of the drafts: the mark and the capital
    letter after it belong together. ``after_sentence``: a sentence may have ended before the first word.
    """
    words = list(new)
    begins = after_sentence
    for index, (before, now) in enumerate(zip(old[:-1], new, strict=False)):
        if letters(before.text) != letters(now.text):
            break
        ends = _ends_sentence(before) or _ends_sentence(now)
        if not begins and not ends and _without_commas(before) == _without_commas(now):
            words[index] = replace(now, text=before.text)
        begins = ends
    return words


def _ends_sentence(word: Word) -> bool:
    return bool(set(MARKS) & set(final_marks(word.text.rstrip().rstrip(CLOSERS))))


def _without_commas(word: Word) -> str:
    return word.text.strip().rstrip(CLAUSE_MARKS).casefold()


def cut_after_steady(
    segment: SpeechSegment, steady: Sequence[Word], *, whole: bool = False, doubtful: int = 0
) -> tuple[HeardSegment, SpeechSegment]:
    """A segment with steady words in two parts: the last of these words, with their audio, and what follows them.

    ``whole``: all of the steady words, not only as many as help to hear the rest. ``doubtful``: of the words at the beginning, how
    many are left out.
    """
    first = doubtful + (0 if whole else _first_known(steady[doubtful:]))
    begin_s = segment.start_s
    if first:
        begin_s = max([steady[first - 1].end_s, *(word.start_s - _LEAD_S for word in steady[first : first + 1])])
    start = segment.start_sample
    end = min(max(0, round(steady[-1].end_s * SAMPLE_RATE) - start), len(segment.samples))
    begin = min(max(0, round(begin_s * SAMPLE_RATE) - start), end)
    known = replace(
        segment, start_sample=start + begin, samples=segment.samples[begin:end], speech_end_sample=start + end
    )
    rest = replace(segment, start_sample=start + end, samples=segment.samples[end:])
    return HeardSegment(known, "".join(word.text for word in steady[first:]).strip()), rest


def _first_known(words: Sequence[Word]) -> int:
    """The index of the word from which on steady words are heard again: a beginning of a sentence or clause if possible."""
    best, rank = 0, -1
    for index in range(1, len(words)):
        length_s = words[-1].end_s - words[index].start_s
        if length_s < _LEAST_KNOWN_S:
            break
        marks = set(final_marks(words[index - 1].text))
        rank_here = 2 if marks & set(MARKS) else 1 if marks else 0
        if length_s <= _MOST_KNOWN_S and rank_here >= rank:
            best, rank = index, rank_here
    return best


def without_end(words: Sequence[Word]) -> list[Word]:
    """``words`` without the marks at their end: a recogniser ends what it hears with a full stop, wherever it is cut."""
    if not words:
        return []
    last = words[-1].text.rstrip()
    text = last.removesuffix(final_marks(last))
    return [*words[:-1], *([replace(words[-1], text=text)] if text.strip() else [])]


def _letters(words: Sequence[Word]) -> str:
    return "".join(letters(word.text) for word in words)
