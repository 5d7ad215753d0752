"""The journal of a recording: a run's events, kept beside its subtitle files so that the next run can resume.

A resuming run cuts the recording into the same segments again (which is cheap), takes the transcripts and translations
of finished segments from the journal, and recognises only the rest. Written files stay as they were, and the result
equals that of an uninterrupted run. The journal holds every event, exactly.
"""

from __future__ import annotations

import dataclasses
import errno
import hashlib
import json
import re
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any, cast

from ..config import PipelineConfig
from ..core import (
    DEFAULT,
    FAILED,
    BatchRecognizer,
    Changes,
    EndOfInput,
    GlossaryOptions,
    LanguageDetector,
    PipelineEvent,
    RecognitionOptions,
    Recognizer,
    Samples,
    SourceSentence,
    SpeechSegment,
    States,
    StreamingRecognizer,
    TargetText,
    TermTranslator,
    TextTranslator,
    Transcript,
    Translation,
    TranslationRequest,
    by_segment,
    passes,
)
from ..errors import UsageError
from ..glossary import Glossary, Term, load_glossary, load_masked
from ..media import SINKS, BlockFile, Text, line, read_event

_VERSION = 5
_TRANSCRIPT = b'{"type": "transcript"'  # prefix of a transcript's line
_SPEAKER = re.compile(rb'"speaker": ("(?:[^"\\]|\\.)*")\}\n$')  # the last field
_FAILURE = re.compile(rb'\{"type": "(transcript".*"rejected": "failed"|translation".*"error": ")')
# Bytes hashed at the beginning and at the end of a recording, enough to identify it.
_DIGEST_BYTES = 1 << 20
# Keys that do not change a recording's result.
_OTHER_KEYS = {"threads", "cached_sentences", "draft"}
# Segments that may be recognised once more, with a later one; more than a window holds.
_HEARD_AGAIN = 20
# Keys of a header that have another name in a configuration file.
_KEY_NAMES = {"languages.targets": "languages.target"}


def header(
    recording: Path,
    config: PipelineConfig,
    kinds: list[str],
    audio_track: int | None = None,
    speakers: Sequence[str] = (),
) -> dict[str, Any]:
    """The header of a journal. A run may resume a journal whose header equals its own.

    Args:
        kinds: the names of the outputs; see ``pipeline.archives.outputs.label``.
        audio_track: the requested one; None if the recording and the source language decide.
        speakers: the names of those who speak, one in each channel, if they were given.
    """
    sections: dict[str, Any] = {
        section: getattr(config, section) for section in ("languages", "vad", "asr", "sentences", "subtitles")
    }
    targets = config.languages.targets
    sections |= {f"nmt.{target}" if len(targets) > 1 else "nmt": config.nmt_for(target) for target in targets}
    settings = {
        f"{section}.{key}": list(value) if isinstance(value, tuple) else value  # JSON has no tuples
        for section, options in sections.items()
        for key, value in dataclasses.asdict(options).items()
        if key not in _OTHER_KEYS
    }
    # None as where the key is missing: journals were written before there was another backend.
    settings |= {key: None for key, value in settings.items() if (key[-8:], value) == (".backend", "marian")}
    settings["glossary"] = _glossary_state(config.glossary)
    masked = load_masked(config.captions.masked)
    settings["masked"] = repr(masked) if masked else None
    return {
        "type": "journal",
        "version": _VERSION,
        "recording": _digest(recording),
        "audio_track": audio_track,
        "speakers": ",".join(speakers) or (repr(config.speakers) if config.speakers.auto else None),
        "sounds.captions": config.sounds.captions or None,
        "formats": kinds,
        **settings,
    }


def _glossary_state(options: GlossaryOptions) -> str | None:
    """A value that changes with the glossary's terms and their use; None without a glossary."""
    if options.file is None:
        return None
    glossary = load_glossary(Path(options.file))
    return hashlib.sha256(repr((glossary, options.prompt_terms, options.correct)).encode()).hexdigest()


def read_journal_header(path: Path) -> dict[str, Any] | None:
    """The header of the journal at ``path``; None if there is no journal or its header was not completely written."""
    try:
        with path.open("rb") as file:
            first = file.readline()
    except FileNotFoundError:
        return None
    except OSError as error:
        advice = "choose another --output-dir" if error.errno == errno.ENAMETOOLONG else "check its permissions"
        raise UsageError(f"cannot read {path} ({error.strerror}); {advice}") from error
    if not first.endswith(b"\n"):
        return None
    try:
        header = json.loads(first)
    except ValueError:
        header = None
    kinds = header.get("formats") if isinstance(header, dict) and header.get("type") == "journal" else None
    if not isinstance(kinds, list) or not all(
        isinstance(kind, str) and kind.rpartition(".")[2] in SINKS for kind in kinds
    ):
        raise UsageError(f"{path} is not a journal; start again with --overwrite, or move it away")
    return cast("dict[str, Any]", header)


def is_of(path: Path, recording: Path) -> bool:
    """Whether ``path`` is a journal of this recording; False if either cannot be read."""
    try:
        header = read_journal_header(path)
        return header is not None and header.get("recording") == _digest(recording)
    except UsageError:
        return False


