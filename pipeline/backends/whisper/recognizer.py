"""The Whisper recogniser: transcripts with confidence values; doubtful results are searched a second time."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain, groupby
from pathlib import Path

from ...core import DEFAULT, SAMPLE_RATE, RecognitionOptions, Samples, SpeechSegment, Transcript, first_new_word
from ...errors import UsageError
from ...languages import language_tag
from ...store import identify
from ..asr_options import AsrConfig
from ..script import in_script, script_conversions
from .continuation import Continuation, consecutive
from .coverage import within_sound
from .engine import FULL_WINDOW_S, PADDING_S, EncodedAudio, WhisperEngine
from .files import check_files, find_recognizer, thresholds
from .language_id import calibrated, decide, whisper_code
from .packing import Pack, Share, doubted, in_order, pack, sparse, unpack
from .search import Search, Searcher, SearchOptions, contradict
from .transcripts import NOTHING, Transcripts
from .weights import WhisperWeights
from .words import moved, plausible, without_pauses

log = logging.getLogger(__name__)

# Minimum beam size of a second search, which has at least twice the beams of the first.
_SECOND_SEARCH_BEAMS = 5
# The common window of several packs of speech. Longer ones take more time per second of speech.
_PACKS_WINDOW_S = 20.0
# The window of a draft as a share of the configured one: a fifth less time, and drafts are as good; docs/benchmarks.md has the measurement.
# It may be less than the model's least window: a draft that loops is not shown.
_DRAFT_WINDOW = 0.75


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
        """
        self.config = config
        self.languages = (languages,) if isinstance(languages, str) else tuple(languages)
        if not self.languages or len(set(self.languages)) < len(self.languages):
            raise UsageError(
                f"the spoken languages are {', '.join(self.languages) or 'none'}; name one or more, each once"
            )
        self._convert = script_conversions(config.script, self.languages)
        directory = directory or find_recognizer(config)
        model = identify(directory)
        check_files(directory, config, model)
        self.thresholds = thresholds(config, model)
        weights = weights or WhisperWeights.load(
            directory, config.compute_type, config.threads, several_calls, config.device
        )
        self.engine = WhisperEngine(weights, self.languages)
        self._prompt = self.engine.prompt(config)
        self._searcher = Searcher(self.engine, self.thresholds, self._prompt, config.window_s)
        self._on_silence = self.engine.check(config, self._prompt)
        self._transcripts = Transcripts(self.thresholds, self._convert, timed=config.word_timestamps)

    def transcribe(self, segments: Sequence[SpeechSegment], options: RecognitionOptions = DEFAULT) -> list[Transcript]:
        """Recognise consecutive segments in one window, or one window for each run in one language.

        With several languages, a segment is recognised in that before unless another is clearly more probable. Segments that
        have no words in the window, doubtful ones or few for their length are recognised alone; so are neighbours that may
        have words of theirs, and all if the window's result is. Looping or doubtful results are searched again with more beams
        and the full window.

        The context is for drafts only.
        """
        if len(segments) == 1:
            return [self._alone(segments[0], options)]
        if (only := options.language or self._only_language) is not None:
            return self._in_one_window(segments, replace(options, language=only))
        languages: list[str] = []
        before = options.before
        for segment in segments:
            before = self._decide(self._searcher.encode_start(segment.speech), segment, before)
            languages.append(before)
        transcripts: list[Transcript] = []
        for language, run in groupby(zip(languages, segments, strict=True), key=lambda pair: pair[0]):
            transcripts += self._in_one_window([segment for _, segment in run], replace(options, language=language))
        return transcripts

    def _in_one_window(self, segments: Sequence[SpeechSegment], options: RecognitionOptions) -> list[Transcript]:
        if len(segments) == 1:
            return [self._alone(segments[0], options)]
        packed = pack(segments)
        encoded = self._encode(packed.samples, self.config.window_s, options.language)
        (transcripts,) = self._divided_up([(packed, self._searcher.search(encoded, self._search(options)))], options)
        return transcripts

    def transcribe_batch(
        self, groups: Sequence[Sequence[SpeechSegment]], options: RecognitionOptions = DEFAULT
    ) -> list[list[Transcript]]:
        """Recognise several windows of a recording in the one language at once: faster than one after another.

        The transcripts do not depend on the other windows, but may differ from those of ``transcribe``: use this for all
        windows of a recording, also for a single one.
        """
        if len(self.languages) > 1:
            raise ValueError(f"windows of {len(self.languages)} languages cannot be recognised at once")
        packed = [pack(segments) for segments in groups]
        window_s = self.config.window_s
        short = [len(window.samples) / SAMPLE_RATE + PADDING_S <= window_s for window in packed]
        encoded = [  # windows of one length share the decoder's runs
            self._encode(window.samples, window_s if fits else max(window_s, _PACKS_WINDOW_S))
            for window, fits in zip(packed, short, strict=True)
        ]
        results = self._searcher.search_several(encoded, self._search(options))
        searched = list(zip(packed, results, strict=True))
        divided_up = iter(self._divided_up([pair for pair in searched if len(pair[0].segments) > 1], options))
        return [
            next(divided_up) if len(window.segments) > 1 else [self._checked(window.segments[0], result, options)]
            for window, result in searched
        ]

    def draft(self, segment: SpeechSegment, options: RecognitionOptions = DEFAULT) -> Transcript | None:
        """Recognise a segment in progress: one greedy search. Doubtful words at its end are left out.

        The context is not used if the language must be detected. The transcript is empty if nothing was heard after it.
        """
        search = replace(self._search(options), beams=1, limited=True)
        window_s = _DRAFT_WINDOW * self.config.window_s
        language = options.language or self._only_language
        if options.context and language is not None:
            after = self._after(segment, replace(options, language=language), search, window_s)
            if after is None:
                return None
            if not after.result.words:
                return after.marked(self._transcripts.build(segment, language, NOTHING))
            judged = after.result.rejected is None and after.in_parts
            transcript = self._transcripts.sure(segment, after.result, judged=judged)
            return after.marked(transcript) if transcript is not None else None
        result = self._searcher.search(self._alone_encoded(segment, options, window_s), search).moved(segment.start_s)
        if result.rejected not in (None, "uncertain") or not result.hypothesis.ended:
            return None
        return self._transcripts.sure(segment, result)

    def _search(self, options: RecognitionOptions) -> SearchOptions:
        return SearchOptions(self.config.beam_size, options.terms, brief=options.brief)

    def _checked(self, segment: SpeechSegment, result: Search, options: RecognitionOptions) -> Transcript:
        """The transcript of a segment from the first search; a second one if that is doubtful."""
        search, encoded = self._search(options), result.encoded
        worth = self._searcher.worth_second_search(result)
        if worth and options.brief:
            result = replace(result, provisional=True)
        elif worth:
            full = self._encode(segment.samples, FULL_WINDOW_S, encoded.language)
            again = self._searcher.search(full, replace(search, beams=max(_SECOND_SEARCH_BEAMS, 2 * search.beams)))
            if result.rejected == "repetition" or not contradict(result, again):
                result = max(result, again, key=lambda candidate: candidate.better)
        if result.rejected == "repetition" and (shorter := self._searcher.without_loop(result)) is not None:
            return self._transcripts.alone(segment, shorter, repeated=True)
        return self._transcripts.alone(segment, self._searcher.believed(result))

    def _divided_up(
        self, searched: Sequence[tuple[Pack, Search]], options: RecognitionOptions
    ) -> list[list[Transcript]]:
        """The transcripts of each pack's segments, from its search and from searches of the segments that need one alone.

        Segments that are recognised alone share the decoder's runs.
        """
        shares = [self._shares(packed, result) for packed, result in searched]
        options = replace(options, language=options.language or self._only_language)
        alone = self._each_alone([[share.segment for share in window if share.unsure] for window in shares], options)
        unsure = [doubted(window, transcripts) for window, transcripts in zip(shares, alone, strict=True)]
        more = self._each_alone(unsure, options)
        found = []
        for (_, result), window, first, rest in zip(searched, shares, alone, more, strict=True):
            in_doubt = result.provisional or any(each.provisional for each in (first | rest).values())
            transcripts = in_order(window, first | rest)
            found.append([replace(each, provisional=True) for each in transcripts] if in_doubt else transcripts)
        return found

    def _shares(self, packed: Pack, result: Search) -> list[Share]:
        """What a pack's search says of each segment: nothing if it is doubtful or its words cannot be placed."""
        if result.rejected is None and result.hypothesis.ended:
            words = result.words
            if plausible(words, result.hypothesis.text.strip(), 0.0, len(packed.samples) / SAMPLE_RATE):
                if any(segment.speech_start_sample is not None for segment in packed.segments):
                    words = tuple(within_sound(words, packed.samples))
                placed = unpack(without_pauses(words), packed)
                missing = unpack(result.missing, packed)
                return [
                    self._share(segment, replace(result, words=tuple(said), missing=tuple(without)))
                    for segment, said, without in zip(packed.segments, placed, missing, strict=True)
                ]
        return [Share(segment, (), None) for segment in packed.segments]

    def _share(self, segment: SpeechSegment, result: Search) -> Share:
        transcript = self._transcripts.accepted(segment, result) if result.words else None
        if not result.words or (
            transcript is not None and self._searcher.is_foreign(segment.speech, result.words, result.encoded.language)
        ):
            return Share(segment, (), None)
        return Share(segment, result.words, transcript, sparse(segment, result.words))

    def _after(
        self, segment: SpeechSegment, options: RecognitionOptions, search: SearchOptions, window_s: float
    ) -> Continuation | None:
        """Search in one window with the context; None if the result is doubtful or the context is not heard again."""
        context, language = options.context, options.language or self.languages[0]
        packed = pack([*(piece.segment for piece in context), segment])
        encoded = self._encode(packed.samples, window_s, language)
        begin_s = packed.offsets[-1] / SAMPLE_RATE
        result = self._searcher.search(encoded, replace(search, from_s=begin_s))
        if result.rejected not in (None, "uncertain") or not result.hypothesis.ended:
            return None
        words = result.words
        if not plausible(words, result.hypothesis.text.strip(), 0.0, len(packed.samples) / SAMPLE_RATE):
            return None
        shown = in_script("", words, self._convert[language])[1]  # as the known text
        new = first_new_word(" ".join(piece.text for piece in context), shown, begin_s)
        if new is None:
            return None
        in_parts = consecutive(context[-1].segment, segment)
        if not in_parts and self._searcher.is_foreign(segment.speech, words[new:], language):
            return None
        shift_s = segment.start_s - begin_s
        said = [
            replace(
                word,
                start_s=max(word.start_s + shift_s, segment.start_s),
                end_s=max(word.end_s + shift_s, segment.start_s),
            )
            for word in without_pauses(words[new:])
        ]
        missing = tuple(moved(stretch, shift_s) for stretch in result.missing)
        return Continuation(
            replace(result, words=tuple(said), missing=missing), words[new - 1] if new else None, in_parts
        )

    @property
    def _only_language(self) -> str | None:
        return self.languages[0] if len(self.languages) == 1 else None

    def _alone(self, segment: SpeechSegment, options: RecognitionOptions) -> Transcript:
        """Recognise a segment by itself, not in one window with others."""
        encoded = self._alone_encoded(segment, options, self.config.window_s)
        result = self._searcher.search(encoded, self._search(options))
        return self._checked(segment, result, options)

    def _alone_encoded(self, segment: SpeechSegment, options: RecognitionOptions, window_s: float) -> EncodedAudio:
        """The segment's audio, encoded, with its language."""
        encoded = self.engine.encode(segment.samples, window_s)
        language = options.language or self._only_language or self._decide(encoded, segment, options.before)
        return replace(encoded, language=language)

    def _each_alone(
        self, packs: Sequence[Sequence[SpeechSegment]], options: RecognitionOptions
    ) -> list[dict[int, Transcript]]:
        """For each pack the transcripts, by segment id, of its segments, which are recognised each alone but share the decoder's runs."""
        encoded = [
            [self._encode(segment.samples, self.config.window_s, options.language) for segment in segments]
            for segments in packs
        ]
        results = iter(self._searcher.search_several([*chain.from_iterable(encoded)], self._search(options)))
        return [
            {segment.id: self._checked(segment, next(results), options) for segment in segments} for segments in packs
        ]

    def _encode(self, samples: Samples, window_s: float, language: str | None = None) -> EncodedAudio:
        return replace(self.engine.encode(samples, window_s), language=language or self.languages[0])

    @property
    def calls_at_once(self) -> int:
        """How many calls run at the same time; further ones wait."""
        return self.engine.weights.calls_at_once

    @property
    def on_gpu(self) -> bool:
        """Whether the model computes on a GPU."""
        return str(self.engine.weights.model.device) == "cuda"

    def run_encoder(self, samples: Samples) -> object:
        """Run the encoder on ``samples`` [n]."""
        return self.engine.encode(samples, self.config.window_s)

    def knows(self, language: str) -> bool:
        """Whether the model was trained on the language."""
        return self.engine.multilingual and self.engine.knows(language)

    def pieces(self, word: str) -> int:
        """Into how many pieces the vocabulary splits a word."""
        return len(self.engine.tokenizer.encode(f" {word}"))

    def detect(self, samples: Samples) -> Mapping[str, float]:
        """The probability of each configured language in ``samples`` [n]; empty if there is only one."""
        if len(self.languages) == 1:
            return {}
        return self._probabilities(self._searcher.encode_start(samples))

    def guess(self, samples: Samples) -> Mapping[str, float]:
        """The probability of each language that the model knows, in the first 30 s of ``samples`` [n]; empty if it knows English alone."""
        if not self.engine.multilingual:
            return {}
        encoded = self.engine.encode(samples[: round(FULL_WINDOW_S * SAMPLE_RATE)], self.config.window_s)
        return {language_tag(code).language: probability for code, probability in self.engine.detect(encoded).items()}

    def _probabilities(self, encoded: EncodedAudio) -> dict[str, float]:
        """The probability of each language in encoded audio; their sum is 1."""
        probabilities = self.engine.detect(encoded)
        return calibrated({code: probabilities[whisper_code(code)] for code in self.languages}, self._on_silence)

    def _decide(self, encoded: EncodedAudio, segment: SpeechSegment, before: str | None) -> str:
        """The language in which to recognise a segment, given its encoded audio or the beginning of it."""
        if segment.language is not None:
            return segment.language
        probabilities = self._probabilities(encoded)
        decided = decide(probabilities, before, segment.speech_end_s - segment.start_s)
        log.debug("segment %d: %s (before: %s; %s)", segment.id, decided, before, probabilities)
        return decided
