"""A translator by address: finished sentences by a server with OpenAI's chat interface, and the local one beside it."""

import asyncio
import json
import logging
import subprocess
import sys
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from types import SimpleNamespace
from typing import Any

import pytest
from openai.types.chat import ChatCompletion, CompletionCreateParams
from pydantic import TypeAdapter

from pipeline import EndOfInput, MarianModel, NmtStage, PipelineEvent
from pipeline.archives.journal import JournalSink, known_translation
from pipeline.backends.by_address import KEY, Budget, ByAddress
from pipeline.backends.nmt_options import NmtConfig
from pipeline.config import load_config
from pipeline.config.loading import load_models
from pipeline.core.nmt.stage import NmtContext, Text
from pipeline.core.nmt.translator import TextTranslator, TranslationRequest
from pipeline.core.run.stats import PipelineStats
from pipeline.errors import ConfigError
from pipeline.events import SourceSentence, SourceText, TargetText, Translation
from pipeline.glossary.terms import Glossary, Term
from tests.conftest import ROOT

SECRET = "sk-of-nobody-1234567890"
REQUEST: TypeAdapter[Any] = TypeAdapter(CompletionCreateParams)
TALK = ["Where is the station?", "The train leaves from platform 314.", "Thank you very much."]
NUMBERS = count()


def answer(text: str | None, tokens: int = 100) -> bytes:
    """What a server sends, by the client library's own types."""
    found = ChatCompletion.model_validate(
        {
            "id": "1",
            "object": "chat.completion",
            "created": 0,
            "model": "any",
            "choices": [
                {
                    "index": 0,
                    "finish_reason": "stop",
                    "message": {"role": "assistant", "content": text},
                    "logprobs": None,
                }
            ],
            "usage": {"prompt_tokens": tokens - 10, "completion_tokens": 10, "total_tokens": tokens},
        }
    )
    return found.model_dump_json().encode()


class Server:
    """On loopback; ``reply`` makes the status and the body from the request."""

    def __init__(self, reply: Callable[[dict[str, Any]], tuple[int, bytes]]) -> None:
        self.requests: list[dict[str, Any]] = []
        self.keys: list[str] = []
        self.released = threading.Event()
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                request = json.loads(self.rfile.read(int(self.headers["content-length"])))
                REQUEST.validate_python(request)
                server.requests.append(request)
                server.keys.append(self.headers["authorization"])
                status, body = reply(request)
                self.send_response(status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        # An address of its own for each test, because a process has one budget for each.
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._http.server_port}/{next(NUMBERS)}/v1"

    def __enter__(self) -> "Server":
        threading.Thread(target=self._http.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.released.set()
        self._http.shutdown()
        self._http.server_close()


def fixed(text: str | None, tokens: int = 100) -> Server:
    return Server(lambda _: (200, answer(text, tokens)))


@pytest.fixture(scope="module")
def local() -> MarianModel:
    return MarianModel.load(ROOT / "models/demo/nmt-en-zh")


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY, SECRET)


def sentences(texts: list[str] = TALK) -> list[SourceSentence]:
    return [SourceSentence(number, "en", text, 5.0 * number, 5.0 * number + 4) for number, text in enumerate(texts)]


def translated(
    model: TextTranslator, items: list[Text], glossary: Glossary | None = None, *, live: bool = False
) -> tuple[list[PipelineEvent], PipelineStats]:
    context = NmtContext(lambda: live, glossary=None if glossary is None else lambda: glossary)

    async def work() -> list[PipelineEvent]:
        inbox, outbox = asyncio.Queue[Text | EndOfInput](), asyncio.Queue[PipelineEvent]()
        for item in (*items, EndOfInput(20.0)):
            inbox.put_nowait(item)
        await NmtStage(model, inbox, outbox, target="zh", context=context).run()
        return [outbox.get_nowait() for _ in range(outbox.qsize())]

    return asyncio.run(work()), context.stats


def final(events: list[PipelineEvent]) -> list[Translation]:
    return [event for event in events if isinstance(event, Translation)]


