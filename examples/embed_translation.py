"""The translation stage alone inside a host app that has text: the translation after each token, then the whole.

python examples/embed_translation.py "Where is the hotel?" "The train to Paris leaves at nine o'clock."
"""

from __future__ import annotations

import asyncio
import sys

from speech_translate import (
    EndOfInput,
    NmtStage,
    SourceSentence,
    TargetText,
    Translation,
    load_config,
    load_translation_model,
)


async def main(sentences: list[str]) -> None:
    model = await asyncio.to_thread(load_translation_model, "en", "pt", load_config("demo").nmt)
    inbox: asyncio.Queue[SourceSentence | EndOfInput] = asyncio.Queue(8)
    outbox: asyncio.Queue[TargetText | Translation | EndOfInput] = asyncio.Queue(64)

    async def feed() -> None:
        for number, text in enumerate(sentences):
            await inbox.put(SourceSentence(number, language="en", text=text))
        await inbox.put(EndOfInput())

    async with asyncio.TaskGroup() as group:
        group.create_task(NmtStage(model, inbox, outbox, target="pt").run())
        group.create_task(feed())  # beside reading: both queues are bounded
        while not isinstance(event := await outbox.get(), EndOfInput):
            if isinstance(event, TargetText):
                print(f"    {event.text!r} (log-probability of the token {event.tokens[-1].log_probability:.2f})")
            else:
                print(f"{sentences[event.sentence]}\n{event.text}")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:] or ["Where is the hotel?"]))