def difference(written: dict[str, Any], wanted: dict[str, Any]) -> str | None:
    """Why a run cannot resume a journal, for display after "begun"; None if it can."""
    for key, value in wanted.items():
        if written.get(key) != value:
            if key == "version":
                return f"by another version of this program: its journal has version {written.get(key)}, not {value}"
            if key == "recording":
                return "from another recording of this name"
            if key in ("audio_track", "speakers"):
                option = "--" + key.replace("_", "-")
                return f"with {option} {written[key]}" if written.get(key) else f"with no {option}"
            if key in ("glossary", "masked"):
                return "with another glossary" if key == "glossary" else "with other masked words"
            return f"with {_KEY_NAMES.get(key, key)} = {written.get(key)!r}, which is now {value!r}"
    return None


class JournalSink:
    """Writes the events of a run; with ``resume``, the events of the earlier run come again first."""

    def __init__(self, path: Path, header: dict[str, Any], *, resume: bool) -> None:
        self.path = path
        first = json.dumps(header, ensure_ascii=False) + "\n"
        if resume and read_journal_header(path) is not None:  # keep a header with more keys than this version writes
            with path.open("rb") as file:
                first = file.readline().decode()
        self._file, self._changes = BlockFile(path, first, resume=resume), Changes()

    def write(self, event: PipelineEvent) -> None:
        change = self._changes.push(event)
        if isinstance(change, Text | EndOfInput):
            self._file.append(line(change, exact=True))

    def close(self) -> None:
        self._file.close()


class KnownSpeech:
    """A recogniser that returns a speaker's transcripts in a journal and delegates the rest to another recogniser."""

    def __init__(self, recognizer: Recognizer | StreamingRecognizer, journal: Path, speaker: str | None = None) -> None:
        self._recognizer, self._journal = by_segment(recognizer), journal
        self._known = (
            event for event in _all_events(journal) if isinstance(event, Transcript) and event.speaker == speaker
        )
        self._next = next(self._known, None)
        self._newest: deque[Transcript] = deque(maxlen=_HEARD_AGAIN)

    @property
    def has_more(self) -> bool:
        """Whether the journal has transcripts of later segments."""
        return self._next is not None

    def transcribe(self, segments: Sequence[SpeechSegment], options: RecognitionOptions = DEFAULT) -> list[Transcript]:
        """The journal's transcripts of the segments; what it does not have is recognised."""
        (transcripts,) = self._recognised([segments], lambda _: [self._recognizer.transcribe(segments, options)])
        return transcripts

    def detect(self, samples: Samples) -> Mapping[str, float]:
        """The recogniser's probability of each language in the samples [n]; empty if it detects none."""
        return self._recognizer.detect(samples) if isinstance(self._recognizer, LanguageDetector) else {}

    def _recognised(
        self,
        groups: Sequence[Sequence[SpeechSegment]],
        recognise: Callable[[Sequence[Sequence[SpeechSegment]]], list[list[Transcript]]],
    ) -> list[list[Transcript]]:
        """If any transcript of a group is missing, recognise all its segments again: the group affects the result."""
        kept: list[list[Transcript | None]] = []
        earlier: list[set[int]] = []  # those that are only heard again
        for group in groups:
            earlier.append({transcript.segment_id for transcript in self._newest})
            kept.append([self._transcript_of(segment) for segment in group])
        others = [group for group, before in zip(groups, kept, strict=True) if None in before]
        again = iter(recognise(others) if others else ())
        complete = [next(again) if None in before else before for before in kept]
        return [
            [
                new if old is None or old.segment_id in heard else old  # type: ignore[misc]  # one of them is there
                for old, new in zip(before, after, strict=True)
            ]
            for before, after, heard in zip(kept, complete, earlier, strict=True)
        ]

    def _transcript_of(self, segment: SpeechSegment) -> Transcript | None:
        """The journal's next transcript, if it has one for this segment and its recognition did not fail."""
        for again in self._newest:
            if again.segment_id == segment.id:  # a short group is recognised with those before it
                return again
        entry = self._next
        if entry is None or entry.segment_id > segment.id:  # of a window that is tried again, segment by segment
            return None
        self._next = next(self._known, None)
        if (entry.segment_id, entry.start_s, entry.end_s) != (segment.id, segment.speech_start_s, segment.end_s):
            if self._next is None and (entry.segment_id, entry.start_s) == (segment.id, segment.speech_start_s):
                # The last segment: the recording could not be read to its end, then or now.
                return None
            raise UsageError(
                f"{self._journal} has a segment from {entry.start_s:.2f} to {entry.end_s:.2f} s where this run finds one "
                f"from {segment.speech_start_s:.2f} to {segment.end_s:.2f} s; another version wrote it: start again "
                "with --overwrite"
            )
        if entry.rejected == FAILED:
            return None
        self._newest.append(entry)
        return entry


