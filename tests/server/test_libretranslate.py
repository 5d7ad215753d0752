"""LibreTranslate's routes, with libretranslatepy and with the requests of other clients as they are."""

import asyncio
import json
import sys
import threading
import weakref
from dataclasses import replace
from types import SimpleNamespace
from urllib.error import HTTPError

import httpx
import pytest
from libretranslatepy import LibreTranslateAPI

from pipeline import Models
from pipeline.core.nmt.translator import TranslationRequest
from pipeline.events import SourceSentence, TargetText, Translation
from pipeline.languages.chinese import conversion
from pipeline.languages.detection import _library
from pipeline.languages.options import LanguageConfig
from pipeline.server.access import Access
from pipeline.server.protocols import libretranslate
from pipeline.server.service import Service
from tests.server.running import running, serving, until
from tests.server.test_unanswered import Hangs

TOKEN = "0123456789abcdef"
SENTENCES = ["Where is the station?", "I would like a room for two nights."]


@pytest.fixture(scope="module")
def expected(demo_models: Models) -> list[str]:
    """What the model writes in this process."""
    model = demo_models.translations["zh"]
    return [list(model.stream(TranslationRequest(SourceSentence(0, "en", text), "zh")))[-1].text for text in SENTENCES]


async def test_the_unchanged_client_lists_languages_and_translates(new_service, expected):
    async with running(new_service(), Access.of(TOKEN)) as server:
        client = LibreTranslateAPI(server.url, api_key=TOKEN)
        languages = await asyncio.to_thread(client.languages)
        assert languages == [
            {"code": "en", "name": "English", "targets": ["en", "zh"]},
            {"code": "zh", "name": "Chinese", "targets": ["zh"]},
        ]
        assert await asyncio.to_thread(client.translate, " ".join(SENTENCES), "en", "zh") == "".join(expected)
        assert await asyncio.to_thread(client.translate, "\n\n".join(SENTENCES), "en", "zh") == "\n\n".join(expected)
        assert await asyncio.to_thread(client.translate, SENTENCES[0], "en", "en") == SENTENCES[0]
        with pytest.raises(HTTPError) as refused:
            await asyncio.to_thread(LibreTranslateAPI(server.url).translate, SENTENCES[0], "en", "zh")
        assert refused.value.code == 403
        assert "api_key" in json.load(refused.value)["error"]


async def test_what_programs_ask_before_they_translate(new_service):
    for access, needed in ((None, False), (Access.of(TOKEN), True)):
        async with running(new_service(), access) as server, httpx.AsyncClient(base_url=server.url) as client:
            assert (await client.get("/health")).json() == {"status": "ok"}
            settings = (await client.get("/frontend/settings")).json()
            assert (settings["keyRequired"], settings["apiKeys"], settings["charLimit"]) == (needed, needed, 20_000)
            assert settings["language"] == {
                "source": {"code": "en", "name": "English"},
                "target": {"code": "zh", "name": "Chinese"},
            }
            assert (settings["filesTranslation"], settings["suggestions"]) == (False, False)
            described = (await client.get("/spec")).json()
            assert described == (await client.get("/openapi.json")).json()
            assert "/translate" in described["paths"]


async def test_json_with_a_list_a_source_to_detect_and_any_tag_of_the_language(new_service, expected):
    # As LiveCaptions-Translator and jigasi ask, and deep-translator with a query.
    async with running(new_service(connections_a_minute=1)) as server, httpx.AsyncClient(base_url=server.url) as client:
        body = {"q": SENTENCES, "source": "auto", "target": "zh-Hans", "format": "text", "alternatives": 3}
        answer = await client.post("/translate", json=body)
        assert answer.json()["translatedText"] == expected
        assert answer.json()["detectedLanguage"] == [{"confidence": 0, "language": "en"}] * 2
        query = {"q": SENTENCES[0], "source": "en", "target": "zh", "format": "text"}
        assert (await client.post("/translate", params=query)).json() == {"translatedText": expected[0]}
        traditional = await client.post("/translate", json=query | {"target": "zh-TW"})
        assert traditional.json()["translatedText"] != expected[0]
        argos = await client.post("/translate", json=query | {"target": "zt"})  # its code for zh-Hant
        assert argos.json()["translatedText"] == conversion("Hant")(expected[0])


