"""Languages beyond the configured ones: listed, fetched on choice from a local catalogue, used, shared and dropped."""

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import pytest

from pipeline.config.loading import SharedModels, load_shared
from pipeline.server.access import Access
from pipeline.server.languages.offers import Offers
from pipeline.server.protocol import ProtocolError
from pipeline.server.service import Service
from tests.conftest import PHRASES, read_wav
from tests.server.running import NewService, Running, ask, finish, running, say, speak

SPEECH = read_wav(PHRASES)[: 3 * 16_000]
TOKEN = "a token that nobody guesses"


@pytest.fixture
def service(offering: NewService) -> Service:
    """A server of English into Chinese that fetches."""
    return offering()


async def prepare(server: Running, query: str, headers: dict[str, str] | None = None) -> list[dict[str, Any]]:
    """The lines of the answer, which ends with ``ready`` or an error."""
    answer = await server.get(f"/v1/languages?{query}", headers, "POST")
    return [json.loads(line) for line in answer.body.decode().splitlines() if line.startswith("{")]


def translated_into(records: Sequence[dict[str, Any]]) -> set[str]:
    return {record["language"] for record in records if record["type"] == "translation"}


@pytest.mark.slow
async def test_the_pairs_of_students_are_listed(service):
    async with running(service) as server:
        listed = json.loads((await server.get("/v1/languages")).body)
    assert listed["configured"] == [{"source": "en", "targets": ["zh"]}]
    assert listed["downloads"]
    offered = {one["source"]: one["targets"] for one in listed["offered"]}
    assert {"de", "fr", "pt"} < set(offered["en"])
    assert "ja" in offered["pt"]  # through English
    assert sum(map(len, offered.values())) > 2_000


@pytest.mark.slow
async def test_a_pair_is_fetched_on_choice_and_used_while_others_go_on(service, catalogue):
    catalogue.open.clear()
    async with running(service) as server, server.connect() as other, server.connect() as speaker:
        await say(speaker, type="start", source="en", targets=["de"])
        first = json.loads(await speaker.recv())
        while "fetching firefox/en-de" not in first["doing"]:
            assert first["type"] == "preparing"
            first = json.loads(await speaker.recv())
        assert 0 <= first["part"] <= 1
        assert (await ask(other, type="start"))["targets"] == ["zh"]
        await speak(other, SPEECH)
        assert translated_into(await finish(other)) == {"zh"}
        catalogue.open.set()
        while (started := json.loads(await speaker.recv()))["type"] == "preparing":
            pass
        assert (started["source"], started["targets"]) == ("en", ["de"])
        await speak(speaker, SPEECH)
        assert translated_into(await finish(speaker)) == {"de"}


async def test_fifty_who_ask_at_once_have_one_download(service, catalogue):
    async with running(service) as server:
        catalogue.open.clear()
        asking = [asyncio.create_task(prepare(server, "source=en&target=de")) for _ in range(50)]
        await asyncio.to_thread(catalogue.asked_for, "/models.json")
        catalogue.open.set()
        assert [answer[-1] for answer in await asyncio.gather(*asking)] == [{"ready": True}] * 50
        assert sorted(set(catalogue.asked)) == sorted(catalogue.asked)
        assert (await prepare(server, "source=en&target=de"))[-1] == {"ready": True}
        assert len(catalogue.asked) == 4


async def test_a_full_disk_is_said_and_the_pair_can_be_had_later(service, catalogue, tmp_path):
    (model,) = (path for path in (tmp_path / "served").iterdir() if path.name.startswith("model"))
    digest = catalogue.models["en-de"][0]["files"]["model"]["uncompressedHash"]
    parts = tmp_path / "assets" / "firefox" / f".en-de.{digest[:16]}"
    parts.mkdir(parents=True)
    (parts / f"{model.name}.gz").symlink_to("/dev/full")
    async with running(service) as server:
        error = (await prepare(server, "source=en&target=de"))[-1]["error"]
        assert (error["code"], str(tmp_path) in error["message"]) == ("no-space", False)
        assert "the disk of the server is full" in error["message"]
        async with server.connect() as speaker:
            await say(speaker, type="start", source="en", targets=["de"])
            while (refused := json.loads(await speaker.recv()))["type"] == "preparing":
                pass
            assert (refused["type"], refused["code"]) == ("error", "no-space")
        (parts / f"{model.name}.gz").unlink()
        assert (await prepare(server, "source=en&target=de"))[-1] == {"ready": True}


