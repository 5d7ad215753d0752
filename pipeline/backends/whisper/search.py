"""Searches for the text of encoded audio, judged by the guards, and the words of what they find."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ...core import SAMPLE_RATE, MissingSpeech, Samples
from ...languages import letters
from ...store import Thresholds
from .coverage import inserted, unheard, without_others_time
from .engine import MOST_PROMPT_TOKENS, PADDING_S, EncodedAudio, Hypothesis, WhisperEngine
from .guards import SHORT_TOKENS, Evidence, find_loop, rejection, was_said
from .language_id import LEAST_S, SURE, foreign_words, in_another_language, whisper_code
from .words import TimedWord, mark_replaced, moved, placed, timed_words

if TYPE_CHECKING:
    from ...core import HeardTerms

log = logging.getLogger(__name__)

_BETWEEN_TERMS = ", "
# Natural-log probability that a term in the place of other words must add to the text. Both are given the term in the prompt.
_LEAST_GAIN = 0.0

# Mean natural-log probability of the tokens from which a greedy search is believed.
_SURE = -0.3
# A stretch without words is heard again with this much around it, and no more stretches of a window than this.
_AROUND_S = 0.15
_MOST_STRETCHES = 5
# A stretch of this length that stays without words is said to be missing also if nothing was found in it.
_LONG_STRETCH_S = 1.2


# The language of a part of a window is detected if the mean natural-log probability of its tokens is below this, as that of
# one in seven of English.
_DOUBTED = -0.4
# The language of a part is detected in its first seconds, encoded alone in this window. The part of an encoded pack that
# holds a segment would cost less, but it is coloured by its neighbours.
_DETECTION_WINDOW_S = 5.0

LANGUAGE = "language"
"""Why a text is rejected that is, or whose speech is, in another language."""


@dataclass(frozen=True)
class Search:
    """The result of one search, and why it is rejected, if it is."""

    encoded: EncodedAudio
    hypothesis: Hypothesis
    rejected: str | None
    words: tuple[TimedWord, ...] = ()
    """Timed from the audio's first sample; empty if the alignment fails."""
    missing: tuple[MissingSpeech, ...] = ()
    """Timed like the words."""
    uncertain: bool = False
    """Whether the text is shown as doubtful: it was probably said, but is not probable."""
    provisional: bool = False
    """Whether a longer search, for which there was no time, may find other words."""

    @property
    def sure(self) -> bool:
        """Whether more hypotheses would probably find the same words."""
        hypothesis = self.hypothesis
        return self.rejected is None and hypothesis.ended and hypothesis.log_probability >= _SURE

    @property
    def better(self) -> tuple[bool, bool, float]:
        """Sort key for searches of the same audio: accepted, then without repetition, then the most probable."""
        return self.rejected is None, self.rejected != "repetition", self.hypothesis.log_probability

    def moved(self, by_s: float) -> Search:
        """The result with times ``by_s`` seconds later."""
        words = tuple(moved(word, by_s) for word in self.words)
        return dataclasses.replace(self, words=words, missing=tuple(moved(stretch, by_s) for stretch in self.missing))


@dataclass(frozen=True)
class SearchOptions:
    """How to search."""

    beams: int
    """Number of hypotheses; 1 is greedy."""
    terms: HeardTerms | None = None
    """The glossary of the stream."""
    limited: bool = False
    """Whether to give up a loop sooner, because a draft must not take long."""
    brief: bool = False
    """Whether to give up searches that do not end sooner, and to leave the second search to a later call."""
    from_s: float = 0.0
    """What comes before is known, and not heard again."""