def test_a_finished_sentence_is_the_servers_and_the_local_text_is_shown_before(local):
    with fixed("“车站在哪里？”") as server:
        events, stats = translated(
            ByAddress(local, NmtConfig(url=server.url, url_model="qwen")), [*sentences(TALK[:1])]
        )
    first, last, made = (event for event in events if not isinstance(event, EndOfInput))
    assert isinstance(first, TargetText)
    assert first.text == local.translate(TALK[0])
    assert not first.complete
    assert isinstance(last, TargetText)
    assert (last.text, last.steady, last.complete) == ("车站在哪里？", 6, True)
    assert isinstance(made, Translation)
    assert (made.text, made.instead, stats.instead) == ("车站在哪里？", None, 0)
    (request,) = server.requests
    assert (request["model"], request["messages"][-1]) == ("qwen", {"role": "user", "content": TALK[0]})
    assert server.keys == [f"Bearer {SECRET}"]


def test_the_last_sentences_and_the_terms_in_a_sentence_are_sent_with_it(local):
    glossary = Glossary((Term("station", "总站"), Term("harbour", "港口")))
    with fixed("总站 314") as server:
        events, _ = translated(ByAddress(local, NmtConfig(url=server.url)), [*sentences(TALK * 3)], glossary)
    first, second = (server.requests[number]["messages"] for number in (0, 1))
    assert "station = 总站" in first[0]["content"]
    assert "harbour" not in first[0]["content"]
    assert "station" not in second[0]["content"]
    assert second[1:] == [
        {"role": "user", "content": TALK[0]},
        {"role": "assistant", "content": "总站 314"},
        {"role": "user", "content": TALK[1]},
    ]
    assert len(server.requests[-1]["messages"]) == 1 + 2 * 4 + 1
    assert (final(events)[0].terms, final(events)[0].missed_terms) == (("station",), ())


def test_a_term_that_the_answer_lacks_is_named(local):
    with fixed("车站在哪里？") as server:
        events, stats = translated(
            ByAddress(local, NmtConfig(url=server.url)), [*sentences(TALK[:1])], Glossary((Term("station", "总站"),))
        )
    assert final(events)[0].missed_terms == ("station",)
    assert stats.missed_terms == {"station": 1}


def test_drafts_are_local_even_in_a_pause(local):
    drafts: list[Text] = [
        SourceText(0, "en", "Where is", 5, heard_s=1.0),
        SourceText(0, "en", "Where is the station?", 21, heard_s=2.0),
    ]
    with fixed("无") as server:
        translated(ByAddress(local, NmtConfig(url=server.url)), drafts, live=True)
        assert server.requests == []
        translated(ByAddress(local, NmtConfig(url=server.url)), [*drafts, *sentences(TALK[:1])], live=True)
        assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        ((500, b'{"error": {"message": "no"}}'), "answers 500"),
        ((401, json.dumps({"error": {"message": f"wrong key {SECRET}"}}).encode()), "answers 401"),
        ((200, b"<html>"), "gives no answer"),
        ((200, b'{"choices": []}'), "gives no answer"),
        ((200, answer(None)), "is empty"),
        ((200, answer("<think>Nine o'clock.</think>")), "is empty"),
        ((200, answer("314 " + "好" * 200)), "is too long"),
        ((200, answer("火车八点开。")), "lacks 314"),
    ],
)
def test_the_local_text_stands_in_and_that_is_said_without_the_key(local, caplog, reply, said):
    caplog.set_level(logging.DEBUG)
    with Server(lambda _: reply) as server:
        events, stats = translated(ByAddress(local, NmtConfig(url=server.url)), [*sentences([TALK[1]])])
    (made,) = final(events)
    assert (made.text, made.error) == (local.translate(TALK[1]), None)
    assert made.instead is not None
    assert said in made.instead
    assert stats.instead == 1
    assert "1 translations are local" in stats.summary()
    assert made.instead in caplog.text
    assert SECRET not in caplog.text + repr(events)


def test_a_server_that_does_not_answer_in_time_gets_a_break_that_grows(local):
    server = Server(lambda _: (server.released.wait(), (200, answer("晚")))[1])
    with server:
        model = ByAddress(local, NmtConfig(url=server.url, url_timeout_s=0.1))
        events, _ = translated(model, [*sentences(["Thank you."] * 9)])
    reasons = [made.instead or "" for made in final(events)]
    # asked, asked, 1 left out, asked, 3 left out, asked, left out
    assert ["break" in reason for reason in reasons] == [False, False, True, False, True, True, True, False, True]
    assert len(server.requests) == 4


