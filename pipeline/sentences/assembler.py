"""Transcripts of segments → the text of whole sentences, which may go on over pauses. Pure.

The recogniser writes a full stop where a sentence ends, if it hears what follows in the same window. A transcript that ends
without one is continued by the next segment, unless the pause between them is long, the language changes, the next segment
is withheld, or the sentence has been going on for too long.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from pipeline.events import Transcript, Word
from pipeline.languages import sets_sentences_apart
from pipeline.sentences.boundaries import ends_open
from pipeline.sentences.options import SentenceOptions
from pipeline.sentences.splitting import split_sentences


class SentenceAssembler:
    """Holds back the last sentence of each transcript until it has ended.

    What it returns are transcripts to translate: the text is one or several whole sentences, the id and the end are those
    of the segment in which the last of them ends, and the words have their times in the audio. Joined in order, the texts
    are those of the transcripts that went in.
    """

    def __init__(self, options: SentenceOptions | None = None, *, active: Callable[[], bool] = lambda: True) -> None:
        """``active`` is asked at each transcript: while it is false, sentences end with their segments."""
        self._options = options or SentenceOptions()
        self._active = active
        self._open: Transcript | None = None

    def before(self, transcript: Transcript) -> Transcript | None:
        """The open sentence, if ``transcript``, which comes next, does not continue it. Call before ``push``."""
        return self.end() if self._open is not None and not self._continues(self._open, transcript) else None

    def push(self, transcript: Transcript) -> Transcript | None:
        """The sentences that have ended with this transcript; None where there are none."""
        if transcript.rejected is not None:
            return None
        whole = transcript if self._open is None else _joined(self._open, transcript)
        self._open = None
        if not self._active():
            return whole
        *_, last = split_sentences(whole.text, whole.language) or [""]
        if not last.strip() or not ends_open(last, whole.language):
            return whole
        ended, self._open = _divided(whole, len(whole.text) - len(last))
        return ended

    def end(self) -> Transcript | None:
        """The open sentence at the end of the input."""
        ended, self._open = self._open, None
        return ended

    def _continues(self, before: Transcript, after: Transcript) -> bool:
        pause_s = after.start_s - (before.end_s if before.speech_end_s is None else before.speech_end_s)
        return (
            after.rejected is None
            and after.language == before.language
            and 1000 * pause_s < self._options.long_pause_ms
            and 1000 * (before.end_s - before.start_s) < self._options.max_sentence_ms
        )


def _joined(first: Transcript, second: Transcript) -> Transcript:
    space = " " if sets_sentences_apart(second.language) else ""
    text = first.text.rstrip() + space + second.text.lstrip()
    words = [*_words(first), *_words(second)]
    at = len(_words(first))
    words[at] = replace(words[at], text=space + words[at].text.lstrip())
    words[at - 1] = replace(words[at - 1], text=words[at - 1].text.rstrip())
    return replace(second, start_s=first.start_s, text=text, words=tuple(words))


def _divided(whole: Transcript, at: int) -> tuple[Transcript | None, Transcript]:
    """The text before character ``at``, if there is any, and the text from there on."""
    words = _words(whole)
    begin = -(len(words[0].text) - len(words[0].text.lstrip()))  # the text begins without the first word's blank
    left: list[Word] = []
    right: list[Word] = []
    for word in words:
        cut = min(len(word.text), max(0, at - begin))
        cut = cut if word.text[:cut].strip() else 0  # a word's blank stays with it
        begin += len(word.text)
        left += [replace(word, text=word.text[:cut])] if word.text[:cut] else []
        right += [replace(word, text=word.text[cut:])] if word.text[cut:] else []
    tail = replace(whole, start_s=right[0].start_s, text=whole.text[at:], words=tuple(right))
    if not whole.text[:at].strip():
        return None, tail
    return replace(whole, text=whole.text[:at], words=tuple(left), speech_end_s=left[-1].end_s), tail


def _words(transcript: Transcript) -> tuple[Word, ...]:
    """The words of a transcript; all of its text as one where their times are not known."""
    end_s = transcript.end_s if transcript.speech_end_s is None else transcript.speech_end_s
    return transcript.words or (Word(transcript.text, transcript.start_s, max(transcript.start_s, end_s)),)
