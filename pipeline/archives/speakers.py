"""One speaker a channel: each channel of a recording passes a chain of its own, and the results become one stream."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack, aclosing
from dataclasses import dataclass, field, replace

from ..core import EndOfInput, PipelineEvent, SourceSentence, SourceText, TargetText, Transcript, Translation
from ..errors import UsageError

# Each has a chain of its own, which works at the same time as the others.
_MOST = 8


def speaker_names(asked: str) -> tuple[str, ...]:
    """The names in a comma-separated list, in the order of the channels.

    Raises:
        UsageError: there are too few or too many, or one is empty, there twice or not printable.
    """
    names = tuple(name.strip() for name in asked.split(","))
    if not (2 <= len(names) <= _MOST and all(names) and len(set(names)) == len(names) and asked.isprintable()):
        raise UsageError(
            f"--speakers has {asked!r}; expected 2 to {_MOST} different names, one for each channel, such as 1,2"
        )
    return names


@dataclass
class _Part:
    """A sentence and what comes with it: the transcripts before it, and its translations."""

    events: list[PipelineEvent] = field(default_factory=list)
    start_s: float = float("inf")

    def take(self, event: PipelineEvent) -> None:
        if isinstance(event, SourceSentence):
            self.start_s = event.start_s
        if isinstance(event, SourceText):  # only the last one: a sentence in progress would hold back those of others
            self.events = [earlier for earlier in self.events if not isinstance(earlier, SourceText)]
        self.events.append(event)


async def in_order_of_time(
    speakers: Mapping[str, AsyncGenerator[PipelineEvent, None]],
) -> AsyncGenerator[PipelineEvent, None]:
    """The events of several speakers as those of one stream, which name their speaker.

    Each stream is one without drafts. Its sentences stay in their order, each with its translations, and come before those
    that others begin later. They are numbered anew. A stream waits while others have earlier sentences.
    """
    count, ends = 0, list[EndOfInput]()
    async with AsyncExitStack() as stack:
        streams = {name: _parts(events) for name, events in speakers.items()}
        for parts in streams.values():
            await stack.enter_async_context(aclosing(parts))
        waiting = {name: await anext(parts) for name, parts in streams.items()}
        while waiting:
            name = min(waiting, key=lambda each: waiting[each].start_s)
            for event in waiting[name].events:
                if isinstance(event, EndOfInput):
                    ends.append(event)
                    continue
                if isinstance(event, SourceText | SourceSentence | TargetText | Translation):
                    event = replace(event, sentence=count)
                yield (
                    replace(event, speaker=name)
                    if isinstance(event, Transcript | SourceText | SourceSentence)
                    else event
                )
            count += waiting[name].start_s < float("inf")
            following = await anext(streams[name], None)
            if following is None:
                del waiting[name]
            else:
                waiting[name] = following
    if len(ends) == len(speakers):
        yield max(ends, key=lambda end: end.duration_s)


async def _parts(events: AsyncGenerator[PipelineEvent, None]) -> AsyncGenerator[_Part, None]:
    """The parts of one speaker's stream; the last one, which may have no sentence, has its end."""
    part = _Part()
    async for event in events:
        begins = isinstance(event, Transcript | SourceText | SourceSentence | EndOfInput)
        if begins and part.start_s < float("inf"):
            yield part
            part = _Part()
        part.take(event)
    yield part
