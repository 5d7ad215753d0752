"""The Whisper recogniser: transcripts with confidence values; doubtful results are searched a second time."""

from __future__ import annotations

import copy
import dataclasses
import logging
import math
from collections.abc import Mapping, Sequence
from itertools import compress, groupby
from pathlib import Path

from pipeline.asr.context import Heard
from pipeline.asr.options import AsrConfig
from pipeline.asr.script import in_script, script_conversions
from pipeline.asr.terms import HeardTerms
from pipeline.asr.whisper.assignment import Share, doubted, in_order, sparse
from pipeline.asr.whisper.continuation import Continuation, divided, first_new_word
from pipeline.asr.whisper.engine import FULL_WINDOW_S, PADDING_S, Encoded, WhisperEngine, WhisperWeights
from pipeline.asr.whisper.files import check_window, find_recognizer, thresholds
from pipeline.asr.whisper.guards import Evidence, compression_ratio, rejection
from pipeline.asr.whisper.language_id import calibrated, decide
from pipeline.asr.whisper.packing import Pack, pack, unpack
from pipeline.asr.whisper.search import Search, Searcher, contradict
from pipeline.asr.whisper.validation import check_runs, check_whole, prompt_tokens
from pipeline.asr.whisper.words import TimedWord, moved, plausible, without_pauses
from pipeline.errors import UsageError
from pipeline.events import SAMPLE_RATE, MissingSpeech, Samples, SpeechSegment, Transcript, Word
from pipeline.store.packages import identify

log = logging.getLogger(__name__)

# Minimum beam size of a second search, which has at least twice the beams of the first.
_SECOND_SEARCH_BEAMS = 5
# The common window of several packs of speech. Up to here, the encoder of base takes 17 ms per second of speech, and 23 to
# 28 ms in windows from 22.5 to 30 s (one thread of a Zen 4).
_PACKS_WINDOW_S = 20.0
# In less speech than this at the end of a segment, nothing was said if nothing is heard after the words before it.
_LEAST_TAIL_S = 0.5
# Mean natural-log probability of the tokens of a draft's last word below which it is left out: it is probably cut off.
# Measured on 120 drafts of 100 s of speech: of the words below it one in three is in the next draft, of the others 93 %.
_CUT_OFF = math.log(0.5)
# Words at the end of a draft that may be left out because they are doubtful.
_MOST_LEFT_OUT = 2