async def test_a_catalogue_that_is_down_is_said_and_the_configured_pair_goes_on(service, catalogue):
    catalogue.server.shutdown()
    catalogue.server.server_close()
    async with running(service) as server, server.connect() as speaker:
        *_, last = await prepare(server, "source=en&target=de")
        assert last["error"]["code"] == "no-models"
        assert f"{catalogue.base}/models.json cannot be fetched" in last["error"]["message"]
        assert (await ask(speaker, type="start"))["type"] == "started"


@pytest.mark.parametrize(
    ("query", "code", "message"),
    [
        ("source=en&target=xx", "unknown-target", "'xx' is not a language code"),
        ("source=en&target=la", "unknown-target", 'no model translates "en" into "la"'),
        ("source=tlh&target=en", "unknown-source", "does not know"),
        (
            "source=en&" + "&".join(f"target={one}" for one in ["de", "fr", "it", "es", "pt", "pl", "ru", "uk", "cs"]),
            "unknown-target",
            "9",
        ),
    ],
)
async def test_what_cannot_be_had_is_refused(service, query, code, message):
    async with running(service) as server:
        answer = await server.get(f"/v1/languages?{query}", method="POST")
        assert answer.status == 400
        error = json.loads(answer.body)["error"]
        assert error["code"] == code
        assert message in error["message"]


async def test_a_token_is_needed_where_there_is_one(service, catalogue):
    async with running(service, Access.of(TOKEN)) as server:
        assert (await server.get("/v1/languages?source=en&target=de", method="POST")).status == 401
        assert not catalogue.asked
        right = {"Authorization": f"Bearer {TOKEN}"}
        assert (await prepare(server, "source=en&target=de", right))[-1] == {"ready": True}


async def test_without_downloads_the_models_of_this_machine_are_offered(offering, catalogue):
    async with running(offering(downloads=False)) as server, server.connect() as speaker, server.connect() as other:
        error = await ask(speaker, type="start", source="en", targets=["de"])
        assert (error["code"], catalogue.asked) == ("unknown-target", [])
        assert "does not have firefox/en-de" in error["message"]
        assert "--allow-downloads" in error["message"]
        listed = json.loads((await server.get("/v1/languages")).body)
        assert {"source": "en", "targets": ["pt"]} in listed["offered"]
        await say(other, type="start", source="fr", targets=["fr"])  # captions need no translator
        while (started := json.loads(await other.recv()))["type"] == "preparing":
            pass
        assert (started["source"], started["targets"]) == ("fr", ["fr"])


@pytest.mark.slow
async def test_translators_that_nobody_uses_make_room(demo_config, catalogue):
    config = demo_config
    shared = SharedModels()
    in_use = load_shared([config], several_calls=True, shared=shared)
    before = shared.used_bytes
    offers = Offers([(config, in_use[0])], shared, downloads=True)
    german = await offers.prepare("en", ["de"]).chain()
    shared.limit_bytes = shared.used_bytes + (shared.used_bytes - before) // 2
    with pytest.raises(ProtocolError, match="the translators in use would take") as refused:
        await offers.prepare("en", ["fr"]).chain()
    assert refused.value.code == "busy"
    assert await offers.prepare("en", ["de"]).chain() is german
    del german, refused
    french = await offers.prepare("en", ["fr"]).chain()
    assert list(french.models.translations) == ["fr"]
    assert shared.used_bytes <= shared.limit_bytes


async def test_a_few_languages_are_prepared_at_once(service, catalogue):
    catalogue.open.clear()
    offers = service.offers
    running = [offers.prepare("en", [target]) for target in ("de", "fr", "it", "es")]
    assert offers.prepare("en", ["de"]) is running[0]
    with pytest.raises(ProtocolError, match="preparing other languages") as refused:
        offers.prepare("en", ["pl"])
    assert refused.value.code == "busy"
    catalogue.open.set()
    await asyncio.gather(*(each.chain() for each in running), return_exceptions=True)
    await offers.prepare("en", ["de"]).chain()


async def test_no_client_can_name_an_address(service, catalogue):
    address = f"{catalogue.base}/models.json"
    async with running(service) as server, server.connect() as speaker, server.connect() as other:
        assert (await ask(speaker, type="start", url=address))["code"] == "bad-message"
        assert (await ask(other, type="start", source=address))["code"] == "unknown-source"
        for query in (f"source={address}", f"source=en&target={address}", "source=en&target=firefox/en-de"):
            assert (await server.get(f"/v1/languages?{query}", method="POST")).status == 400
    assert not catalogue.asked