def test_a_server_that_fails_now_and_then_gets_no_break(local):
    replies = iter([(500, b""), (200, answer("非常感谢。"))] * 3)
    with Server(lambda _: next(replies)) as server:
        model = ByAddress(local, NmtConfig(url=server.url))
        events, _ = translated(model, [*sentences(["Thank you."] * 6)])
    assert [made.instead is None for made in final(events)] == [False, True] * 3
    assert len(server.requests) == 6


def test_a_server_that_is_not_there_costs_no_sentence(local):
    with fixed("无") as gone:
        pass
    events, _ = translated(ByAddress(local, NmtConfig(url=gone.url)), [*sentences()])
    assert [made.text for made in final(events)] == [local.translate(text) for text in TALK]


def test_the_budget_is_one_for_all_translators_at_an_address(local):
    with fixed("314 好", tokens=100) as server:
        options = NmtConfig(url=server.url, url_tokens=150)
        for _ in range(2):
            events, _ = translated(ByAddress(local, options), [*sentences()])
    assert len(server.requests) == 2
    assert "nmt.url_tokens are used up" in (final(events)[-1].instead or "")


@pytest.mark.slow
def test_a_configuration_with_an_address_puts_it_before_its_model(tmp_path):
    path = tmp_path / "c.toml"
    text = f'[languages]\nsource = "en"\ntarget = "zh"\n[asr]\nmodel = "base"\n[nmt]\nmodel = "{ROOT}/models/demo/nmt-en-zh"\n'
    path.write_text(text + 'url = "http://127.0.0.1:9/v1"\n', "utf-8")
    (model,) = load_models(load_config(path)).translations.values()
    assert isinstance(model, ByAddress)
    assert isinstance(model.local, MarianModel)


@pytest.mark.parametrize(
    "url", ["127.0.0.1:8080", "ftp://host/v1", "http://user:pass@host/v1", "http://host/v1?key=x", "http://host:x/v1"]
)
def test_an_address_is_one_of_http_without_secrets(tmp_path, url):
    path = tmp_path / "c.toml"
    path.write_text(f'[nmt]\nurl = "{url}"\n', "utf-8")
    with pytest.raises(ConfigError, match=r"nmt\.url is no address such as"):
        load_config(path)


def test_without_an_address_the_client_is_not_imported():
    code = (
        "import sys, pipeline.apps.live, pipeline.apps.serve, pipeline.config.loading; print('openai' in sys.modules)"
    )
    assert subprocess.check_output([sys.executable, "-c", code], text=True, cwd=ROOT).strip() == "False"


def test_a_recording_that_is_resumed_asks_for_what_its_journal_lacks(local, tmp_path):
    journal = tmp_path / "journal"
    JournalSink(journal, {"version": 1}, resume=False).close()
    journal.touch()
    with fixed("好") as server:
        known = known_translation(ByAddress(local, NmtConfig(url=server.url)), journal, "zh")
        events, _ = translated(known, [*sentences()])
    assert [made.text for made in final(events)] == ["好", local.translate(TALK[1]), "好"]


@pytest.mark.parametrize(
    ("limit", "used", "spent"), [(100, 99, False), (100, 100, True), (100, 101, True), (0, 9, False)]
)
def test_a_budget_is_spent_when_as_many_tokens_are_used_as_allowed(limit, used, spent):
    budget = Budget(limit)
    budget.take(1)
    budget.take(used - 1)
    assert budget.spent is spent


class Echo:
    """A local translator that gives the text back."""

    def stream(self, request):
        text = request.sentence.text
        yield TargetText(0, "pt", text, len(text), complete=True)
        yield Translation(0, "pt", text)

    def unspellable(self, glossary, target=None):
        return ()


