"""The recogniser: speech segments in, transcripts with Whisper's doubts out; what is in doubt is looked at twice."""

from __future__ import annotations

import dataclasses
import logging
import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

# Whisper size → hub id. faster-whisper's own way to fetch by size shows no progress and keeps broken downloads.
from faster_whisper.utils import _MODELS as _SIZES

from pipeline.asr.engine import FULL_WINDOW_S, MOST_PROMPT_TOKENS, Encoded, Hypothesis, WhisperEngine, letters
from pipeline.asr.guards import SHORT_TOKENS, Evidence, compression_ratio, loop, rejection
from pipeline.asr.options import AsrConfig
from pipeline.asr.packing import Pack, apart, pack
from pipeline.asr.script import in_script, script_conversion
from pipeline.asr.words import TimedWord, plausible, timed_words, without_pauses
from pipeline.errors import ModelError, UsageError, one_line
from pipeline.events import SAMPLE_RATE, Samples, SpeechSegment, Transcript, Word
from pipeline.store import FileSet, resolve_model
from pipeline.store.known import KnownModel, Thresholds
from pipeline.store.packages import identify

log = logging.getLogger(__name__)

RECOGNIZER_FILES = FileSet(
    ("config.json", "model.bin", "tokenizer.json", "vocabulary.*"),
    # Not needed here, but by other programs that share the cache.
    optional=("preprocessor_config.json",),
)
# What is in doubt is searched again with at least so many hypotheses, and twice as many as before.
_SECOND_LOOK_BEAMS = 5


@dataclass(frozen=True)
class _Look:
    """One search, and what speaks for and against it."""

    encoded: Encoded
    hypothesis: Hypothesis
    rejected: str | None

    @property
    def better(self) -> tuple[bool, bool, float]:
        """Sorts looks at the same audio: accepted ones first, then those that do not repeat, then the surer."""
        return self.rejected is None, self.rejected != "repetition", self.hypothesis.log_probability


