"""Sessions in which several languages may be spoken, and programs that name one of them."""

import numpy as np
import pytest

from pipeline.config import load_config, with_overrides
from pipeline.config.loading import SharedModels, load_shared
from pipeline.server.languages.offers import Offers
from pipeline.server.limits import ServerLimits
from pipeline.server.service import Service
from tests.commands import loaded_once
from tests.conftest import ROOT, read_wav
from tests.server.running import ask, finish, running, speak
from tests.server.test_operator import answered

SECONDS = 16_000
SAID = [
    read_wav(ROOT / "examples/audio-pt/lisbon.wav")[: round(4.3 * SECONDS)],
    read_wav(ROOT / "examples/audio/novel.wav")[: round(6.9 * SECONDS)],
]
PAUSE = np.zeros(3 * SECONDS, np.int16)


@pytest.fixture(scope="module")
def any_language():
    """The configuration, its models and those that are shared."""
    config, shared = with_overrides(load_config("demo"), source="auto", targets="en"), SharedModels(fetches=False)
    with loaded_once():
        return config, load_shared([config], shared=shared)[0], shared


@pytest.fixture
def service(any_language):
    """Translates what is said in any language into English, and fetches nothing."""
    config, models, shared = any_language
    limits = ServerLimits(connections_a_minute=10_000)
    return Service(config, models, limits, offers=Offers([(config, models)], shared))


@pytest.mark.slow
async def test_a_session_is_translated_from_the_languages_that_are_spoken(service):
    async with running(service) as server, server.connect() as speaker:
        started = await ask(speaker, type="start", source="auto", targets=["en"])
        assert (started["source"], started["targets"]) == ("auto", ["en"])
        await speak(speaker, np.concatenate([SAID[0], PAUSE, SAID[1], PAUSE]))
        records = await finish(speaker)
    source = [(one["language"], one["text"]) for one in records if one["type"] == "source_sentence"]
    target = [one["text"] for one in records if one["type"] == "translation"]
    assert [language for language, _ in source] == ["pt", "en"]
    assert "Lisbon" in target[0]
    assert target[1] == source[1][1]


@pytest.mark.slow
async def test_one_more_language_is_refused_where_several_are_spoken(service):
    async with running(service) as server, server.connect() as speaker:
        await ask(speaker, type="start")
        refused = await answered(speaker, "not_added", "targets", type="add_target", language="pt")
        assert (refused["type"], refused["code"]) == ("not_added", "unknown-target")


async def test_a_text_is_translated_from_the_language_that_is_named_or_refused(service):
    async with running(service) as server:
        found = await server.get("/translate?source=pt&target=en&q=Bom+dia.", method="POST")
        assert b"Good" in found.body
        refused = await server.get("/translate?source=es&target=en&q=Hola.", method="POST")
        assert refused.status == 400
        assert b"firefox/es-en" in refused.body