class Stub:
    """Stands for the client: its answers are taken one after the other, and what it is asked is kept."""

    def __init__(self, *answers: str | Exception, usage: int | None = None) -> None:
        self.asked: list[dict[str, Any]] = []
        self._answers, self._usage = list(answers), usage
        self.chat = SimpleNamespace(completions=self)

    def create(self, **asked: Any) -> Any:
        self.asked.append(asked)
        answer = self._answers.pop(0) if self._answers[1:] else self._answers[0]
        if isinstance(answer, Exception):
            raise answer
        usage = None if self._usage is None else SimpleNamespace(total_tokens=self._usage)
        return SimpleNamespace(choices=[SimpleNamespace(message=SimpleNamespace(content=answer))], usage=usage)


def by_stub(stub: Stub, **options: Any) -> ByAddress:
    model = ByAddress(Echo(), NmtConfig(url=f"http://stub/{next(NUMBERS)}/v1", **options))
    model._client = stub
    return model


def asked_for(model: ByAddress, text: str, glossary: Glossary | None = None) -> Translation:
    *_, last = model.stream(TranslationRequest(SourceSentence(0, "en", text), "pt", glossary=glossary, remote=True))
    return last


@pytest.mark.parametrize(
    ("said", "answer", "text"),
    [
        ("Yes.", '"Sim."', "Sim."),
        ("Yes.", "  Sim,\n senhor. ", "Sim, senhor."),
        ("Yes.", "<think>Hm.</think> Sim.", "Sim."),
        ('"Yes."', "“Sim.”", "“Sim.”"),  # as in what was said
        ("Yes.", '"Sim." e "Não."', 'Sim." e "Não.'),
    ],
)
def test_of_an_answer_only_the_translation_is_taken(said, answer, text):
    assert asked_for(by_stub(Stub(answer)), said).text == text


@pytest.mark.parametrize(("more", "fits"), [(3 * 4 + 40, True), (3 * 4 + 41, False)])
def test_an_answer_may_be_three_times_as_long_as_the_local_one_and_a_little_more(more, fits):
    assert (asked_for(by_stub(Stub("a" * more)), "Yes.").instead is None) is fits
    assert (asked_for(by_stub(Stub("a" * more), max_length_factor=0), "Yes.").instead is None) is fits


def test_an_answer_may_lack_a_number_that_the_local_translation_lacks_too(monkeypatch):
    assert "lacks 314" in str(asked_for(by_stub(Stub("Sim.")), "314 it is.").instead)
    monkeypatch.setattr(
        Echo, "stream", lambda self, request: iter((TargetText(0, "pt", "Ok"), Translation(0, "pt", "Ok")))
    )
    assert asked_for(by_stub(Stub("Sim.")), "314 it is.").text == "Sim."


def test_of_many_terms_in_a_sentence_thirty_are_named():
    words = [f"{first}{second}word" for first in "abcdef" for second in "vwxyz"] + ["oneword"]
    stub = Stub("Sim.")
    made = asked_for(by_stub(stub), " ".join(words) + ".", Glossary(tuple(Term(word, word) for word in words)))
    assert stub.asked[0]["messages"][0]["content"].count("word = ") == 30
    assert len(made.missed_terms) == 30


def test_the_break_of_a_server_that_fails_grows_to_63_sentences_and_ends_with_an_answer():
    stub = Stub(*[OSError("gone")] * 9, "Sim.", OSError("gone"))
    model = by_stub(stub)
    breaks = []
    for _ in range(10):
        count, tries = 0, len(stub.asked)
        while len(stub.asked) == tries:
            asked_for(model, "Yes.")
            count += 1
        breaks.append(count - 1)
    assert breaks == [0, 0, 1, 3, 7, 15, 31, 63, 63, 63]
    for _ in range(2):  # the first failure again
        asked_for(model, "Yes.")
    assert len(stub.asked) == 12


def test_tokens_are_those_that_the_server_counts_or_a_quarter_of_the_letters():
    counted, uncounted = by_stub(Stub("Sim.", usage=10), url_tokens=20), by_stub(Stub("Sim."), url_tokens=20)
    assert [asked_for(counted, "Yes.").instead is None for _ in range(3)] == [True, True, False]
    assert [asked_for(uncounted, "Yes.").instead is None for _ in range(2)] == [True, False]