class WhisperRecognizer:
    """A loaded Whisper model and the language that it listens for. Safe to use from several threads at once."""

    def __init__(self, config: AsrConfig, language: str, directory: Path | None = None) -> None:
        """Load the model from ``directory``, or find it first by ``find_recognizer``, and check it by one run.

        Raises:
            ModelError: the directory is incomplete or damaged.
            DownloadError: not in the cache, and it cannot be fetched.
            UsageError: the model does not know the language, the window is too short for it, the prompt too long, or the
                language not written in the configured script.
        """
        self.config, self.language = config, language
        self._convert = script_conversion(config.script, language)
        directory = directory or find_recognizer(config)
        if missing := RECOGNIZER_FILES.missing_from(directory):
            raise ModelError(
                f"{directory} lacks {', '.join(missing)}: not a whole CTranslate2 Whisper model; "
                "convert one with ct2-transformers-converter (with --copy_files tokenizer.json preprocessor_config.json)"
            )
        known = identify(directory)
        if known is None:
            log.warning("%s is not a known model: it is judged by Whisper's own thresholds", config.model)
        check_window(config, known)
        self.thresholds = thresholds(config, known)
        self.engine = WhisperEngine(directory, language, compute_type=config.compute_type, threads=config.threads)
        self._prompt = self._prompt_tokens()
        self._check()

    def transcribe(self, segment: SpeechSegment, beam_size: int | None = None) -> Transcript:
        """Recognise one segment; the transcript's ``rejected`` says if it must not be translated.

        What loops or is in doubt is searched again, with more hypotheses and the full window.

        Args:
            beam_size: hypotheses, in place of the configured number.
        """
        beams = beam_size or self.config.beam_size
        look = self._look(segment.samples, self.config.window_s, beams)
        if self._worth_another(look):
            again = self._look(segment.samples, FULL_WINDOW_S, max(_SECOND_LOOK_BEAMS, 2 * beams))
            if look.rejected == "repetition" or not _contradicts(look, again):
                look = max(look, again, key=lambda one: one.better)
        if look.rejected == "repetition" and (shorter := self._without_loop(look)) is not None:
            return self._transcript(segment, shorter, repeated=True)
        return self._transcript(segment, look)

    def transcribe_packed(self, segments: Sequence[SpeechSegment], beam_size: int | None = None) -> list[Transcript]:
        """Recognise segments that follow each other in one window; a transcript each.

        Where the window is in doubt or holds more text than Whisper writes at once, or its words cannot be told apart, each
        segment is recognised by itself.
        """
        packed = pack(segments)
        look = self._look(packed.samples, self.config.window_s, beam_size or self.config.beam_size)
        if look.rejected is None and look.hypothesis.ended:
            words = self._words(look.encoded, look.hypothesis)
            if plausible(words, look.hypothesis.text.strip(), 0.0, len(packed.samples) / SAMPLE_RATE):
                found = self._told_apart(packed, look, words, beam_size)
                if found is not None:
                    return found
        return [self.transcribe(segment, beam_size) for segment in segments]

    def _look(self, samples: Samples, window_s: float, beams: int) -> _Look:
        encoded = self.engine.encode(samples, window_s)
        found = self.engine.generate(encoded, beams, self._prompt)
        evidence = Evidence(
            found.text.strip(),
            len(found.tokens),
            found.log_probability,
            found.no_speech_probability,
            found.ended,
            found.text_log_probability,
        )
        return _Look(encoded, found, rejection(evidence, self.thresholds))

    def _worth_another(self, look: _Look) -> bool:
        """Whether a second look may hear more: not where probably nobody speaks."""
        spoken = look.hypothesis.no_speech_probability <= self.thresholds.doubtful_no_speech
        return look.rejected == "repetition" or (look.rejected == "uncertain" and spoken)

    def _without_loop(self, look: _Look) -> _Look | None:
        """A look whose loop is cut at its first repetition, or before it; None where neither can be believed."""
        found = look.hypothesis
        repetition = loop(found.text, found.ended)
        if repetition is None:
            return None
        once = self._again(look, repetition.once, repetition.end, repetition.begin)
        return once or self._again(look, repetition.begin, len(found.text), len(found.text))

    def _again(self, look: _Look, begin: int, end: int, doubted: int) -> _Look | None:
        """A look at the same audio without the words from ``begin`` to ``end`` of the text, if it can be believed, those
        from ``doubted`` to ``begin`` for themselves, too."""
        found = look.hypothesis
        tokens: list[int] = []
        phrase = slice(0, 0)
        at = character = 0
        for text, length in zip(*self.engine.divide(found.tokens), strict=True):
            if character + len(text) <= begin or character >= end:
                tokens += found.tokens[at : at + length]
            if doubted < character + len(text) <= begin:
                phrase = slice(phrase.start if phrase.stop else len(tokens) - length, len(tokens))
            at, character = at + length, character + len(text)
        if not tokens:
            return None
        # How sure a looping search is of its tokens grows with each round; how sure it is of the first one is asked anew.
        try:
            sure = self.engine.align(look.encoded, tuple(tokens)).log_probabilities
        except RuntimeError as error:  # a model without alignment heads
            log.warning("a repetition could not be cut (%s)", error)
            return None
        if phrase.stop and sure[phrase].mean() < self.thresholds.log_probability:
            return None
        text = self.engine.tokenizer.decode(tokens)
        hypothesis = dataclasses.replace(
            found, tokens=tuple(tokens), text=text, log_probability=float(sure.mean()), ended=True
        )
        evidence = Evidence(text.strip(), len(tokens), hypothesis.log_probability, found.no_speech_probability)
        return _Look(look.encoded, hypothesis, None) if rejection(evidence, self.thresholds) is None else None

    def _words(self, encoded: Encoded, found: Hypothesis) -> list[TimedWord]:
        """The words of a hypothesis at their times from the audio's first sample; none where the alignment fails."""
        if not found.tokens:
            return []
        try:
            times = self.engine.align(encoded, found.tokens)
        except RuntimeError as error:  # times of words are not worth the loss of what was said
            log.warning("words could not be timed (%s); their times are estimated", error)
            return []
        if len(times.starts_s) != len(found.tokens) + 1:
            return []
        texts, lengths = self.engine.divide(found.tokens)
        return timed_words(
            texts, lengths, [float(s) for s in times.starts_s], [float(p) for p in times.log_probabilities]
        )

    def _told_apart(
        self, packed: Pack, look: _Look, words: Sequence[TimedWord], beam_size: int | None
    ) -> list[Transcript] | None:
        """A transcript for each segment; None where a segment without words says something by itself, for its words may
        have been given to a neighbour."""
        found: list[Transcript] = []
        for segment, own in zip(packed.segments, apart(without_pauses(words), packed), strict=True):
            probabilities = [p for word in own if isinstance(word, TimedWord) for p in word.log_probabilities]
            text = "".join(word.text for word in own).strip()
            sure = math.fsum(probabilities) / len(probabilities) if probabilities else 0.0
            no_speech = look.hypothesis.no_speech_probability
            rejected = rejection(Evidence(text, len(probabilities), sure, no_speech), self.thresholds)
            if rejected is not None:  # by itself it may be heard better, or be certain silence
                alone = self.transcribe(segment, beam_size)
                if not own and alone.rejected is None:
                    return None
                found.append(alone)
                continue
            found.append(self._made(segment, text, sure, no_speech, None, own))
        return found

    def _transcript(self, segment: SpeechSegment, look: _Look, *, repeated: bool = False) -> Transcript:
        found = look.hypothesis
        words: list[Word] = []
        if self.config.word_timestamps and look.rejected is None:
            words = [
                dataclasses.replace(word, start_s=segment.start_s + word.start_s, end_s=segment.start_s + word.end_s)
                for word in self._words(look.encoded, found)
            ]
        return self._made(
            segment, found.text.strip(), found.log_probability, found.no_speech_probability, look.rejected, words,
            repeated=repeated,
        )  # fmt: skip

    def _made(
        self,
        segment: SpeechSegment,
        text: str,
        log_probability: float,
        no_speech: float,
        rejected: str | None,
        words: Sequence[Word],
        *,
        repeated: bool = False,
    ) -> Transcript:
        timed = [Word(word.text, word.start_s, word.end_s) for word in without_pauses(words)]
        believed = self.config.word_timestamps and plausible(timed, text, segment.start_s, segment.end_s)
        shown, timed = in_script(text, timed if believed else (), self._convert)
        return Transcript(
            segment_id=segment.id,
            start_s=segment.start_s,
            end_s=segment.end_s,
            text=shown,
            language=self.language,
            no_speech_probability=no_speech,
            mean_log_probability=log_probability,
            compression_ratio=compression_ratio(text),
            rejected=rejected,
            repeated=repeated,
            heard_s=segment.heard_s,
            speech_end_s=segment.speech_end_s,
            words=tuple(timed),
        )

    def _prompt_tokens(self) -> tuple[int, ...]:
        text = " ".join(part for part in (self.config.hotwords, self.config.prompt) if part)
        tokens = self.engine.tokens(text) if text else ()
        if len(tokens) > MOST_PROMPT_TOKENS:
            raise UsageError(
                f"asr.hotwords and asr.prompt have {len(tokens)} tokens together; Whisper takes {MOST_PROMPT_TOKENS} at most, "
                "and every one makes each segment slower: shorten them"
            )
        return tokens

    def _check(self) -> None:
        """One run over silence.

        Raises:
            ModelError: it fails, or does not give numbers.
        """
        import numpy as np

        try:
            encoded = self.engine.encode(np.zeros(SAMPLE_RATE, np.int16), self.config.window_s)
            found = self.engine.generate(encoded, 1, self._prompt)
        except (RuntimeError, ValueError) as error:
            raise ModelError(
                f"the speech model {self.config.model} cannot run: {one_line(error)}; fetch it again"
            ) from error
        if not math.isfinite(found.log_probability + found.no_speech_probability):
            raise ModelError(
                f"the speech model {self.config.model} is damaged: its scores are no numbers; fetch it again"
            )


