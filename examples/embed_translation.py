"""The NMT stage alone inside a host app that has text, one delta a token.

python examples/embed_translation.py "Where is the hotel?" "The train to Paris leaves at nine o'clock."
"""

from __future__ import annotations

import asyncio
import sys

from pipeline import Delta, EndOfInput, NmtStage, PipelineEvent, Transcript, load_config, load_translation_model


async def main(sentences: list[str]) -> None:
    model = await asyncio.to_thread(load_translation_model, "en", "zh", load_config("demo").nmt)
    inbox: asyncio.Queue[Transcript | EndOfInput] = asyncio.Queue(8)
    outbox: asyncio.Queue[PipelineEvent] = asyncio.Queue(64)

    async def feed() -> None:
        for number, text in enumerate(sentences):
            await inbox.put(Transcript(number, start_s=0.0, end_s=0.0, text=text, language="en"))
        await inbox.put(EndOfInput())

    async with asyncio.TaskGroup() as group:
        group.create_task(NmtStage(model, inbox, outbox, target="zh").run())
        group.create_task(feed())  # beside reading: both queues are bounded
        while not isinstance(event := await outbox.get(), EndOfInput):
            if isinstance(event, Transcript):
                print(event.text)
            elif isinstance(event, Delta):
                print(f"    {event.text!r} (log-probability {event.log_probability:.2f})")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:] or ["Where is the hotel?"]))