async def test_markup_comes_back_as_it_was(new_service, expected):
    async with running(new_service()) as server, httpx.AsyncClient(base_url=server.url) as client:
        marked = [f"<i>- {SENTENCES[0]}</i>\n♪ {SENTENCES[1]} ♪", "{\\an8}@ana", "\ud83d 12:30"]
        body = json.dumps({"q": marked, "source": "en", "target": "zh"})
        answer = await client.post("/translate", content=body, headers={"content-type": "application/json"})
        assert answer.json()["translatedText"] == [
            f"<i>- {expected[0]}</i>\n♪ {expected[1]} ♪",
            "{\\an8}@ana",
            "\N{REPLACEMENT CHARACTER} 12:30",
        ]


async def test_a_page_comes_back_with_its_blocks_and_code(new_service, expected):
    async with running(new_service()) as server, httpx.AsyncClient(base_url=server.url) as client:
        page = "<!doctype html>\n<script>var a = 1;</script>\n<ul>\n <li>{}</li>\n <li class='x'>{}</li>\n</ul>"
        body = {"q": page.format(*SENTENCES[:2]), "source": "en", "target": "zh", "format": "html"}
        answer = await client.post("/translate", json=body)
        assert answer.json()["translatedText"] == page.format(*expected[:2])


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"q": ""}, "missing q parameter"),
        ({"q": [1]}, "q must be a text"),
        ({"q": "a" * 20_001}, "20001 characters exceed the limit of 20000"),
        ({"q": ["a"] * 1_001}, "1001 texts exceed the limit of 1000"),
        ({"source": None}, "missing source parameter"),
        ({"target": "de"}, 'en to de is not supported: this server does not translate into "de"; choose from zh'),
        ({"source": "pt"}, 'this server does not recognise "pt"'),
        ({"source": "auto", "target": "de"}, "auto is not supported for the target de: en into zh"),
        ({"target": "no such language"}, "no such language is not supported"),
        ({"format": "pdf"}, "pdf format is not supported; send text or html"),
    ],
)
async def test_wrong_requests_are_told_what_is_wrong(new_service, change, said):
    async with running(new_service()) as server, httpx.AsyncClient(base_url=server.url) as client:
        body = {"q": SENTENCES[0], "source": "en", "target": "zh", **change}
        answer = await client.post("/translate", json=body)
        assert answer.status_code == 400
        assert said in answer.json()["error"]


@pytest.mark.parametrize("body", [b"{", b"[]", b"[" * 100_000, b"\xff"])
async def test_a_body_that_is_no_request(new_service, body):
    async with running(new_service()) as server, httpx.AsyncClient(base_url=server.url) as client:
        answer = await client.post("/translate", content=body, headers={"content-type": "application/json"})
        assert (answer.status_code, list(answer.json())) == (400, ["error"])


async def test_a_body_of_many_lists_is_not_read(new_service):
    async with running(new_service()) as server, httpx.AsyncClient(base_url=server.url) as client:
        answer = await client.post("/translate", json={"q": [[]] * 300, "source": "en", "target": "zh"})
        assert answer.status_code == 400
        assert "it has too many values" in answer.json()["error"]


