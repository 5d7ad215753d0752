"""A list of masked words holds for sessions, uploads and the translator alone, whatever the protocol."""

from dataclasses import replace

import httpx
import pytest

from pipeline.core.run.options import CaptionOptions
from pipeline.errors import ConfigError
from pipeline.server.service import Service
from tests.conftest import EXAMPLES, read_wav
from tests.server.running import ask, final, finish, running, speak

MEETING = EXAMPLES / "meeting.wav"


@pytest.mark.slow
async def test_every_protocol_masks(demo_config, demo_models, tmp_path):
    path = tmp_path / "masked.txt"
    path.write_text("[en]\nbudget\n[zh]\n预算\n", "utf-8")
    config = replace(demo_config, captions=CaptionOptions(str(path)))
    async with (
        running(Service(config, demo_models)) as server,
        httpx.AsyncClient(base_url=server.url, timeout=None) as client,
    ):
        body = {"q": "Please send me the budget before Friday.", "source": "en", "target": "zh"}
        translated = (await client.post("/translate", json=body)).json()["translatedText"]
        for route in ("translations", "transcriptions"):
            answer = await client.post(
                f"/v1/audio/{route}",
                files={"file": MEETING.read_bytes()},
                data={"model": "m", "response_format": "text"},
            )
            translated += answer.text
        async with server.connect() as speaker:
            await ask(speaker, type="start")
            await speak(speaker, read_wav(MEETING)[: 10 * 16_000])
            records = await finish(speaker)
        translated += "".join(final(records).values())
        assert translated.count("预*") == 3
        assert translated.count("b*****") == 2
        told = translated + "".join(str(record) for record in records)
        assert "预算" not in told
        assert "budget" not in told
    path.write_text("[en]\n!\n", "utf-8")
    with pytest.raises(ConfigError, match='line 2: "!" has no letters or digits'):
        Service(config, demo_models)
