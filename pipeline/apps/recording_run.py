"""Translate one recording: its plan, its models, its files and its result. Runs in any process."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, aclosing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from ..audio.recording import Recording
from ..config import PipelineConfig
from ..errors import PipelineError, StageError, UsageError
from ..events import EndOfInput, PipelineEvent, Transcript, Translation
from ..run.worker import Worker
from ..sinks.blank import is_blank
from ..sinks.files import open_sinks, sink_makers
from ..sinks.sink import Sink, close_all, write_all
from . import journal
from .journal import JournalSink, KnownSpeech, known_translation
from .outputs import Output, label
from .recordings import Begin, Job, begin, labels_of
from .results import Result

if TYPE_CHECKING:
    from ..loading import Models


@dataclass(frozen=True)
class Options:
    """What holds for all recordings of a run."""

    config: PipelineConfig
    overwrite: bool = False
    audio_track: int | None = None
    """Of each recording, counted from 1; None chooses by the source language."""
    aside: bool = False
    """Write each subtitle file under another name, and rename it when it is complete: other machines read the folder."""


class Progress(Protocol):
    """Shows the progress of one recording."""

    def note(self, message: str) -> None:
        """Show a message about the recording."""

    def begin(self, duration_s: float | None) -> None:
        """Recognition begins. ``duration_s`` is None if the file does not say its length."""

    def update(self, done_s: float, length_s: float | None, speed: float) -> None:
        """``done_s`` of the audio are done, ``speed`` times as fast as real time."""


def open_recording(result: Result, options: Options) -> Recording | None:
    """Begin a job: the open recording, or None if there is nothing to do or it cannot be read, as the result says."""
    job = result.job
    try:
        # Check now: another run may have written files since the plan was made.
        result.how, result.outputs = begin(
            job, options.config, overwrite=options.overwrite, audio_track=options.audio_track
        )
        if result.how is not Begin.SKIP:
            language = options.config.languages.only_spoken
            return Recording(job.recording, language=language, track=options.audio_track)
        result.outcome = "already there: left as it is, --overwrite replaces it"
    except PipelineError as error:
        result.outputs = {}
        result.fail(error)
    return None


async def translate_recording(
    result: Result, source: Recording, options: Options, models: Models, progress: Progress
) -> None:
    """Do a job that ``open_recording`` has begun, and fill in its result. A failure is part of the result."""
    job, outputs = result.job, result.outputs
    result.outcome = "interrupted"
    if source.track_note is not None:
        progress.note(source.track_note)
    progress.begin(source.duration_s)
    try:
        begun_with = journal.header(job.recording, options.config, labels_of(job, outputs), options.audio_track)
        aside = aside_paths(job, outputs)
        paths = aside if options.aside else outputs
        await _write_files(result, source, options, models, begun_with, paths, progress)
        for output, path in paths.items():
            if path != outputs[output]:
                _rename(path, outputs[output])
        for output, path in aside.items():
            if path != outputs[output]:
                path.unlink(missing_ok=True)  # of an interrupted run that wrote aside
        blank = {output for output, path in outputs.items() if is_blank(path, output[0])}
        job.journal.unlink(missing_ok=True)
        result.outcome = "finished" if result.how is Begin.RESUME else "done"
        shown = {kind for kind, target in outputs if (kind, target) not in blank}
        result.without_cue = any(kind not in shown for kind, _ in outputs)
    except PipelineError as error:
        result.fail(error)


def aside_paths(job: Job, outputs: Mapping[Output, Path]) -> dict[Output, Path]:
    """Where the files of a job are written until they are complete: beside the journal, whose name is reserved for it.

    A file whose name has no room for the longer suffix is written in place.
    """
    base = job.journal.name.removesuffix(".jsonl")
    found, longest = {}, job.names.base.longest
    for output, path in outputs.items():
        name = f"{base}.{'all.' if output[0] == 'jsonl' else ''}{label(output, list(job.names.tags))}"
        found[output] = path.with_name(name) if len(os.fsencode(name)) <= longest else path
    return found


def _rename(path: Path, final: Path) -> None:
    try:
        path.replace(final)
    except OSError as error:
        raise UsageError(f"cannot write {final} ({error.strerror}); the finished file is {path}") from error


async def _write_files(
    result: Result,
    source: Recording,
    options: Options,
    models: Models,
    begun_with: dict[str, Any],
    paths: Mapping[Output, Path],
    progress: Progress,
) -> None:
    """Translate the recording into the files ``paths`` and the journal.

    Args:
        begun_with: the journal's header.
    """
    from ..nmt.same_language import SameLanguageText
    from ..translator import SpeechTranslator

    config, known = options.config, result.job.journal
    speech: KnownSpeech | None = None
    pending: list[PipelineEvent] = []
    end: EndOfInput | None = None
    with ExitStack() as stack:
        sinks = _open_sinks(result, config, begun_with, paths, stack)
        if result.how is Begin.RESUME:
            speech = KnownSpeech(models.recognizer, known)
            models = replace(
                models,
                recognizer=speech,
                translations={
                    target: model if isinstance(model, SameLanguageText) else known_translation(model, known, target)
                    for target, model in models.translations.items()
                },
            )
        writer = Worker("subtitles")
        stack.callback(writer.join, 1.0)  # finish writing before the sinks are closed
        stack.callback(writer.close)
        async with SpeechTranslator(config, models) as translator, aclosing(translator.run(source)) as events:
            async for event in events:
                if isinstance(event, EndOfInput):  # write it last; a broken source may be resumed
                    end = event
                else:
                    pending.append(event)
                    # If the recording breaks earlier than in the previous run, its last sentence ends there, and other
                    # events come than before. While the journal has more, wait for the next transcript, so that files
                    # do not get shorter.
                    if isinstance(event, Transcript) or speech is None or not speech.has_more:
                        await writer.run(partial(_write, sinks, pending))
                        pending = []
                result.count(translator.stats)
                result.truncated += isinstance(event, Translation) and event.truncated
                if isinstance(event, Transcript | EndOfInput):
                    done_s = event.end_s if isinstance(event, Transcript) else event.duration_s
                    progress.update(done_s, source.duration_s, done_s / max(1e-9, result.elapsed_s))
            if end is not None:
                await writer.run(partial(_write, sinks, [*pending, end]))
            lost, failures = translator.stats.lost_languages, translator.stats.failures
        result.damage = tuple(source.damage)
        progress.update(result.audio_s, result.audio_s, result.audio_s / max(1e-9, result.elapsed_s))
    if end is None:  # cancellation does not reach this line
        raise StageError("pipeline", RuntimeError("it ended before its input did"))
    if lost:
        raise StageError("NMT", RuntimeError("; ".join(f"into {language}: {why}" for language, why in lost.items())))
    for stage, why in failures.items():
        raise StageError(stage, RuntimeError(f"{why}; the next run tries what is missing again"))


def _write(sinks: Sequence[Sink], events: Sequence[PipelineEvent]) -> None:
    for event in events:
        write_all(sinks, event)


def _open_sinks(
    result: Result, config: PipelineConfig, begun_with: dict[str, Any], paths: Mapping[Output, Path], stack: ExitStack
) -> list[Sink]:
    """Open the journal, then the subtitle files; ``stack`` closes them.

    Everything in a file is already in the journal, so that the next run knows of it whatever happens.
    """
    job, resume = result.job, result.how is Begin.RESUME
    make_folder(job.journal.parent)
    events = JournalSink(job.journal, begun_with, resume=resume)
    stack.callback(events.close)
    makers = sink_makers(config.subtitles, resume=True)
    files = open_sinks(paths, job.recording, makers, config.languages.targets)
    stack.callback(close_all, files)
    return [events, *files]


def make_folder(folder: Path) -> None:
    """Create a folder for outputs, with its parents."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(
            f"cannot create the folder {folder} ({error.strerror}); choose another with --output-dir"
        ) from error