class _KnownBatchSpeech(KnownSpeech):
    """``KnownSpeech`` for a recogniser that takes several groups at once."""

    def transcribe_batch(
        self, groups: Sequence[Sequence[SpeechSegment]], options: RecognitionOptions = DEFAULT
    ) -> list[list[Transcript]]:
        """The transcripts of several groups, as ``transcribe`` returns those of one."""
        recognizer = self._recognizer
        assert isinstance(recognizer, BatchRecognizer)
        return self._recognised(groups, lambda others: recognizer.transcribe_batch(others, options))


def known_speech(
    recognizer: Recognizer | StreamingRecognizer, journal: Path, speaker: str | None = None
) -> KnownSpeech:
    """A recogniser that returns a journal's transcripts of what a speaker said, and takes several groups at once if
    ``recognizer`` does."""
    made = _KnownBatchSpeech if isinstance(recognizer, BatchRecognizer) else KnownSpeech
    return made(recognizer, journal, speaker)


def known_translation(
    translation: TextTranslator, journal: Path, target: str, speaker: str | None = None
) -> KnownTranslation:
    """A translator that returns a journal's finished translations of what a speaker said, and knows glossaries if
    ``translation`` does."""
    if isinstance(translation, TermTranslator):
        return _KnownTermTranslation(translation, journal, target, speaker)
    return KnownTranslation(translation, journal, target, speaker)


class KnownTranslation:
    """A translator that returns a journal's finished translations and delegates the rest to another translator.

    For recordings: of sentences in progress it knows nothing.
    """

    def __init__(self, translation: TextTranslator, journal: Path, target: str, speaker: str | None = None) -> None:
        self._translation, self._target, self._speaker, self.passes = translation, target, speaker, passes(translation)
        self._known, self._states = _all_events(journal), States()
        self._passed = -1
        """The number of the speaker's last sentence read, which counts only theirs."""

    def stream(self, request: TranslationRequest) -> Iterator[TargetText | Translation]:
        """The events of a sentence's translation, from the journal or else from the other translator."""
        events = self._finished(request.sentence)
        return iter(events or self._translation.stream(request))

    def _finished(self, sentence: SourceSentence) -> list[TargetText | Translation]:
        """The events of a sentence's translation; empty if the journal does not have it, or of another text."""
        source: SourceSentence | None = None
        events: list[TargetText | Translation] = []
        for event in map(self._states.push, self._known):
            if isinstance(event, SourceSentence) and self._speaker in (None, event.speaker):
                self._passed += 1
                source = event if self._passed == sentence.sentence else None
            if source is None or not isinstance(event, TargetText | Translation) or event.language != self._target:
                continue
            if event.sentence == source.sentence:
                events.append(replace(event, sentence=sentence.sentence))
                if isinstance(event, Translation):
                    same = source == replace(
                        sentence, sentence=source.sentence, speaker=self._speaker or sentence.speaker
                    )
                    return events if same and event.error is None else []
        return []


class _KnownTermTranslation(KnownTranslation):
    """``KnownTranslation`` for a translator that knows glossaries."""

    def __init__(self, translation: TermTranslator, journal: Path, target: str, speaker: str | None = None) -> None:
        super().__init__(translation, journal, target, speaker)
        self._terms = translation

    def unspellable(self, glossary: Glossary, target: str | None = None) -> tuple[Term, ...]:
        return self._terms.unspellable(glossary, target)


def _all_events(path: Path) -> Iterator[Text]:
    """The journal's events. It may be rewritten from the last transcript on meanwhile, or from the last one before a call that
    failed, so that part is read now.
    """
    kept = _kept(path)
    return chain(_events(path, end=kept), list(_events(path, kept)))


def _events(path: Path, begin: int = 0, end: int | None = None) -> Iterator[Text]:
    """The journal's events between two line offsets, read lazily. An unfinished last line of a killed run is skipped."""
    unread = (path.stat().st_size if end is None else end) - begin
    with path.open("rb") as file:
        file.seek(begin)
        while (text := file.readline(unread)).endswith(b"\n"):
            unread -= len(text)
            try:
                event = read_event(json.loads(text))
            except (ValueError, TypeError, AttributeError) as error:
                raise UsageError(f"{path} is damaged ({error}); start again with --overwrite") from error
            if event is not None:
                yield event


def _kept(path: Path) -> int:
    """The byte offset of the last transcript's line, before the first call that failed if one did; the end of the file if
    there is none. Of several speakers, the one whose last transcript comes first."""
    offset, last = 0, dict[bytes, int]()
    with path.open("rb") as file:
        for text in file:
            if text.startswith(_TRANSCRIPT):
                last[b"".join(_SPEAKER.findall(text))] = offset
            if _FAILURE.match(text):
                break
            offset += len(text)
    return min(last.values(), default=path.stat().st_size)


def _digest(recording: Path) -> str:
    try:
        with recording.open("rb") as file:
            digest = hashlib.blake2b(file.read(_DIGEST_BYTES), digest_size=16)
            size = file.seek(0, 2)
            file.seek(max(0, size - _DIGEST_BYTES))
            digest.update(file.read(_DIGEST_BYTES))
    except OSError as error:
        raise UsageError(f"{recording} cannot be read ({error.strerror}); check its permissions") from error
    return f"{size}-{digest.hexdigest()}"
