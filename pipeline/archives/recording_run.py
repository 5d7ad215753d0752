"""Translate one recording: its plan, its models, its files and its result. Runs in any process."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack, aclosing, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from ..config import PipelineConfig
from ..core import EndOfInput, Masking, PipelineEvent, Transcript, Translation, Worker
from ..errors import PipelineError, StageError, UsageError
from ..glossary import load_masked
from ..media import Recording, Sink, close_all, is_blank, open_sinks, sink_makers, write_all
from . import journal, other_language
from .journal import JournalSink, KnownSpeech, known_speech, known_translation
from .outputs import Output, label, make_folder
from .recordings import Begin, Job, Options, begin, labels_of
from .results import Result
from .speakers import in_order_of_time

if TYPE_CHECKING:
    from ..core import Models, PipelineStats


class Progress(Protocol):
    """Shows the progress of one recording."""

    def note(self, message: str) -> None:
        """Show a message about the recording."""

    def begin(self, duration_s: float | None) -> None:
        """Recognition begins. ``duration_s`` is None if the file does not say its length."""

    def update(self, done_s: float, length_s: float | None, speed: float) -> None:
        """``done_s`` of the audio are done, ``speed`` times as fast as real time."""


Sources = Mapping[str | None, Recording]
"""The speaker of each channel and the open recording of it; None for a recording whose channels are mixed."""


async def translate_job(
    result: Result, options: Options, load: Callable[[], Awaitable[Models]], progress: Progress
) -> None:
    """Do a job and fill in its result. ``load`` gives the models if they are needed."""
    if result.job.remote is not None:
        await _translate_copied(result, options, load, progress)
        return
    sources = open_recording(result, options)
    if sources is not None:
        await translate_recording(result, sources, options, await load(), progress)


async def _translate_copied(
    result: Result, options: Options, load: Callable[[], Awaitable[Models]], progress: Progress
) -> None:
    """Do a job whose files are in an object store."""
    from .objects import CopiedJob  # an extra

    result.outcome = "interrupted"
    transfer = Worker("transfer")
    try:
        with CopiedJob(result, options) as copied:
            await transfer.run(copied.fetch)
            await translate_job(copied.local, options, load, progress)
            await transfer.run(copied.put)
    except PipelineError as error:
        result.fail(error)
    finally:
        transfer.close()


def open_recording(result: Result, options: Options) -> Sources | None:
    """Begin a job: its open recordings, or None if there is nothing to do or it cannot be read, as the result says."""
    job = result.job
    try:
        # Check now: another run may have written files since the plan was made.
        result.how, result.outputs = begin(
            job, options.config, overwrite=options.overwrite, audio_track=options.audio_track, speakers=options.speakers
        )
        if result.how is not Begin.SKIP:
            return _sources(job, options)
        result.outcome = "already there: left as it is, --overwrite replaces it"
    except PipelineError as error:
        result.outputs = {}
        result.fail(error)
    return None


def _sources(job: Job, options: Options) -> Sources:
    """Open the recording of a job, once for each speaker."""
    sources: dict[str | None, Recording] = {}
    if not os.path.exists(job.recording):  # it may have waited for hours
        raise UsageError(f"{job.recording} is gone, which was there when the run began; put it back, or leave it out")
    for channel, speaker in enumerate(options.speakers) if options.speakers else [(None, None)]:
        language = options.config.languages.only_spoken
        opened = Recording(job.recording, language=language, track=options.audio_track, speaker=channel)
        sources[speaker] = opened
        if speaker is not None and opened.channels != len(options.speakers):
            have = "1 channel" if opened.channels == 1 else f"{opened.channels} channels"
            raise UsageError(
                f"{job.recording} has {have} where --speakers names {len(options.speakers)}; name one for each channel, or "
                "leave --speakers out"
            )
    return sources


async def translate_recording(
    result: Result, sources: Sources, options: Options, models: Models, progress: Progress
) -> None:
    """Do a job that ``open_recording`` has begun, and fill in its result. A failure is part of the result."""
    job, outputs = result.job, result.outputs
    source = next(iter(sources.values()))
    result.outcome = "interrupted"
    if source.track_note is not None:
        progress.note(source.track_note)
    progress.begin(source.duration_s)
    try:
        labels = labels_of(job, outputs)
        begun_with = journal.header(job.recording, options.config, labels, options.audio_track, options.speakers)
        aside = aside_paths(job, outputs)
        paths = aside if options.aside else outputs
        look = partial(_other_language, job.recording, options, models)
        if options.strict and (problem := await asyncio.to_thread(look)):
            raise UsageError(f"{job.recording} is {problem}")
        foreign = await _write_files(result, sources, options, models, begun_with, paths, progress)
        spoken = options.config.languages.only_spoken
        if foreign or (spoken is not None and other_language.of_name(job.recording, spoken)):
            with suppress(PipelineError):  # it has gone meanwhile
                result.other_language = await asyncio.to_thread(look)
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


def _other_language(recording: Path, options: Options, models: Models) -> str:
    """The message for a recording that is not in the configured language; "" if it is, or its language is not certain."""
    spoken = options.config.languages.only_spoken
    if spoken is None:
        return ""
    language = other_language.of_speech(recording, spoken, options.config.vad, models.recognizer, options.audio_track)
    return other_language.said(language, spoken) if language is not None else ""


def aside_paths(job: Job, outputs: Mapping[Output, Path]) -> dict[Output, Path]:
    """Where the files of a job are written until they are complete: beside the journal, whose name is reserved for it.

    A file whose name has no room for the longer suffix is written in place.
    """
    base = job.journal.name.removesuffix(".jsonl")
    paths, longest = {}, job.names.base.longest
    for output, path in outputs.items():
        name = f"{base}.{'all.' if output[0] == 'jsonl' else ''}{label(output, list(job.names.tags))}"
        paths[output] = path.with_name(name) if len(os.fsencode(name)) <= longest else path
    return paths


def _rename(path: Path, final: Path) -> None:
    try:
        path.replace(final)
    except OSError as error:
        kept = f"the finished file is {path}" if path.exists() else "when its folder is back, the same command goes on"
        raise UsageError(f"cannot write {final} ({error.strerror}); {kept}") from error


async def _write_files(
    result: Result,
    sources: Sources,
    options: Options,
    models: Models,
    begun_with: dict[str, Any],
    paths: Mapping[Output, Path],
    progress: Progress,
) -> bool:
    """Translate the recording into the files ``paths`` and the journal.

    Args:
        begun_with: the journal's header.

    Returns:
        Whether most of what was heard is in another language.
    """
    config = options.config
    masking = Masking(load_masked(config.captions.masked))
    speech: list[KnownSpeech] = []
    pending: list[PipelineEvent] = []
    end: EndOfInput | None = None
    heard_s = {False: 0.0, True: 0.0}
    """Seconds of speech in another language (True), and in the configured one (False)."""
    duration_s = next(iter(sources.values())).duration_s
    with ExitStack() as stack:
        sinks = _open_sinks(result, config, begun_with, paths, stack)
        loaded = dict.fromkeys(sources, models)
        if result.how is Begin.RESUME:
            load = partial(_known, models, config.languages.translated, result.job.journal)
            loaded = {speaker: load(speaker) for speaker in sources}
            speech = [each.recognizer for each in loaded.values() if isinstance(each.recognizer, KnownSpeech)]
        writer = Worker("subtitles")
        stack.callback(writer.join, 1.0)  # finish writing before the sinks are closed
        stack.callback(writer.close)
        async with AsyncExitStack() as chains:
            stats, events = await _events(sources, config, loaded, chains)
            async for event in events:
                if isinstance(event, EndOfInput):  # write it last; a broken source may be resumed
                    end = event
                else:
                    pending.append(event)
                    # If the recording breaks earlier than in the previous run, its last sentence ends there, and other
                    # events come than before. While the journal has more, wait for the next transcript, so that files
                    # do not get shorter.
                    if isinstance(event, Transcript) or not any(each.has_more for each in speech):
                        await writer.run(partial(_write, sinks, masking, pending))
                        pending = []
                result.count(*stats)
                if isinstance(event, Transcript):
                    heard_s[event.rejected == "language"] += event.end_s - event.start_s
                result.truncated += isinstance(event, Translation) and event.truncated
                if isinstance(event, Transcript | EndOfInput):
                    done_s = event.end_s if isinstance(event, Transcript) else event.duration_s
                    progress.update(done_s, duration_s, done_s / max(1e-9, result.elapsed_s))
            if end is not None:
                await writer.run(partial(_write, sinks, masking, [*pending, end]))
        result.damage = tuple(dict.fromkeys(damage for source in sources.values() for damage in source.damage))
        progress.update(result.audio_s, result.audio_s, result.audio_s / max(1e-9, result.elapsed_s))
    if end is None:  # cancellation does not reach this line
        raise StageError("pipeline", RuntimeError("it ended before its input did"))
    if lost := {language: why for each in stats for language, why in each.lost_languages.items()}:
        raise StageError("NMT", RuntimeError("; ".join(f"into {language}: {why}" for language, why in lost.items())))
    for stage, why in ((stage, why) for each in stats for stage, why in each.failures.items()):
        raise StageError(stage, RuntimeError(f"{why}; the next run tries what is missing again"))
    return heard_s[True] > heard_s[False]


def _known(models: Models, translated: Sequence[str], path: Path, speaker: str | None) -> Models:
    """Models that return what the journal at ``path`` has of a speaker. ``translated``: the targets that are not spoken."""
    return replace(
        models,
        recognizer=known_speech(models.recognizer, path, speaker),
        translations={
            target: known_translation(model, path, target, speaker) if target in translated else model
            for target, model in models.translations.items()
        },
    )


async def _events(
    sources: Sources, config: PipelineConfig, models: Mapping[str | None, Models], chains: AsyncExitStack
) -> tuple[list[PipelineStats], AsyncGenerator[PipelineEvent, None]]:
    """Start a chain for each speaker, with the models for it; return their statistics, and the events of all.

    ``chains`` stops them.
    """
    from ..core import SpeechTranslator

    stats: list[PipelineStats] = []
    streams: dict[str | None, AsyncGenerator[PipelineEvent, None]] = {}
    for speaker, source in sources.items():
        translator = await chains.enter_async_context(SpeechTranslator(config, models[speaker], masking=Masking()))
        stats.append(translator.stats)
        streams[speaker] = await chains.enter_async_context(aclosing(translator.run(source)))
    named = {speaker: events for speaker, events in streams.items() if speaker is not None}
    events = await chains.enter_async_context(aclosing(in_order_of_time(named))) if named else streams[None]
    return stats, events


def _write(sinks: Sequence[Sink], masking: Masking, events: Sequence[PipelineEvent]) -> None:
    """Write events. The first sink, the journal, has the text as it is: from that, a run that is resumed goes on."""
    journal, *files = sinks
    for event in events:
        write_all([journal], event)
        write_all(files, masking.push(event))


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
    makers = sink_makers(config.subtitles, more=[kind for kind, _ in paths], resume=True)
    files = open_sinks(paths, job.recording, makers, config.languages.targets)
    stack.callback(close_all, files)
    return [events, *files]
