"""Translate the texts on standard input, a JSON list, to standard output, with the ``pipeline`` that is found first.

python texts.py CONFIG SOURCE TARGET. Uses what docs/embedding.md promises, so that older revisions can do it, too.
"""

from __future__ import annotations

import asyncio
import json
import sys

from pipeline import EndOfInput, NmtStage, SourceSentence, Translation, load_config, load_translation_model


async def translated(texts: list[str], config: str, source: str, target: str) -> list[str]:
    model = load_translation_model(source, target, load_config(config).nmt)
    inbox: asyncio.Queue[object] = asyncio.Queue(8)
    outbox: asyncio.Queue[object] = asyncio.Queue(64)
    found = [""] * len(texts)

    async def feed() -> None:
        for number, text in enumerate(texts):
            await inbox.put(SourceSentence(number, language=source, text=text))
        await inbox.put(EndOfInput())

    async with asyncio.TaskGroup() as group:
        group.create_task(NmtStage(model, inbox, outbox, target=target).run())
        group.create_task(feed())
        while not isinstance(event := await outbox.get(), EndOfInput):
            if isinstance(event, Translation):
                error = getattr(event, "error", None)
                found[event.sentence] = event.text if error is None else f"(failed: {error})"
    return found


if __name__ == "__main__":
    print(json.dumps(asyncio.run(translated(json.load(sys.stdin), *sys.argv[1:]))))
