"""Readers and the speaker have a session in progress translated into one more language."""

import asyncio
import json

import pytest
import srt

from pipeline.config.loading import SharedModels
from pipeline.core.nmt.translator import TranslationRequest
from pipeline.events import SourceSentence, Translation
from pipeline.languages.options import LanguageConfig
from pipeline.server.access import Access
from pipeline.server.languages.offers import Offers
from pipeline.server.languages.session_targets import SessionTargets
from pipeline.server.limits import ServerLimits
from pipeline.server.protocol import ProtocolError
from pipeline.server.service import Service
from pipeline.server.speaking import SessionVoices
from pipeline.speaking.voice import PiperVoice
from tests.conftest import PHRASE_SECONDS, PHRASES, read_wav
from tests.server.running import ask, final, finish, heard, rest, running, say, speak
from tests.speaking.voices import made_voice

TOKEN = "a token that nobody guesses"
WHOLE = read_wav(PHRASES)
CUT = round(2 * PHRASE_SECONDS * 16_000)
BEFORE, AFTER = WHOLE[:CUT], WHOLE[CUT : 2 * CUT]


async def until(socket, *kinds):
    """The next message of these kinds, and all before it."""
    found = [await heard(socket)]
    while found[-1]["type"] not in kinds:
        found.append(await heard(socket))
    return found


async def added(socket, language):
    """Ask for a language; the answer."""
    await say(socket, type="add_target", language=language)
    while language not in (answer := (await until(socket, "targets", "not_added"))[-1]).get("targets", [language]):
        pass
    return answer


async def said(socket, samples, sentences):
    """Speak until so many sentences are translated into Chinese."""
    await speak(socket, samples)
    records = []
    while sum(record["type"] == "translation" for record in records) < sentences:
        records.append(await heard(socket))
    return records


@pytest.mark.slow
async def test_all_readers_have_the_whole_text_in_a_language_that_one_asks_for(offering, tmp_path, tmp_path_factory):
    voice = PiperVoice(made_voice(tmp_path_factory.mktemp("voice"), "pt-BR"))
    service = offering(tmp_path, downloads=False, voices=lambda targets: SessionVoices([voice], targets, 1))
    async with (
        running(service) as server,
        server.connect() as speaker,
        server.connect() as asking,
        server.connect() as other,
    ):
        started = await ask(speaker, type="start")
        watch = {"type": "watch", "session": started["session"]}
        assert (await ask(asking, **watch))["targets"] == ["zh"]
        await ask(other, **watch)
        before = await said(speaker, BEFORE, 1)
        targets = {"type": "targets", "targets": ["zh", "pt"], "voices": ["pt"]}
        assert await added(asking, "pt") == targets  # of an installed package
        await speak(speaker, AFTER)
        async with server.connect() as late:
            assert {"targets": ["zh", "pt"], "voices": ["pt"]}.items() <= (await ask(late, **watch)).items()
        of_speaker = await finish(speaker)
        of_others = [await rest(socket) for socket in (asking, other)]
    assert targets in of_speaker
    assert targets in of_others[1]
    texts = final([*before, *of_speaker])
    spoken = {sentence for sentence, language in texts if language == "en"}
    assert len(spoken) >= 3
    assert {sentence for sentence, language in texts if language == "pt"} == spoken
    for found in of_others:
        assert {key: text for key, text in final(found).items() if key[1] == "pt"} == {
            key: text for key, text in texts.items() if key[1] == "pt"
        }
    lines = [json.loads(line) for line in next(tmp_path.glob("*.jsonl")).read_text("utf-8").splitlines()]
    assert final(lines) == texts
    cues = list(srt.parse(next(tmp_path.glob("*.pt.srt")).read_text("utf-8")))
    in_order = " ".join(text for (_, language), text in sorted(texts.items()) if language == "pt")
    assert " ".join(" ".join(cue.content for cue in cues).split()) == in_order
    assert [cue.start for cue in cues] == sorted(cue.start for cue in cues)
    assert len(list(tmp_path.iterdir())) == 5


