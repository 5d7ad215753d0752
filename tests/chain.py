"""Runs of the whole chain and of single stages, and what they put out."""

import asyncio

from pipeline import EndOfInput, SpeechTranslator
from pipeline.core.captions.states import OpenTexts
from tests.drafting import at_once


def events_of(config, models, source, *, live=False, **options):
    """The events of a run; none of its committed text is withdrawn. Live, time goes by with the audio only."""

    async def work():
        async with SpeechTranslator(config, models, live=live, **options) as translator:
            if live:
                at_once(translator.stats)
            return [event async for event in translator.run(source)]

    events, texts = asyncio.run(work()), OpenTexts()
    for event in events:
        texts.push(event)
    return events


def through(make, *items):
    """What a stage, made from two queues, puts out for the items, which wait for it, and the end of the input."""

    async def work():
        inbox, outbox = asyncio.Queue(), asyncio.Queue()
        for item in (*items, EndOfInput(20.0)):
            inbox.put_nowait(item)
        await make(inbox, outbox).run()
        return [outbox.get_nowait() for _ in range(outbox.qsize())]

    return asyncio.run(work())