async def test_a_wrong_key_in_front_of_the_body_is_refused_without_it(new_service, expected, monkeypatch):
    monkeypatch.setattr("pipeline.server.guard._IDLE_S", 0.0)
    async with running(new_service(), Access.of(TOKEN)) as server, httpx.AsyncClient(base_url=server.url) as client:
        for path, header in (("/translate?api_key=wrong", ""), ("/translate", "Authorization: Bearer wrong\r\n")):
            reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
            writer.write(f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n{header}Content-Length: 10\r\n\r\n".encode())
            assert b"403" in await reader.readline()
            writer.close()
        body = {"q": SENTENCES[0], "source": "en", "target": "zh"}
        for where in ({"params": {"api_key": TOKEN}}, {"headers": {"Authorization": f"Bearer {TOKEN}"}}):
            assert (await client.post("/translate", json=body, **where)).json() == {"translatedText": expected[0]}


async def test_limits_of_bytes_wrong_keys_and_requests_at_once(new_service, expected, monkeypatch):
    service = new_service(connections_a_minute=3)
    async with running(service, Access.of(TOKEN)) as server, httpx.AsyncClient(base_url=server.url) as client:
        body = {"q": SENTENCES[0], "source": "en", "target": "zh"}
        wrong = [await client.post("/translate", json=body | {"api_key": key}) for key in "ab"]
        assert [answer.status_code for answer in wrong] == [403] * 2
        body["api_key"] = TOKEN
        assert [(await client.post("/translate", json=body)).status_code for _ in range(9)] == [200] * 9
        found = [(await client.post("/translate", content=b"a" * (1 << 20))).status_code for _ in range(2)]
        assert found == [413, 429]
    service = new_service()
    async with running(service, Access.of(TOKEN)) as server, httpx.AsyncClient(base_url=server.url) as client:
        monkeypatch.setattr("pipeline.server.protocols.libretranslate._MOST_AT_ONCE", 2)
        answers = await asyncio.gather(*(client.post("/translate", json=body) for _ in range(9)))
        found = [answer.status_code for answer in answers]
        assert {*found} == {200, 429}
        assert found.count(200) >= 2
        service.places.draining = True
        for path in ("/translate", "/detect"):
            assert (await client.post(path, json=body)).status_code == 503


async def test_detections_of_a_language_count_among_the_requests_at_once(new_service, monkeypatch):
    waiting, go_on = [], asyncio.Event()

    async def detected(*_: object) -> list[tuple[str, float]]:
        waiting.append(True)
        await go_on.wait()
        return [("en", 100.0)]

    monkeypatch.setattr(libretranslate, "_MOST_AT_ONCE", 2)
    monkeypatch.setattr(libretranslate._Texts, "_detected", detected)
    async with running(new_service()) as server, httpx.AsyncClient(base_url=server.url) as client:
        body = {"q": SENTENCES[0], "source": "en", "target": "zh"}
        asked = [asyncio.create_task(client.post("/detect", json=body)) for _ in range(2)]
        await until(lambda: len(waiting) == 2)
        assert [(await client.post(path, json=body)).status_code for path in ("/detect", "/translate")] == [429] * 2
        go_on.set()
        assert [(await each).status_code for each in asked] == [200] * 2


async def test_a_translator_that_hangs_is_told(demo_config, demo_models, caplog):
    hangs = Hangs()
    service = serving(demo_config, replace(demo_models, translations={"zh": hangs}), model_s=0.5)
    async with running(service) as server, httpx.AsyncClient(base_url=server.url) as client:
        body = {"q": SENTENCES[0], "source": "en", "target": "zh"}
        for _ in range(2):  # the thread is busy with the first
            refused = await client.post("/translate", json=body)
            assert (refused.status_code, refused.headers["retry-after"]) == (503, "10")
            assert "the translator has not answered for 0.5 s" in refused.json()["error"]
            assert (await client.get("/readyz")).status_code == 503
        assert "the translator has not answered for 0.5 s" in caplog.text
        hangs.answers.set()
        await until(lambda: service.places.ready)
        assert (await client.post("/detect", json=body)).status_code == 200


async def test_while_a_translator_hangs_requests_are_read(demo_config, demo_models):
    hangs = Hangs()
    service = serving(demo_config, replace(demo_models, translations={"zh": hangs}), model_s=1.0)
    async with running(service) as server, httpx.AsyncClient(base_url=server.url) as client:
        body = {"q": SENTENCES[0], "source": "en", "target": "zh"}
        assert (await client.post("/translate", data=body)).status_code == 503
        assert (await client.post("/translate", data=body | {"q": ""})).status_code == 400
        hangs.answers.set()


async def test_a_translator_hangs_when_a_turn_of_it_does_whoever_still_waits(new_service, monkeypatch):
    now_s, service = [0.0], new_service(model_s=10.0)
    monkeypatch.setattr(libretranslate, "time", SimpleNamespace(monotonic=lambda: now_s[0]))
    texts = libretranslate._Texts(service)
    one, two = threading.Event(), threading.Event()
    first, second = [asyncio.create_task(texts._run(work)) for work in (one.wait, two.wait)]
    await until(lambda: texts._began_s == 0.0)
    now_s[0] = 9.0
    one.set()
    assert await first
    await until(lambda: texts._began_s == 9.0)
    now_s[0] = 18.0
    assert not service.places.texts_hung(), "it waited for another one"
    second.cancel()  # its client leaves
    now_s[0] = 19.0
    assert service.places.texts_hung()
    with pytest.raises(libretranslate._RefusedError, match="has not answered for 10 s"):
        await texts._run(str)
    two.set()
    await until(lambda: not service.places.texts_hung())


async def test_a_conversation_translates_both_ways(demo_config, demo_models):
    model = demo_models.translations["zh"]
    config = replace(demo_config, languages=LanguageConfig("auto", ("en", "zh")))
    models = replace(demo_models, translations={"zh": model, "en": model})
    async with running(Service(config, models)) as server, httpx.AsyncClient(base_url=server.url) as client:
        languages = (await client.get("/languages")).json()
        assert [(one["code"], one["targets"]) for one in languages] == [("zh", ["zh", "en"]), ("en", ["en", "zh"])]
        for source in ("en", "auto"):
            answer = await client.post("/translate", data={"q": SENTENCES[0], "source": source, "target": "zh"})
            assert answer.json()["translatedText"]


@pytest.fixture
def several(demo_config, demo_models):
    """A service that translates English and Portuguese into Chinese."""
    portuguese = replace(demo_config, languages=LanguageConfig("pt", ("zh",)))
    return Service(demo_config, demo_models, others=[(portuguese, demo_models)])


async def test_the_unchanged_client_detects_languages(several):
    async with running(several, Access.of(TOKEN)) as server:
        client = LibreTranslateAPI(server.url, api_key=TOKEN)
        found = {}
        for text in (SENTENCES[0], "Onde fica a estação?", "火车站在哪里？", "Wo ist der Bahnhof?", "12:30"):
            best = (await asyncio.to_thread(client.detect, text))[0]
            found[best["language"]] = best["confidence"]
        assert list(found) == ["en", "pt", "zh", "de"]  # German although nothing is translated from it
        assert found.pop("en") == 0  # of digits
        assert all(50 < confidence <= 100 for confidence in found.values())
        with pytest.raises(HTTPError) as refused:
            await asyncio.to_thread(LibreTranslateAPI(server.url).detect, SENTENCES[0])
        assert refused.value.code == 403


async def test_auto_takes_the_language_of_the_text_where_several_are_translated(several):
    async with running(several) as server, httpx.AsyncClient(base_url=server.url) as client:
        for text, language in ((SENTENCES[0], "en"), ("Onde fica a estação?", "pt"), ("火车站在哪里？", "zh")):
            answer = await client.post("/translate", json={"q": text, "source": "auto", "target": "zh"})
            detected = answer.json()["detectedLanguage"]
            assert detected["language"] == language
            assert 50 < detected["confidence"] <= 100
        assert answer.json()["translatedText"] == "火车站在哪里？"
        answer = await client.post("/translate", json={"q": "Wo ist der Bahnhof?", "source": "auto", "target": "zh"})
        assert (answer.status_code, answer.json()["error"]) == (
            400,
            "auto is not supported for the target zh: the text is in de; name en or pt",
        )


@pytest.mark.parametrize(("text", "status"), [("\ud83d Where is the station?", 200), ("a" * 20_001, 400), (1, 400)])
async def test_texts_to_detect_are_checked(several, text, status):
    async with running(several) as server, httpx.AsyncClient(base_url=server.url) as client:
        body, kind = json.dumps({"q": text}), {"content-type": "application/json"}
        answer = await client.post("/detect", content=body, headers=kind)
        assert answer.status_code == status
        if status == 200:
            assert answer.json()[0]["language"] == "en"


async def test_without_the_package_no_language_is_detected(several, monkeypatch):
    _library.cache_clear()
    monkeypatch.setitem(sys.modules, "eldc", None)
    async with running(several) as server, httpx.AsyncClient(base_url=server.url) as client:
        answer = await client.post("/detect", json={"q": SENTENCES[0]})
        assert (answer.status_code, answer.json()) == (
            501,
            {"error": "this server detects no languages; its machine has no package eldc"},
        )
        answer = await client.post("/translate", json={"q": SENTENCES[0], "source": "auto", "target": "zh"})
        assert answer.json()["error"] == "auto is not supported for the target zh: name en or pt"


async def test_a_glossary_of_the_configuration_holds(demo_config, demo_models, tmp_path):
    terms = tmp_path / "terms.tsv"
    terms.write_text("en\tzh\nstation\t火车总站\n", "utf-8")
    config = replace(demo_config, glossary=replace(demo_config.glossary, file=str(terms)))
    async with running(Service(config, demo_models)) as server, httpx.AsyncClient(base_url=server.url) as client:
        answer = await client.post("/translate", data={"q": SENTENCES[0], "source": "en", "target": "zh"})
        assert "火车总站" in answer.json()["translatedText"]


async def test_a_body_that_does_not_come_is_not_waited_for(new_service):
    service = new_service(request_s=0.1, connections_a_minute=1)
    async with running(service, Access.of(TOKEN)) as server, httpx.AsyncClient(base_url=server.url) as client:
        head = b"POST /translate HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 10\r\n\r\n"
        assert b"took longer than 0.1 s" in await server.raw(head)
        body = {"q": SENTENCES[0], "source": "en", "target": "zh", "api_key": TOKEN}
        assert (await client.post("/translate", json=body)).status_code == 429


class Endless:
    """A translator that ends only "Hello.", and the state of its search."""

    def __init__(self) -> None:
        self.steps, self.terminated = 0, False

    def terminate(self) -> None:
        self.terminated = True

    def stream(self, request):
        if request.sentence.text != "Hello.":
            request.on_start(self)
            while True:
                self.steps += 1
                yield TargetText(0, request.target, "a")
        yield Translation(0, request.target, "B")


async def test_requests_take_turns_and_one_that_is_left_stops(demo_config, demo_models, monkeypatch):
    monkeypatch.setattr("pipeline.server.protocols.libretranslate._TURN_S", 0.0)
    model = Endless()
    service = Service(demo_config, replace(demo_models, translations={"zh": model}))
    async with running(service) as server, httpx.AsyncClient(base_url=server.url) as client:
        body = {"q": "Hello.", "source": "en", "target": "zh"}
        left = asyncio.create_task(client.post("/translate", json=body | {"q": "Good morning."}))
        await until(lambda: model.steps > 2)
        assert (await client.post("/translate", json=body)).json() == {"translatedText": "B"}
        assert not left.done()
        left.cancel()
        await until(lambda: model.terminated)
        steps = model.steps
        assert (await client.post("/translate", json=body)).json() == {"translatedText": "B"}
        assert model.steps == steps


async def test_the_texts_on_the_way_are_not_kept(demo_config, demo_models):
    """A long text was kept once for each of its tokens, with all the tokens before it."""
    alive = weakref.WeakSet()
    most = 0

    class Long:
        def stream(self, request):
            nonlocal most
            for number in range(1_000):
                event = TargetText(0, request.target, "a" * number)
                alive.add(event)
                most = max(most, len(alive))
                yield event
            yield Translation(0, request.target, "B")

    service = Service(demo_config, replace(demo_models, translations={"zh": Long()}))
    async with running(service) as server, httpx.AsyncClient(base_url=server.url) as client:
        answer = await client.post("/translate", json={"q": "Hello.", "source": "en", "target": "zh"})
        assert answer.json() == {"translatedText": "B"}
    assert most < 10


async def test_a_client_that_goes_away_ends_its_work(new_service):
    async with running(new_service()) as server:
        body = b"source=en&target=zh&q=" + b"Where+is+the+station%3F+" * 500
        head = b"POST /translate HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/x-www-form-urlencoded\r\n"
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(head + b"Content-Length: %d\r\n\r\n" % len(body) + body)
        tasks = len(asyncio.all_tasks())
        await until(lambda: len(asyncio.all_tasks()) > tasks + 1)
        writer.close()
        await until(lambda: len(asyncio.all_tasks()) <= tasks)
        assert not await reader.read()