@pytest.mark.slow
async def test_the_text_is_what_the_translator_writes(offering):
    service = offering(downloads=False)
    async with running(service) as server, server.connect() as speaker:
        await ask(speaker, type="start")
        records = await said(speaker, BEFORE, 1)
        assert (await added(speaker, "pt"))["type"] == "targets"
        (session,) = service.sessions.values()
        texts = final([*records, *await finish(speaker)])
        model = (await service.obtained("en", ["pt"])).models.translations["pt"]
    for (number, language), text in texts.items():
        if language == "en":
            *_, translation = model.stream(TranslationRequest(SourceSentence(number, "en", text), "pt"))
            assert isinstance(translation, Translation)
            assert texts[number, "pt"] == translation.text
    assert session.config.languages.targets == ("zh", "pt")


@pytest.mark.slow
async def test_ten_readers_who_ask_at_once_have_one_download(offering, catalogue):
    catalogue.open.clear()
    async with running(offering()) as server, server.connect() as speaker:
        started = await ask(speaker, type="start")
        readers = [await server.connect() for _ in range(10)]
        for reader in readers:
            await ask(reader, type="watch", session=started["session"])
        asking = [asyncio.create_task(added(reader, "de")) for reader in readers]
        await asyncio.to_thread(catalogue.asked_for, "/models.json")
        await speak(speaker, BEFORE)  # the session goes on meanwhile
        before = [await heard(speaker)]
        while before[-1]["type"] != "translation":
            before.append(await heard(speaker))
        catalogue.open.set()
        assert await asyncio.gather(*asking) == [{"type": "targets", "targets": ["zh", "de"], "voices": []}] * 10
        assert sorted(set(catalogue.asked)) == sorted(catalogue.asked)
        assert await added(readers[0], "de") == {"type": "targets", "targets": ["zh", "de"], "voices": []}
        texts = final([*before, *await finish(speaker)])
        for reader in readers:
            await reader.close()
    assert {language for _, language in texts} == {"en", "zh", "de"}


async def test_who_asks_is_told_how_far_it_is(offering, catalogue):
    catalogue.open.clear()
    async with running(offering()) as server, server.connect() as speaker:
        await ask(speaker, type="start")
        await say(speaker, type="add_target", language="fr")
        while "fetching firefox/en-fr" not in (step := await heard(speaker)).get("doing", ""):
            assert step["type"] in ("preparing", "snapshot")
        catalogue.open.set()
        assert (await until(speaker, "targets"))[-1]["targets"] == ["zh", "fr"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("language", "code", "message"),
    [
        ("xx", "unknown-target", "'xx' is not a language code"),
        ("la", "unknown-target", 'no model translates "en" into "la"'),
        ("de\ud800", "unknown-target", "is not a language code"),
        ("de", "unknown-target", "does not have firefox/en-de, which translates"),
    ],
)
async def test_what_cannot_be_had_is_said_and_the_session_goes_on(offering, catalogue, language, code, message):
    async with running(offering(downloads=False)) as server, server.connect() as speaker, server.connect() as reader:
        started = await ask(speaker, type="start")
        await ask(reader, type="watch", session=started["session"])
        for socket in (reader, speaker):
            refused = await added(socket, language)
            assert (refused["type"], refused["code"]) == ("not_added", code)
            assert message in refused["message"]
        assert await added(reader, "zh") == {"type": "targets", "targets": ["zh"], "voices": []}
        await speak(speaker, BEFORE)
        assert {language for _, language in final(await finish(speaker))} == {"en", "zh"}
        assert (await rest(reader))[-1]["type"] == "end"


async def test_readers_may_add_so_many_and_the_speaker_more(offering, catalogue):
    async with running(offering(reader_targets=1)) as server, server.connect() as speaker, server.connect() as reader:
        started = await ask(speaker, type="start")
        await ask(reader, type="watch", session=started["session"])
        assert (await added(reader, "de"))["targets"] == ["zh", "de"]
        refused = await added(reader, "fr")
        assert refused["code"] == "too-many-targets"
        assert "as many languages as they may, 1; choose from zh, de, or ask the speaker" in refused["message"]
        assert (await added(speaker, "fr"))["targets"] == ["zh", "de", "fr"]
        assert (await until(reader, "targets"))[-1]["targets"] == ["zh", "de", "fr"]


@pytest.mark.parametrize(
    ("languages", "said"),
    [
        (LanguageConfig("en", ("zh", "de", "fr", "pt", "it", "es", "pl", "cs")), "8 targets, which is the limit"),
        (
            LanguageConfig("auto", ("en", "zh")),
            "what is spoken in several languages is translated into en and zh alone",
        ),
    ],
)
def test_a_session_that_may_have_no_more(languages, said):
    with pytest.raises(ProtocolError, match=said):
        SessionTargets(languages, ServerLimits()).wanted("ru", by_reader=False)