def _contradicts(first: _Look, second: _Look) -> bool:
    """Whether two looks hear different words where there are only one or two: neither is to be believed then."""
    short = len(second.hypothesis.tokens) <= SHORT_TOKENS
    return short and letters(first.hypothesis.text) != letters(second.hypothesis.text)


def thresholds(config: AsrConfig, known: KnownModel | None) -> Thresholds:
    """What a model's transcripts are judged by: what the configuration says, else what is known of the model.

    A configured threshold brings that which the table has for the same doubt along: three times the log-probability of a
    token for a text of a word or two, and no less probability of no speech.
    """
    found = known.thresholds if known is not None else Thresholds()
    if (no_speech := config.no_speech_threshold) is not None:
        doubtful = max(found.doubtful_no_speech, no_speech)
        found = dataclasses.replace(found, no_speech=no_speech, doubtful_no_speech=doubtful)
    if (least := config.log_probability_threshold) is not None:
        found = dataclasses.replace(found, log_probability=least, text_log_probability=SHORT_TOKENS * least)
    if (ratio := config.compression_ratio_threshold) is not None:
        found = dataclasses.replace(found, compression_ratio=ratio)
    return found


def check_window(config: AsrConfig, known: KnownModel | None) -> None:
    """Refuse an encoder window that the model was not seen to work with.

    Raises:
        UsageError: ``window_s`` is shorter than that.
    """
    shortest_s = known.shortest_window_s if known is not None else KnownModel.shortest_window_s
    if config.window_s < shortest_s:
        raise UsageError(
            f"asr.window_s is {config.window_s:g}; {config.model} needs {shortest_s:g} s at least: with less, transcripts loop"
        )


def find_recognizer(config: AsrConfig) -> Path:
    """The directory of the configured Whisper model, fetched if it is not on this machine.

    Raises:
        ModelError, DownloadError: see ``resolve_model``.
    """
    return resolve_model(recognizer_name(config), config.revision, RECOGNIZER_FILES)


def recognizer_name(config: AsrConfig) -> str:
    """The directory or hub id that the configuration means: a Whisper size stands for one."""
    return config.model if os.path.isdir(config.model) else _SIZES.get(config.model, config.model)
