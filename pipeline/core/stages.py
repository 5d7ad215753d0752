"""The stages of a run: a list that an app can extend, the stage that a plain function becomes, and how all are run."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol

from ..errors import PipelineError, StageError
from .asr.final import FinalRecognition
from .asr.groups import Groups
from .asr.recognizer import DraftRecognizer, by_segment
from .asr.stage import AsrStage
from .events import EndOfInput
from .models import Models, RunConfig
from .nmt.stage import NmtContext
from .nmt.targets import LateTargets, TranslationStage
from .run.options import QueueConfig
from .run.overload import LoadControl
from .run.stats import PipelineStats
from .run.worker import Worker
from .sentences.sounds import SoundCaptions
from .sentences.stage import SentenceStage
from .vad.stage import VadStage

if TYPE_CHECKING:
    from ..glossary import CurrentGlossary
    from .asr.live.drafts import LiveDrafts


class Stage(Protocol):
    """Takes events from a queue and puts events on another, in order, until it has passed on ``EndOfInput``."""

    name: str

    async def run(self) -> None: ...


@dataclass(frozen=True)
class StageContext:
    """The things of a run that its stages may need."""

    config: RunConfig
    models: Models
    stats: PipelineStats
    load: LoadControl
    live: Callable[[], bool]
    """Whether the audio comes as it is spoken; known once a source is read."""
    glossary: CurrentGlossary | None = None
    reader: Callable[[], Worker | None] = lambda: None
    """The thread that reads a local recording, while it does."""
    late: LateTargets | None = None
    """Adds target languages while a live run goes on."""


# Speech before a segment after which its drafts are recognised, so that the rest of a sentence is heard in its context.
_CONTEXT_MS = 8_000

Queue = asyncio.Queue[Any]
MakeStage = Callable[[Queue, Queue, StageContext], Stage]
"""(inbox, outbox, context) → a stage that has not begun."""


@dataclass(frozen=True)
class StageSpec:
    """A stage by name, and how to make it."""

    name: str
    make: MakeStage
    capacity: Callable[[QueueConfig], int]
    """Events that wait between this stage and the next at most. The last stage's outbox is the reader's."""


def standard_stages() -> list[StageSpec]:
    """The stages and what each puts out for audio [n] int16.

    VAD: ``SpeechSegment``, ``SegmentSoFar``, ``Pause`` and ``SoundEvent``. ASR: ``Transcript``, ``TranscriptSoFar``, ``Pause`` and
    ``SoundEvent``. sentences: ``Transcript``, ``SourceText`` and ``SourceSentence``. NMT: the same, and ``TargetText`` and
    ``Translation`` for each target language.
    """
    return [
        StageSpec("VAD", _vad, lambda queues: queues.segments),
        StageSpec("ASR", _asr, lambda queues: queues.transcripts),
        StageSpec("sentences", _sentences, lambda queues: queues.sentences),
        StageSpec("NMT", _nmt, lambda queues: queues.events),
    ]


def with_stage(
    stages: Sequence[StageSpec], name: str, function: Callable[[Any], object], *, after: str
) -> list[StageSpec]:
    """``stages`` and one more: ``function`` is called with every event that the stage ``after`` puts out.

    It returns the event, another one, or a list of events, which is empty to drop it. ``EndOfInput`` is passed on without
    it. Calls come one after another, on a thread of the stage's own, so ``function`` may block. An exception ends the run.

    Raises:
        ValueError: there is no stage ``after``, or one called ``name`` already.
    """
    names = [stage.name for stage in stages]
    if after not in names:
        raise ValueError(f"there is no stage {after!r}; the stages are {', '.join(names)}")
    if name in names:
        raise ValueError(f"there is a stage named {name!r} already; choose another name")
    index = names.index(after) + 1

    def make(inbox: Queue, outbox: Queue, context: StageContext) -> Stage:
        return FunctionStage(name, function, inbox, outbox)

    return [*stages[:index], StageSpec(name, make, stages[index - 1].capacity), *stages[index:]]


class FunctionStage:
    """Calls a function with each event; see ``with_stage``."""

    def __init__(self, name: str, function: Callable[[Any], object], inbox: Queue, outbox: Queue) -> None:
        self.name, self.inbox, self.outbox = name, inbox, outbox
        self._function = function

    async def run(self) -> None:
        """Work until the end of input has been passed on.

        Raises:
            TypeError: the function returned neither an event nor a list of events.
        """
        with contextlib.closing(Worker(self.name)) as worker:
            while not isinstance(event := await self.inbox.get(), EndOfInput):
                for result in await worker.run(partial(self._call, event)):
                    await self.outbox.put(result)
            await self.outbox.put(event)

    def _call(self, event: object) -> list[object]:
        output = self._function(event)
        results = output if isinstance(output, list) else [output]
        for result in results:
            if not dataclasses.is_dataclass(result):
                found_type = "nothing" if result is None else f"a {type(result).__name__}"
                raise TypeError(
                    f"the stage {self.name!r} returned {found_type} for a {type(event).__name__}; return the event, "
                    "or [] to drop it"
                )
        return results


def import_stages() -> None:
    """Import what stages load by need, off a loop that has other work: it takes 15 ms."""
    for module in ("asr.live.drafts", "asr.terms"):
        import_module(f"{__package__}.{module}")


async def run_stages(
    specs: Sequence[StageSpec], inbox: Queue, outbox: Queue, context: StageContext
) -> PipelineError | None:
    """Make the stages and run all to their ends; the failure that ended them early, or None."""
    try:
        async with asyncio.TaskGroup() as group:
            for stage in chained(specs, inbox, outbox, context):
                group.create_task(_run_stage(stage))
    except BaseExceptionGroup as failures:
        first = failures.exceptions[0]
        return first if isinstance(first, StageError) else StageError("pipeline", first)
    except Exception as error:  # for example, a stage of the app's cannot be made
        return StageError("pipeline", error)
    return None


async def _run_stage(stage: Stage) -> None:
    try:
        await stage.run()
    except (asyncio.CancelledError, GeneratorExit, KeyboardInterrupt, SystemExit, StageError):
        raise  # the first four come from outside: the worker's thread raises a StageError instead
    except BaseException as error:
        raise StageError(stage.name, error) from error


def chained(stages: Sequence[StageSpec], inbox: Queue, outbox: Queue, context: StageContext) -> list[Stage]:
    """Make the stages, each connected to the next by a bounded queue.

    Raises:
        ValueError: there are none, or two of one name.
    """
    names = [stage.name for stage in stages]
    if not stages or len(set(names)) < len(names):
        raise ValueError(f"the stages are {', '.join(names) or 'none'}; expected at least one, with different names")
    made: list[Stage] = []
    for number, spec in enumerate(stages, 1):
        last = number == len(stages)
        following = outbox if last else asyncio.Queue(spec.capacity(context.config.queues))
        made.append(spec.make(inbox, following, context))
        inbox = following
    return made


def _vad(inbox: Queue, outbox: Queue, context: StageContext) -> Stage:
    config = context.config
    pauses_ms = {config.sentences.sure_pause_ms, config.sentences.pause_ms, config.sentences.long_pause_ms}

    def early() -> bool:
        return config.has_drafts and context.live() and context.load.drafts

    sounds = context.models.sounds if config.sounds.captions else None
    return VadStage(
        config.vad, config.speech_detector, inbox, outbox, context.stats, pauses_ms, early, context.reader, sounds
    )


def _asr(inbox: Queue, outbox: Queue, context: StageContext) -> Stage:
    config, models = context.config, context.models
    terms = None
    if context.glossary is not None:
        from .asr.terms import HeardTerms

        terms = HeardTerms(context.glossary, config.glossary)
    recognizer = by_segment(models.recognizer)
    several = len(config.languages.spoken) > 1
    final = FinalRecognition(recognizer, context.stats, several_languages=several, terms=terms)
    single = not (config.sentences.pause_ms and config.sentences.long_pause_ms)
    groups = Groups(single=single, sure_ms=config.vad.max_segment_ms - config.vad.cut_search_ms)
    drafts: LiveDrafts | None = None
    if config.has_drafts:
        from .asr.context import Context
        from .asr.live.drafts import LiveDrafts

        drafter = recognizer if isinstance(recognizer, DraftRecognizer) else None
        before = Context(_CONTEXT_MS, config.sentences.long_pause_ms)
        drafts = LiveDrafts(final, models.drafter or drafter, config.drafts, before, context.stats.clock)
    reading = lambda: context.reader() is not None  # noqa: E731
    return AsrStage(inbox, outbox, groups, final, drafts, context.load, context.live, reading)


def _sentences(inbox: Queue, outbox: Queue, context: StageContext) -> Stage:
    languages = context.config.languages
    sounds = SoundCaptions(languages.only_spoken or languages.spoken[0])
    return SentenceStage(inbox, outbox, context.config.sentences, context.glossary, sounds)


def _nmt(inbox: Queue, outbox: Queue, context: StageContext) -> Stage:
    shared = NmtContext(context.live, context.config.drafts, context.stats, context.glossary)
    capacity = context.config.queues.sentences
    return TranslationStage(context.models.translations, inbox, outbox, shared, capacity=capacity, late=context.late)