async def test_readers_without_the_token_have_what_is_on_the_machine_only(offering, catalogue):
    async with running(offering(), Access.of(TOKEN)) as server, server.connect() as speaker, server.connect() as reader:
        started = await ask(speaker, type="start", token=TOKEN)
        await ask(reader, type="watch", session=started["session"])
        refused = await added(reader, "de")
        assert refused["code"] == "unknown-target"
        assert "it fetches models for who has its token" in refused["message"]
        assert not catalogue.asked
        assert (await added(reader, "pt"))["targets"] == ["zh", "pt"]
        assert (await added(speaker, "de"))["targets"] == ["zh", "pt", "de"]
        offered = json.loads((await server.get("/v1/languages?here=1")).body)["offered"]
        assert {"source": "en", "targets": ["de", "pt"]} in offered
        everything = json.loads((await server.get("/v1/languages")).body)["offered"]
        assert len(everything) > len(offered)


async def test_a_fetch_that_fails_costs_nothing_but_the_language(offering, catalogue, tmp_path):
    (model,) = (path for path in (tmp_path / "served").iterdir() if path.name.startswith("model"))
    digest = catalogue.models["en-de"][0]["files"]["model"]["uncompressedHash"]
    parts = tmp_path / "assets" / "firefox" / f".en-de.{digest[:16]}"
    parts.mkdir(parents=True)
    (parts / f"{model.name}.gz").symlink_to("/dev/full")
    async with running(offering()) as server, server.connect() as speaker, server.connect() as reader:
        started = await ask(speaker, type="start")
        await ask(reader, type="watch", session=started["session"])
        refused = await added(reader, "de")
        assert refused["code"] == "no-space"
        assert "the disk of the server is full" in refused["message"]
        (parts / f"{model.name}.gz").unlink()
        assert (await added(reader, "de"))["targets"] == ["zh", "de"]


@pytest.mark.slow
async def test_a_translator_for_which_there_is_no_memory(demo_config, demo_models, catalogue):
    shared = SharedModels(1.0)
    offers = Offers([(demo_config, demo_models)], shared, downloads=True)
    service = Service(demo_config, demo_models, ServerLimits(connections_a_minute=10_000), offers=offers)
    async with running(service) as server, server.connect() as speaker:
        await ask(speaker, type="start")
        refused = await added(speaker, "de")
        assert refused["code"] == "busy"
        assert "are allowed (--model-memory)" in refused["message"]
        await speak(speaker, BEFORE)
        assert (await finish(speaker))[-1]["type"] == "end"


async def test_an_ended_session_and_too_many_at_once(offering, catalogue):
    service = offering(downloads=False)
    async with running(service) as server, server.connect() as speaker, server.connect() as reader:
        started = await ask(speaker, type="start")
        await ask(reader, type="watch", session=started["session"])
        (session,) = service.sessions.values()
        await finish(speaker)
        with pytest.raises(ProtocolError, match="the session has ended; no language can be added"):
            await service.add_target(session, "pt", by_reader=True)
        await rest(reader)
        assert session.config.languages.targets == ("zh",)
    catalogue.open.clear()
    async with running(offering()) as server, server.connect() as speaker:
        await ask(speaker, type="start")
        for language in ("de", "fr", "fr", "fr", "fr", "fr"):
            await say(speaker, type="add_target", language=language)
        refused = (await until(speaker, "not_added"))[-1]
        assert (refused["code"], refused["language"]) == ("busy", "fr")
        assert "4 other languages are being added" in refused["message"]
        catalogue.open.set()
        while (await until(speaker, "targets"))[-1]["targets"] != ["zh", "de", "fr"]:
            pass


async def test_readers_may_say_nothing_else(offering):
    async with running(offering()) as server, server.connect() as speaker, server.connect() as first:
        started = await ask(speaker, type="start")
        for message in ({"type": "end"}, b"\0\0"):
            async with server.connect() as reader:
                await ask(reader, type="watch", session=started["session"])
                await reader.send(message if isinstance(message, bytes) else json.dumps(message))
                assert (await rest(reader))[-1]["code"] == "bad-message"
        assert (await ask(first, type="add_target", language="de"))["message"].startswith("add_target came first")