class Searcher:
    """Searches with one model, its thresholds and its prompt."""

    def __init__(self, engine: WhisperEngine, thresholds: Thresholds, prompt: tuple[int, ...], window_s: float) -> None:
        """``prompt``: tokens of the text before the speech. ``window_s``: in which stretches without words are heard again."""
        self._engine, self._thresholds, self._prompt, self._window_s = engine, thresholds, prompt, window_s

    def search(self, encoded: EncodedAudio, options: SearchOptions) -> Search:
        """Search for the text and judge it. Sound in which nothing was heard is heard again by itself."""
        return self._completed(self._search(encoded, options), options)

    def _search(self, encoded: EncodedAudio, options: SearchOptions) -> Search:
        expected = options.terms.expected(encoded.language) if options.terms is not None else []
        prompt = self._prompt_with(expected)
        hypothesis = self._engine.generate(encoded, options.beams, prompt, limited=options.limited)
        return self._judged(encoded, self._short(encoded, hypothesis, options.beams, prompt), options, expected)

    def _short(self, encoded: EncodedAudio, hypothesis: Hypothesis, beams: int, prompt: tuple[int, ...]) -> Hypothesis:
        """The hypothesis, searched again without timestamps if it is short: the probability of a whole text is known for these."""
        if len(hypothesis.tokens) > SHORT_TOKENS:
            return hypothesis
        return self._engine.generate(encoded, beams, prompt, limited=True, timestamps=False)

    def search_several(self, encoded: Sequence[EncodedAudio], options: SearchOptions) -> list[Search]:
        """Search for the text of several windows in one language, and judge each.

        The search is greedy; windows in which it is not sure of its words are searched again with all hypotheses.
        """
        if options.terms is not None and not options.terms.empty:  # each prompt depends on what was heard before
            return [self.search(audio, options) for audio in encoded]
        results = self._searched(encoded, dataclasses.replace(options, beams=1, limited=options.brief))
        cut = [options.brief and not result.hypothesis.ended for result in results]
        results = [dataclasses.replace(result, provisional=early) for result, early in zip(results, cut, strict=True)]
        unsure = [number for number, result in enumerate(results) if options.beams > 1 and not result.sure]
        for limited in (False, True):  # what has ended is searched as it would be without haste
            numbers = [number for number in unsure if cut[number] == limited]
            again = self._searched(
                [encoded[number] for number in numbers], dataclasses.replace(options, limited=limited)
            )
            for number, result in zip(numbers, again, strict=True):
                results[number] = dataclasses.replace(result, provisional=limited)
        return [self._completed(result, options) for result in results]

    def _searched(self, encoded: Sequence[EncodedAudio], options: SearchOptions) -> list[Search]:
        hypotheses = self._engine.generate_several(encoded, options.beams, self._prompt, limited=options.limited)
        return [
            self._judged(audio, self._short(audio, hypothesis, options.beams, self._prompt), options)
            for audio, hypothesis in zip(encoded, hypotheses, strict=True)
        ]

    def _completed(self, result: Search, options: SearchOptions) -> Search:
        """The result with the words of stretches in which the search has left out what was said."""
        if result.rejected is not None or not result.hypothesis.ended or not result.words:
            return result
        encoded, words = result.encoded, without_others_time(result.words)
        tokens, missing = result.hypothesis.tokens, []
        stretches = unheard(words, encoded.samples, options.from_s)
        for start_s, end_s in stretches[:_MOST_STRETCHES]:
            begin_s = max(options.from_s, start_s - _AROUND_S)
            part = encoded.samples[round(begin_s * SAMPLE_RATE) : round((end_s + _AROUND_S) * SAMPLE_RATE)]
            alone = dataclasses.replace(self._engine.encode(part, self._window_s), language=encoded.language)
            again = self._search(alone, options)
            log.debug("%.1f to %.1f s without words: %r (%s)", start_s, end_s, again.hypothesis.text, again.rejected)
            if again.rejected is None and again.hypothesis.ended and again.words:
                words = inserted(words, [moved(word, begin_s) for word in again.words])
                tokens += again.hypothesis.tokens
            elif again.rejected not in ("empty", "silence") or end_s - start_s >= _LONG_STRETCH_S:
                missing.append(
                    MissingSpeech(start_s, end_s, again.rejected or "repetition", again.hypothesis.text.strip())
                )
        if not stretches:
            return result
        text = "".join(word.text for word in words)
        hypothesis = dataclasses.replace(result.hypothesis, tokens=tokens, text=text, replaced=())
        return dataclasses.replace(result, hypothesis=hypothesis, words=tuple(words), missing=tuple(missing))

    def _judged(
        self, encoded: EncodedAudio, hypothesis: Hypothesis, options: SearchOptions, expected: Sequence[str] = ()
    ) -> Search:
        words = self._words(encoded, hypothesis)
        if words and len(hypothesis.tokens) > SHORT_TOKENS:  # the thresholds are those of texts without timestamps
            mean = float(np.mean([p for word in words for p in word.log_probabilities]))
            # A phrase is repeated once too often if that takes no time, as if the token limit had ended the search.
            ended = hypothesis.ended and (placed(words) or find_loop(hypothesis.text, ended=False) is None)
            hypothesis = dataclasses.replace(hypothesis, log_probability=mean, ended=ended)
        rejected = rejection(_evidence(hypothesis), self._thresholds)
        if options.terms is not None and (rejected is None or (options.limited and rejected == "uncertain")):
            corrected = self._corrected(encoded, hypothesis, expected, options.terms)
            words = self._words(encoded, corrected) if corrected.tokens != hypothesis.tokens else words
            hypothesis = corrected
        result = Search(encoded, hypothesis, rejected, tuple(words))
        return result if rejected is not None else self._in_its_language(result)

    def _in_its_language(self, result: Search) -> Search:
        """The result without words in another script; rejected if nothing is left, or if another language is spoken."""
        encoded, hypothesis, words = result.encoded, result.hypothesis, result.words
        run = foreign_words([word.text for word in words] or [hypothesis.text], encoded.language)
        if run is not None:
            kept = (*words[: run[0]], *words[run[1] :])
            text = "".join(word.text for word in kept)
            if not letters(text):
                return dataclasses.replace(result, rejected=LANGUAGE)
            before, after = (sum(len(word.log_probabilities) for word in words[:place]) for place in run)
            tokens = (*hypothesis.tokens[:before], *hypothesis.tokens[after:])
            hypothesis = dataclasses.replace(hypothesis, text=text, tokens=tokens, replaced=())
            return self._in_its_language(dataclasses.replace(result, hypothesis=hypothesis, words=kept))
        if hypothesis.log_probability < SURE and encoded.audio_s >= LEAST_S and self._other_language(encoded):
            return dataclasses.replace(result, rejected=LANGUAGE)
        return result

    def _other_language(self, encoded: EncodedAudio) -> bool:
        if not self._engine.multilingual:
            return False
        return in_another_language(self._engine.detect(encoded), whisper_code(encoded.language))

    def is_foreign(self, samples: Samples, words: Sequence[TimedWord], language: str) -> bool:
        """Whether the speech in ``samples`` [n], of which ``words`` were heard in a longer window, is in another language."""
        if foreign_words([word.text for word in words], language) is not None:
            return True
        probabilities = [p for word in words for p in word.log_probabilities]
        if not probabilities or np.mean(probabilities) >= _DOUBTED or len(samples) < LEAST_S * SAMPLE_RATE:
            return False
        return self._other_language(dataclasses.replace(self.encode_start(samples), language=language))

    def encode_start(self, samples: Samples) -> EncodedAudio:
        """The first seconds of ``samples`` [n], encoded alone, for detecting the language."""
        start = samples[: round((_DETECTION_WINDOW_S - PADDING_S) * SAMPLE_RATE)]
        return self._engine.encode(start, _DETECTION_WINDOW_S)

    def _prompt_with(self, terms: Sequence[str]) -> tuple[int, ...]:
        """The prompt with as many of the terms as there is room for."""
        for count in range(len(terms), 0, -1):
            tokens = self._engine.tokens(f" {_BETWEEN_TERMS.join(terms[:count])}.")
            if len(tokens) + len(self._prompt) <= MOST_PROMPT_TOKENS:
                return (*tokens, *self._prompt)
        return self._prompt

    def _corrected(
        self, encoded: EncodedAudio, hypothesis: Hypothesis, expected: Sequence[str], terms: HeardTerms
    ) -> Hypothesis:
        """The hypothesis with the terms that were misheard in it."""

        def better(before: str, after: str, term: str) -> bool:
            prompt = self._prompt_with([*expected, *({term} - {*expected})])
            old = hypothesis.tokens if before == hypothesis.text else self._engine.tokens(before)
            new = self._engine.tokens(after)
            gain = self._engine.score(encoded, new, prompt) - self._engine.score(encoded, old, prompt)
            log.debug("%r or %r: %.1f", before, after, gain)
            return gain > _LEAST_GAIN

        text, replaced = terms.corrected(hypothesis.text, encoded.language, better)
        return (
            hypothesis
            if text == hypothesis.text
            else dataclasses.replace(hypothesis, text=text, tokens=self._engine.tokens(text), replaced=replaced)
        )

    def believed(self, result: Search) -> Search:
        """An uncertain result as one to show, if that was probably said; others as they are."""
        spoken = bool(result.words) and placed(result.words) and result.hypothesis.ended
        if result.rejected != "uncertain" or not spoken or not was_said(_evidence(result.hypothesis), self._thresholds):
            return result
        return self._in_its_language(dataclasses.replace(result, rejected=None, uncertain=True))

    def worth_second_search(self, result: Search) -> bool:
        """Whether a second search may help: not if the window probably holds no speech."""
        spoken = result.hypothesis.no_speech_probability <= self._thresholds.doubtful_no_speech
        return result.rejected == "repetition" or (result.rejected == "uncertain" and spoken)

    def without_loop(self, result: Search) -> Search | None:
        """The result cut after, or else before, the first occurrence of its loop; None if neither passes the checks."""
        hypothesis = result.hypothesis
        repetition = find_loop(hypothesis.text, hypothesis.ended)
        if repetition is None:
            return None
        once = self._without_words(result, repetition.once, repetition.end, repetition.begin)
        return once or self._without_words(result, repetition.begin, len(hypothesis.text), len(hypothesis.text))

    def _without_words(self, result: Search, begin: int, end: int, doubted: int) -> Search | None:
        """The result without the words in ``text[begin:end]``, or None if it fails the checks.

        The words from ``doubted`` to ``begin`` must also pass by themselves.
        """
        before = result.hypothesis
        tokens: list[int] = []
        phrase = slice(0, 0)
        token = character = 0
        for text, length in zip(*self._engine.divide(before.tokens, result.encoded.language), strict=True):
            if character + len(text) <= begin or character >= end:
                tokens += before.tokens[token : token + length]
            if doubted < character + len(text) <= begin:
                phrase = slice(phrase.start if phrase.stop else len(tokens) - length, len(tokens))
            token, character = token + length, character + len(text)
        if not tokens:
            return None
        # The token probabilities of a loop grow with each round: score the remaining tokens anew.
        try:
            _, sure = self._engine.align(result.encoded, tuple(tokens))
        except RuntimeError as error:  # a model without alignment heads
            log.warning("cannot cut a repetition (%s)", error)
            return None
        if phrase.stop and sure[phrase].mean() < self._thresholds.log_probability:
            return None
        text = self._engine.tokenizer.decode(tokens)
        hypothesis = dataclasses.replace(
            before, tokens=tuple(tokens), text=text, log_probability=float(sure.mean()), ended=True, replaced=()
        )
        evidence = Evidence(text.strip(), len(tokens), hypothesis.log_probability, before.no_speech_probability)
        if rejection(evidence, self._thresholds) is not None:
            return None
        words = tuple(self._words(result.encoded, hypothesis))
        return dataclasses.replace(result, hypothesis=hypothesis, rejected=None, words=words, missing=())

    def _words(self, encoded: EncodedAudio, hypothesis: Hypothesis) -> list[TimedWord]:
        """The words of a hypothesis, timed from the audio's first sample; empty if the alignment fails."""
        if not hypothesis.tokens:
            return []
        try:
            starts_s, sure = self._engine.align(encoded, hypothesis.tokens)
        except RuntimeError as error:  # keep the text without word times
            log.warning("cannot align words (%s); their times are estimated", error)
            return []
        if len(starts_s) != len(hypothesis.tokens) + 1:
            return []
        texts, lengths = self._engine.divide(hypothesis.tokens, encoded.language)
        words = timed_words(texts, lengths, starts_s.tolist(), sure.tolist())
        return mark_replaced(words, hypothesis.replaced)


def _evidence(hypothesis: Hypothesis) -> Evidence:
    return Evidence(
        text=hypothesis.text.strip(),
        tokens=len(hypothesis.tokens),
        log_probability=hypothesis.log_probability,
        no_speech=hypothesis.no_speech_probability,
        ended=hypothesis.ended,
        text_log_probability=hypothesis.text_log_probability,
    )


def contradict(first: Search, second: Search) -> bool:
    """Whether two searches give different texts of one or two words; neither is reliable then."""
    short = len(second.hypothesis.tokens) <= SHORT_TOKENS
    return short and letters(first.hypothesis.text) != letters(second.hypothesis.text)
