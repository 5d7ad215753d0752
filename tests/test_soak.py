"""A long run holds no more memory than a short one."""

from __future__ import annotations

import asyncio
from pathlib import Path

import numpy as np
import pytest

from pipeline import Models, PipelineConfig, SpeechTranslator
from tests.conftest import EXAMPLES, read_wav

MINUTES = 10


def resident_mb() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / 1e6


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="resident memory is read from /proc")
@pytest.mark.slow
def test_resident_memory_stays_flat(demo_config: PipelineConfig, demo_models: Models) -> None:
    minute = np.concatenate([read_wav(EXAMPLES / "travel.wav"), read_wav(EXAMPLES / "meeting.wav")])[: 16_000 * 40]
    minute = np.concatenate([minute, np.zeros(16_000 * 60 - len(minute), np.int16)])
    sizes: list[float] = []

    async def feed(translator: SpeechTranslator) -> None:
        for _ in range(MINUTES):
            await translator.feed(minute)
        await translator.end()

    async def work() -> None:
        async with SpeechTranslator(demo_config, demo_models) as translator:
            feeding = asyncio.create_task(feed(translator))
            async for _ in translator.events():
                if translator.stats.audio_s >= 60 * (len(sizes) + 1):
                    sizes.append(resident_mb())
            await feeding

    asyncio.run(work())
    print("MB after each minute of audio:", [round(size) for size in sizes])
    # A minute of audio is 1.9 MB: keeping it would show as 11 MB between the fourth minute and the last.
    assert len(sizes) >= MINUTES - 1
    assert sizes[-1] - sizes[3] < 6