class WhisperRecognizer:
    """A loaded Whisper model for one or more languages. Thread-safe; it keeps no state of a stream."""

    def __init__(
        self,
        config: AsrConfig,
        languages: str | Sequence[str],
        directory: Path | None = None,
        *,
        weights: WhisperWeights | None = None,
        several_calls: bool = False,
    ) -> None:
        """Load the model from ``directory`` (default: ``find_recognizer``) and check it with one run.

        Args:
            languages: the spoken language, or several; then the language of each segment is detected among them.
            weights: those of the directory, if they are in memory already.
            several_calls: see ``WhisperWeights.load``.

        Raises:
            ModelError: the directory is incomplete or damaged.
            DownloadError: the model is not cached and cannot be fetched.
            UsageError: the model does not know a language or cannot tell several apart, its window is too short, the
                prompt is too long, or no language uses the configured script.
        """
        self.config = config
        self.languages = (languages,) if isinstance(languages, str) else tuple(languages)
        if not self.languages or len(set(self.languages)) < len(self.languages):
            raise UsageError(
                f"the spoken languages are {', '.join(self.languages) or 'none'}; name one or more, each once"
            )
        self._convert = script_conversions(config.script, self.languages)
        directory = directory or find_recognizer(config)
        check_whole(directory)
        known = identify(directory)
        if known is None:
            log.warning("%s is not a known model; using Whisper's default thresholds", config.model)
        check_window(config, known)
        self.thresholds = thresholds(config, known)
        self.engine = WhisperEngine(
            directory,
            self.languages,
            compute_type=config.compute_type,
            threads=config.threads,
            weights=weights,
            several_calls=several_calls,
        )
        self._prompt = prompt_tokens(self.engine, config)
        self._searcher = Searcher(self.engine, self.thresholds, self._prompt, config.window_s)
        self._on_silence = check_runs(self.engine, config, self._prompt)

    def with_terms(self, terms: HeardTerms) -> WhisperRecognizer:
        """This model with the glossary of one stream; not thread-safe."""
        found = copy.copy(self)
        found._searcher = self._searcher.with_terms(terms)
        return found

    def transcribe(self, segment: SpeechSegment, beam_size: int | None = None, before: str | None = None) -> Transcript:
        """Recognise one segment. If the transcript's ``rejected`` is set, it must not be translated.

        Looping or doubtful results are searched again with more beams and the full window.

        Args:
            beam_size: replaces the configured beam size.
            before: language of the stream's last accepted transcript. With several languages, the segment is recognised
                in this one unless another is clearly more probable.
        """
        encoded = self.engine.encode(segment.samples, self.config.window_s)
        if len(self.languages) > 1:
            encoded = dataclasses.replace(encoded, language=self._decide(encoded, segment, before))
        return self._recognise(segment, encoded, beam_size)

    def _recognise(self, segment: SpeechSegment, encoded: Encoded, beam_size: int | None) -> Transcript:
        result = self._searcher.search(encoded, beam_size or self.config.beam_size)
        return self._checked(segment, result, beam_size)

    def _checked(self, segment: SpeechSegment, result: Search, beam_size: int | None) -> Transcript:
        """The transcript of a segment from the first search; a second one if that is doubtful."""
        beams, encoded = beam_size or self.config.beam_size, result.encoded
        if self._searcher.worth_second_search(result):
            full = self._encode(segment.samples, FULL_WINDOW_S, encoded.language)
            again = self._searcher.search(full, max(_SECOND_SEARCH_BEAMS, 2 * beams))
            if result.rejected == "repetition" or not contradict(result, again):
                result = max(result, again, key=lambda one: one.better)
        if result.rejected == "repetition" and (shorter := self._searcher.without_loop(result)) is not None:
            return self._transcript(segment, shorter, repeated=True)
        return self._transcript(segment, result)

    def transcribe_packed(
        self, segments: Sequence[SpeechSegment], beam_size: int | None = None, before: str | None = None
    ) -> list[Transcript]:
        """Recognise consecutive segments in one window, or one window for each run in one language.

        Segments that have no words in the window, doubtful ones or few for their length are recognised alone; so are
        neighbours that may have words of theirs. All are if the window's result is doubtful, is longer than Whisper's token
        limit, or its words cannot be assigned to the segments.

        Args:
            beam_size, before: see ``transcribe``.

        Returns:
            One transcript per segment.
        """
        if len(self.languages) == 1:
            return self._recognise_packed(segments, self.languages[0], beam_size)
        if len(segments) == 1:
            return [self.transcribe(segments[0], beam_size, before)]
        languages: list[str] = []
        for segment in segments:
            before = segment.language or self._decide(self._searcher.encode_start(segment.speech), segment, before)
            languages.append(before)
        found: list[Transcript] = []
        for language, run in groupby(zip(languages, segments, strict=True), key=lambda pair: pair[0]):
            found += self._recognise_packed([segment for _, segment in run], language, beam_size)
        return found

    def _recognise_packed(
        self, segments: Sequence[SpeechSegment], language: str, beam_size: int | None
    ) -> list[Transcript]:
        if len(segments) == 1:
            return [self._alone(segments[0], language, beam_size)]
        packed = pack(segments)
        encoded = self._encode(packed.samples, self.config.window_s, language)
        result = self._searcher.search(encoded, beam_size or self.config.beam_size)
        (found,) = self._divided_up([packed], [result], beam_size)
        return found

    def transcribe_packs(
        self, packs: Sequence[Sequence[SpeechSegment]], beam_size: int | None = None
    ) -> list[list[Transcript]]:
        """Recognise several windows of a recording at once, each of consecutive segments: faster than one after another.

        Segments are recognised alone as in ``transcribe_packed``.

        Args:
            beam_size: see ``transcribe``.

        Returns:
            One transcript per segment of each window. They do not depend on the other windows, but may differ from those
            of ``transcribe_packed``: use this for all windows of a recording, also for a single one.

        Raises:
            ValueError: the recogniser is for several languages, which are detected one window after another.
        """
        if len(self.languages) > 1:
            raise ValueError(f"windows of {len(self.languages)} languages cannot be recognised at once")
        packed = [pack(segments) for segments in packs]
        encoded = [self._encode(each.samples, self._packs_window_s(each), self.languages[0]) for each in packed]
        results = self._searcher.search_several(encoded, beam_size or self.config.beam_size)
        several = [len(each.segments) > 1 for each in packed]
        joined, of_joined = [*compress(packed, several)], [*compress(results, several)]
        divided_up = iter(self._divided_up(joined, of_joined, beam_size))
        return [
            next(divided_up) if len(each.segments) > 1 else [self._checked(each.segments[0], result, beam_size)]
            for each, result in zip(packed, results, strict=True)
        ]

    def _packs_window_s(self, packed: Pack) -> float:
        """The window of one of several packs, in seconds: they share the decoder's runs if they have the same."""
        short = len(packed.samples) / SAMPLE_RATE + PADDING_S <= self.config.window_s
        return self.config.window_s if short else max(self.config.window_s, _PACKS_WINDOW_S)

    def _divided_up(
        self, packed: Sequence[Pack], results: Sequence[Search], beam_size: int | None
    ) -> list[list[Transcript]]:
        """The transcripts of each pack's segments, from its search and from searches of the segments that need one alone.

        Segments that are recognised alone share the decoder's runs.
        """
        shares = [self._shares(each, result) for each, result in zip(packed, results, strict=True)]
        language = results[0].encoded.language if results else self.languages[0]
        unknown = [share.segment for each in shares for share in each if share.unsure]
        alone = self._each_alone(unknown, language, beam_size)
        neighbours = [one for each in shares for one in doubted(each, alone)]
        alone |= self._each_alone(neighbours, language, beam_size)
        return [in_order(each, alone) for each in shares]

    def _shares(self, packed: Pack, result: Search) -> list[Share]:
        """What a pack's search says of each segment: nothing if it is doubtful or its words cannot be placed."""
        if result.rejected is None and result.hypothesis.ended:
            words = result.words
            if plausible(words, result.hypothesis.text.strip(), 0.0, len(packed.samples) / SAMPLE_RATE):
                placed = unpack(without_pauses(words), packed)
                missing = unpack(result.missing, packed)
                return [
                    self._share(segment, result, own, without) if own else Share(segment, (), None)
                    for segment, own, without in zip(packed.segments, placed, missing, strict=True)
                ]
        return [Share(segment, (), None) for segment in packed.segments]

    def _share(
        self, segment: SpeechSegment, result: Search, own: Sequence[Word], missing: Sequence[MissingSpeech]
    ) -> Share:
        found = self._own(segment, result, own, missing)
        timed = [word for word in own if isinstance(word, TimedWord)]
        if found is not None and self._searcher.is_foreign(segment.speech, timed, result.encoded.language):
            return Share(segment, (), None)
        return Share(segment, own, found, sparse(segment, own))

    def transcribe_after(
        self,
        context: Sequence[Heard],
        segment: SpeechSegment,
        beam_size: int | None = None,
        before: str | None = None,
        language: str | None = None,
    ) -> Transcript:
        """Recognise ``segment`` in one window with ``context``, the segments before it, whose texts stay as they are.

        ``previous_end`` of the transcript has the marks heard before it. If the new words are doubtful, the segment is
        recognised alone; marks and the case of the first letter before it are still those heard in the context. If the
        context is not heard again, or the segment is in another language, only the segment is recognised.

        Args:
            beam_size, before: see ``transcribe``; ``before`` is the language of the context.
            language: the language spoken, if it is known.
        """
        language = language or self._only_language
        if language is None:
            language = segment.language
            if language is None:
                language = self._decide(self.engine.encode(segment.samples, self.config.window_s), segment, before)
            if language != before:
                return self._alone(segment, language, beam_size)
        after = self._after(context, segment, language, beam_size or self.config.beam_size)
        if after is None:
            return self._alone(segment, language, beam_size)
        in_parts = divided(context[-1].segment, segment)
        if in_parts and not after.own and segment.speech_end_s - segment.start_s < _LEAST_TAIL_S:
            return after.marked(self._build(segment, language, "", 0.0, 0.0, None, ()))
        found = self._own(segment, after.result, after.own, after.missing, judged=in_parts)
        found = found or self._alone(segment, language, beam_size)
        return after.marked(found) if after.own else found

    def draft(
        self,
        context: Sequence[Heard],
        segment: SpeechSegment,
        before: str | None = None,
        language: str | None = None,
    ) -> Transcript | None:
        """Recognise a segment in progress: one greedy search. Doubtful words at its end are left out.

        Args:
            context: what was said before it, as in ``transcribe_after``; not used if the language must be detected.
            before: see ``transcribe``.
            language: the language spoken, if it is known.

        Returns:
            The transcript, which is empty if nothing was heard after the context; None if the result is doubtful.
        """
        language = language or self._only_language
        if context and language is not None:
            after = self._after(context, segment, language, beams=1, limited=True)
            if after is None:
                return None
            if not after.own:
                return after.marked(self._build(segment, language, "", 0.0, 0.0, None, ()))
            judged = after.result.rejected is None and divided(context[-1].segment, segment)
            found = self._sure(segment, after.result, after.own, after.missing, judged=judged)
            return after.marked(found) if found is not None else None
        encoded = self.engine.encode(segment.samples, self.config.window_s)
        encoded = dataclasses.replace(encoded, language=language or self._decide(encoded, segment, before))
        result = self._searcher.search(encoded, 1, limited=True)
        if result.rejected not in (None, "uncertain") or not result.hypothesis.ended:
            return None
        return self._sure(segment, result, self._words_of(segment, result), self._missing_of(segment, result))

    def _sure(
        self,
        segment: SpeechSegment,
        result: Search,
        own: Sequence[Word],
        missing: Sequence[MissingSpeech],
        *,
        judged: bool = False,
    ) -> Transcript | None:
        """The transcript of words of which the last ones may be doubtful: they may be cut off. None if all are."""
        cut_off = bool(own) and isinstance(own[-1], TimedWord) and own[-1].mean_log_probability < _CUT_OFF
        for left_out in range(int(cut_off), min(len(own), _MOST_LEFT_OUT + 1)):
            found = self._own(segment, result, own[: len(own) - left_out], missing, judged=judged)
            if found is not None:
                return found if found.words else None
        return None

    def _after(
        self, context: Sequence[Heard], segment: SpeechSegment, language: str, beams: int, *, limited: bool = False
    ) -> Continuation | None:
        """Search in one window with the context; None if the result is doubtful or the context is not heard again."""
        packed = pack([*(each.segment for each in context), segment])
        encoded = self._encode(packed.samples, self.config.window_s, language)
        begin_s = packed.offsets[-1] / SAMPLE_RATE
        result = self._searcher.search(encoded, beams, limited=limited, from_s=begin_s)
        accepted = (None, "uncertain") if limited else (None,)  # a draft is judged by its new words
        if result.rejected not in accepted or not result.hypothesis.ended:
            return None
        words = result.words
        if not plausible(words, result.hypothesis.text.strip(), 0.0, len(packed.samples) / SAMPLE_RATE):
            return None
        shown = in_script("", words, self._convert[language])[1]  # as the known text
        new = first_new_word(" ".join(each.text for each in context), shown, begin_s)
        if new is None:
            return None
        in_parts = divided(context[-1].segment, segment)
        if not in_parts and self._searcher.is_foreign(segment.speech, words[new:], language):
            return None
        shift_s = segment.start_s - begin_s
        own = [
            dataclasses.replace(
                word,
                start_s=max(word.start_s + shift_s, segment.start_s),
                end_s=max(word.end_s + shift_s, segment.start_s),
            )
            for word in without_pauses(words[new:])
        ]
        missing = tuple(moved(each, shift_s) for each in result.missing)
        return Continuation(result, own, words[new - 1] if new else None, missing)

    @property
    def _only_language(self) -> str | None:
        return self.languages[0] if len(self.languages) == 1 else None

    def _alone(self, segment: SpeechSegment, language: str, beam_size: int | None) -> Transcript:
        return self._recognise(segment, self._encode(segment.samples, self.config.window_s, language), beam_size)

    def _each_alone(
        self, segments: Sequence[SpeechSegment], language: str, beam_size: int | None
    ) -> dict[int, Transcript]:
        """The transcripts, by segment id, of segments that are recognised each alone but share the decoder's runs."""
        encoded = [self._encode(segment.samples, self.config.window_s, language) for segment in segments]
        results = self._searcher.search_several(encoded, beam_size or self.config.beam_size)
        return {
            segment.id: self._checked(segment, result, beam_size)
            for segment, result in zip(segments, results, strict=True)
        }

    def _encode(self, samples: Samples, window_s: float, language: str) -> Encoded:
        return dataclasses.replace(self.engine.encode(samples, window_s), language=language)

    def detect(self, samples: Samples) -> Mapping[str, float]:
        """See ``LanguageDetector``."""
        if len(self.languages) == 1:
            return {}
        return calibrated(self.engine.detect(self._searcher.encode_start(samples)), self._on_silence)

    def _decide(self, encoded: Encoded, segment: SpeechSegment, before: str | None) -> str:
        """The language in which to recognise a segment, given its encoded audio or the beginning of it."""
        if segment.language is not None:
            return segment.language
        probabilities = calibrated(self.engine.detect(encoded), self._on_silence)
        decided = decide(probabilities, before, segment.speech_end_s - segment.start_s)
        log.debug("segment %d: %s (before: %s; %s)", segment.id, decided, before, probabilities)
        return decided

    def _own(
        self,
        segment: SpeechSegment,
        result: Search,
        own: Sequence[Word],
        missing: Sequence[MissingSpeech],
        *,
        judged: bool = False,
    ) -> Transcript | None:
        """The transcript of one segment of a window from its words, or None if they do not pass the checks.

        ``judged``: the window is one segment, divided, and has passed them. Few words alone would often seem uncertain.
        """
        probabilities = [p for word in own if isinstance(word, TimedWord) for p in word.log_probabilities]
        text = "".join(word.text for word in own).strip()
        sure = math.fsum(probabilities) / len(probabilities) if probabilities else 0.0
        no_speech = result.hypothesis.no_speech_probability
        rejected = rejection(Evidence(text, len(probabilities), sure, no_speech), self.thresholds)
        if rejected is not None and not (judged and rejected == "uncertain"):
            return None
        return self._build(segment, result.encoded.language, text, sure, no_speech, None, own, missing)

    def _transcript(self, segment: SpeechSegment, result: Search, *, repeated: bool = False) -> Transcript:
        found = result.hypothesis
        timed = self.config.word_timestamps and result.rejected is None
        words = self._words_of(segment, result) if timed else []
        return self._build(
            segment, result.encoded.language, found.text.strip(), found.log_probability, found.no_speech_probability,
            result.rejected, words, self._missing_of(segment, result), repeated=repeated,
        )  # fmt: skip

    def _words_of(self, segment: SpeechSegment, result: Search) -> list[TimedWord]:
        """The words of a search over a segment alone, with their times in the stream."""
        return [moved(word, segment.start_s) for word in result.words]

    def _missing_of(self, segment: SpeechSegment, result: Search) -> list[MissingSpeech]:
        """The stretches without words of a search over a segment alone, with their times in the stream."""
        return [moved(each, segment.start_s) for each in result.missing]

    def _build(
        self,
        segment: SpeechSegment,
        language: str,
        text: str,
        log_probability: float,
        no_speech: float,
        rejected: str | None,
        words: Sequence[Word],
        missing: Sequence[MissingSpeech] = (),
        *,
        repeated: bool = False,
    ) -> Transcript:
        timed = [Word(word.text, word.start_s, word.end_s, heard=word.heard) for word in without_pauses(words)]
        believed = self.config.word_timestamps and plausible(timed, text, segment.start_s, segment.end_s)
        shown, timed = in_script(text, timed if believed else (), self._convert[language])
        return Transcript(
            segment_id=segment.id,
            start_s=segment.speech_start_s,
            end_s=segment.end_s,
            text=shown,
            language=language,
            no_speech_probability=no_speech,
            mean_log_probability=log_probability,
            compression_ratio=compression_ratio(text),
            rejected=rejected,
            repeated=repeated,
            heard_s=segment.heard_s,
            speech_end_s=segment.speech_end_s,
            words=tuple(timed),
            missing=tuple(missing),
        )
