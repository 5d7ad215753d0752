"""Sentences are sent to servers of the tests that speak the protocols of Zoom, YouTube, webhooks and OBS."""

import json
import logging
import queue
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from urllib.error import HTTPError
from urllib.parse import parse_qs, urlsplit

import pytest

from pipeline.apps import live
from pipeline.apps.pushes import Where, open_pushes, some_push
from pipeline.errors import UsageError
from pipeline.events import PipelineEvent, SourceSentence, SourceText, TargetText
from pipeline.media.subtitles.rules import SubtitleRules
from pipeline.media.subtitles.sentences import Sentence
from pipeline.media.subtitles.text import width
from pipeline.push import obs as push_obs
from pipeline.push import push, youtube
from pipeline.push.push import Pusher, PushError, PushRefusedError, PushSink, asked, http_address
from tests.commands import run
from tests.conftest import HANG_S, PHRASES, read_wav, write_wav
from tests.push.obs import FakeObs
from tests.streams import spoken, translated

LONG = "Meine Schwester stellt morgen früh in Berlin ein neues Produkt vor, und der Direktor kommt auch, also kommt bitte nicht zu spät."
TEXTS = ["Wo ist der Bahnhof?", "Ich möchte ein Zimmer für zwei Nächte."]


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No test waits between two tries, or reads the numbers of another."""
    monkeypatch.setattr(push, "_FIRST_WAIT_S", 0.01)
    monkeypatch.setattr(push, "assets", lambda: tmp_path / "assets")
    monkeypatch.setattr("pipeline.push.zoom.Push.interval_s", 0.0)


def sentence(number: int, text: str, language: str = "de") -> list[PipelineEvent]:
    start_s = 5.0 * number
    return [*spoken(number, "Where is it?", start_s, start_s + 2), *translated(number, [text], language=language)]


@dataclass(frozen=True)
class Asked:
    """A request to the server."""

    method: str
    path: str
    query: dict[str, str]
    kind: str | None
    body: str


class Server:
    """An HTTP server that answers with the given statuses, the last one for ever."""

    def __init__(self) -> None:
        self.asked: queue.Queue[Asked] = queue.Queue()
        self.answers: list[tuple[int, str]] = [(200, "")]
        self.seq: str | None = None
        """What it says for GET, as Zoom does."""
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.answer(*((200, outer.seq) if outer.seq is not None else (404, "")))

            def do_POST(self) -> None:
                self.answer(*(outer.answers.pop(0) if outer.answers[1:] else outer.answers[0]))

            def answer(self, status: int, body: str) -> None:
                parts = urlsplit(self.path)
                query = {name: values[0] for name, values in parse_qs(parts.query).items()}
                text = self.rfile.read(int(self.headers.get("content-length", 0))).decode()
                outer.asked.put(Asked(self.command, parts.path, query, self.headers["content-type"], text))
                self.send_response(status)
                if status == 302:
                    self.send_header("location", "/elsewhere")
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body.encode())

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}/closedcaption?cid=secret"

    def next(self) -> Asked:
        return self.asked.get(timeout=HANG_S)

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    yield server
    server.close()


def opened(kind: str, where: str, *targets: str) -> PushSink:
    (sink,) = open_pushes([Where(kind, "", where)], targets or ("de",), SubtitleRules())
    sink.begin(lambda: 100.0)
    return sink


def sent(sink: PushSink, texts: list[str] = TEXTS) -> PushSink:
    """Write the sentences, and close the sink, which sends them."""
    for number, text in enumerate(texts):
        for event in sentence(number, text):
            sink.write(event)
    sink.close()
    return sink


def test_zoom_gets_numbers_that_go_on_and_retries_with_the_same(server):
    server.seq, server.answers = "41", [(503, ""), (400, "not started"), (200, "")]
    sink = opened("zoom", server.url, "pt-BR")
    for event in [event for number in (0, 1) for event in sentence(number, TEXTS[number], "pt-BR")]:
        sink.write(event)
    asked = [server.next() for _ in range(5)]
    sink.close()
    assert (asked[0].method, asked[0].path) == ("GET", "/closedcaption/seq")
    assert [one.query["seq"] for one in asked[1:]] == ["42", "42", "42", "43"]
    assert {(one.path, one.query["cid"], one.query["lang"]) for one in asked[1:]} == {
        ("/closedcaption", "secret", "pt-BR")
    }
    assert [one.body for one in asked[3:]] == [f"{text}\n" for text in TEXTS]
    assert asked[1].kind == "text/plain; charset=utf-8"
    assert sink.lost == 0


@pytest.mark.parametrize("kind", ["zoom", "youtube", "webhook"])
def test_a_sentence_is_sent_before_it_is_final_where_it_cannot_be_replaced(server, kind):
    sink = opened(kind, server.url, "de")
    for event in [
        SourceText(0, "en", "Where is it?", 12, 0.0, 2.0),
        TargetText(0, "de", "Wo ist es?", 10),
        SourceText(1, "en", "Here it is", 4, 2.0, 3.0),
        TargetText(1, "de", "Hier ist", 4),
    ]:
        sink.write(event)
    sink.close()
    bodies = [one.body for one in server.asked.queue if one.method == "POST"]
    assert [body.split("\n")[-2] for body in bodies] == ([] if kind == "webhook" else ["Wo ist es?"])
    assert sink.lost == 0


@pytest.mark.parametrize(("language", "code"), [("ja", "jp-JP"), ("zh", "zh-CN"), ("zh-TW", "zh-TW"), ("en", "en-US")])
def test_zoom_wants_a_country_with_the_language(server, language, code):
    sink = opened("zoom", server.url, language)
    for event in [*spoken(0, "Hallo", language="de"), *translated(0, ["Hi"], language=language)]:
        sink.write(event)
    sink.close()
    assert [server.next().method, server.next().query["lang"]] == ["GET", code]


@pytest.mark.parametrize("kind", ["zoom", "youtube", "webhook"])
def test_numbers_survive_a_restart(server, kind):
    for _ in range(2):
        assert sent(opened(kind, server.url)).lost == 0
    posts = [one for one in server.asked.queue if one.method == "POST"]
    numbers = [int(one.query["seq"]) if kind != "webhook" else json.loads(one.body)["seq"] for one in posts]
    assert numbers == [1, 2, 3, 4]


def test_youtube_gets_each_subtitle_with_the_time_at_which_it_was_said(server):
    sent(opened("youtube", server.url), ["Hallo.", LONG])
    first, second = server.next().body, server.next().body
    lines = first.splitlines()
    assert lines[1] == "Hallo."
    said = datetime.fromisoformat(lines[0]).replace(tzinfo=UTC)
    assert len(lines[0]) == len("2012-12-24T00:00:06.873")
    assert abs(datetime.now(UTC) - timedelta(seconds=100) - said) < timedelta(seconds=HANG_S)
    times, texts = second.splitlines()[::2], second.splitlines()[1::2]
    assert len(times) == len(texts) >= 2
    assert times == sorted(set(times))
    assert " ".join(texts).replace("<br>", " ") == LONG


def test_the_captions_of_a_sentence_share_its_time_by_their_length():
    text = "a" * 30 + " " + "b" * 30 + " " + "c" * 30
    said = SourceSentence(0, "en", text, 2.0, 11.2)
    sentence = Sentence(2.0, 11.2, text, text, sources=(said,))
    found = list(youtube.captions(sentence, SubtitleRules(max_lines=1)))
    assert [lines for _, lines in found] == [(letter * 30,) for letter in "abc"]
    assert [begin_s for begin_s, _ in found] == pytest.approx([2.0, 5.0, 8.0], abs=0.1)


def test_a_webhook_gets_json_of_all_languages(server):
    sink = opened("webhook", server.url, "de", "fr")
    for event in [
        *spoken(0, "Where is it?", 1.0, 2.5),
        *translated(0, [TEXTS[0]], language="de"),
        *spoken(1, "Here.", 3.0, 4.0),
        *translated(1, ["Hier."], language="de"),
        *translated(0, ["Où est-ce ?"], language="fr"),
    ]:
        sink.write(event)
    sink.close()
    records = [json.loads(server.next().body) for _ in range(3)]
    assert [(one["seq"], one["language"], one["text"], one["source"]) for one in records] == [
        (1, "de", TEXTS[0], "Where is it?"),
        (2, "de", "Hier.", "Here."),
        (3, "fr", "Où est-ce ?", "Where is it?"),
    ]
    assert (records[0]["source_language"], records[0]["start_s"], records[0]["end_s"]) == ("en", 1.0, 2.5)


@pytest.mark.parametrize("status", [401, 403, 404, 302])
def test_a_place_that_refuses_is_named_once_and_everything_else_goes_on(server, status, caplog):
    server.answers = [(status, "")]
    sink = sent(opened("webhook", server.url))
    assert sink.lost == 2
    assert server.asked.qsize() == 1
    refused, lost = [record.getMessage() for record in caplog.records if record.levelno == logging.ERROR]
    assert f"answers {status}" in refused
    assert "copy it again" in refused
    assert lost.endswith("2 of 2 sentences were not sent")
    assert "secret" not in caplog.text


def test_too_many_requests_are_tried_again_and_said_once(server, caplog):
    server.answers = [(429, ""), (429, ""), (200, "")]
    sink = opened("webhook", server.url)
    for event in sentence(0, TEXTS[0]):
        sink.write(event)
    for _ in range(3):
        server.next()
    sink.close()
    assert sink.lost == 0
    assert [record.getMessage().partition(": ")[2] for record in caplog.records] == [
        f"{urlsplit(server.url).netloc} answers 429 Too Many Requests; trying again",
        "sending again; 0 sentences were lost",
    ]


def test_a_server_that_never_answers_holds_nothing_back_and_the_newest_wait(monkeypatch, caplog):
    monkeypatch.setattr(push, "_ANSWER_S", 0.05)
    monkeypatch.setattr(push, "_CLOSE_S", 0.0)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        sink = sent(
            opened("webhook", f"http://127.0.0.1:{silent.getsockname()[1]}/"), [f"Satz {n}." for n in range(50)]
        )
    assert sink.lost == 50
    assert "50 of 50 sentences were not sent" in caplog.text


@pytest.mark.parametrize(
    ("begun", "dripping"),
    [(b"HTTP/1.1 200 OK\r\nX: ", b"\r\n\r\n"), (b"HTTP/1.1 200 OK\r\nContent-Length: 64\r\n\r\n", b"")],
)
def test_an_answer_has_a_deadline_as_a_whole(begun, dripping, monkeypatch):
    """Of a server that sends a byte again and again, and an answer in the end, after which nobody waits."""
    monkeypatch.setattr(push, "_ANSWER_S", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def drip() -> None:
            with suppress(OSError), listener.accept()[0] as connection:
                connection.recv(65_536)
                connection.sendall(begun)
                for _ in range(64):
                    time.sleep(0.01)
                    connection.sendall(b"a")
                connection.sendall(dripping)

        thread = threading.Thread(target=drip)
        thread.start()
        with pytest.raises(PushError, match="does not answer .*timed out"):
            asked(f"http://127.0.0.1:{listener.getsockname()[1]}/", b"x")
        thread.join()


def test_obs_has_a_deadline_whatever_else_it_tells(monkeypatch):
    now_s, waits = 100.0, []

    class Chatty:
        def recv(self, timeout):
            nonlocal now_s
            now_s += 2.0
            waits.append(timeout)
            return json.dumps({"op": 7 if timeout == 0 else 5, "d": {}})

    monkeypatch.setattr(push_obs, "time", SimpleNamespace(monotonic=lambda: now_s))
    assert push_obs._heard(Chatty(), 7) == {}
    assert waits == [5.0, 3.0, 1.0, 0.0]


def test_nobody_listens(caplog):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    assert sent(opened("youtube", f"http://127.0.0.1:{port}/")).lost == 2
    assert "does not answer" in caplog.records[0].getMessage()


@pytest.fixture
def obs() -> Iterator[FakeObs]:
    with FakeObs("pass") as obs:
        yield obs


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """For how long each caption would have been held, which no test waits for."""
    times_s: list[float] = []
    monkeypatch.setattr(push.Pusher, "hold", lambda _, seconds: times_s.append(seconds))
    return times_s


def test_obs_gets_captions_of_the_stream_and_the_text_of_a_source(obs, held):
    assert sent(opened("obs", f"ws://:pass@127.0.0.1:{obs.port}")).lost == 0
    assert obs.requests == [
        ("SendStreamCaption", {"captionText": "Wo ist der Bahnhof?"}),
        ("SendStreamCaption", {"captionText": "Ich möchte ein Zimmer für zwei\nNächte."}),
    ]
    assert held == pytest.approx([19 / 17, 37 / 17], abs=0.01)  # their reading times
    held.clear()
    sent(opened("obs", f"ws://:pass@127.0.0.1:{obs.port}"), ["Ja."])
    assert held == [SubtitleRules().min_duration_ms / 1000]
    obs.requests.clear()
    sent(opened("obs", f"ws://:pass@127.0.0.1:{obs.port}/My%20text"), [f"{LONG} {LONG}"])
    assert {(kind, data["inputName"]) for kind, data in obs.requests} == {("SetInputSettings", "My text")}
    *texts, last = (data["inputSettings"]["text"] for _, data in obs.requests)
    assert len(texts) >= 2
    assert all(len(line) <= 42 for text in texts for line in text.splitlines())
    assert " ".join(texts).replace("\n", " ") == f"{LONG} {LONG}"
    assert last == ""  # at the end


def test_obs_has_no_text_when_nothing_follows(obs, held, monkeypatch):
    obs.answered = queue.Queue()
    (sink,) = open_pushes(
        [Where("obs", "", f"ws://:pass@127.0.0.1:{obs.port}/Text")], ("de",), SubtitleRules(linger_ms=0)
    )
    for number in (0, 1):
        for event in sentence(number, TEXTS[number]):
            sink.write(event)
        shown = [obs.answered.get(timeout=HANG_S)[1]["inputSettings"]["text"] for _ in range(2)]
        assert shown == [TEXTS[number], ""]
    sink.close()
    assert obs.answered.empty()


@pytest.mark.parametrize(
    "text",
    [
        LONG,
        f"{LONG} {LONG}",
        "今天下午三点在会议室开会讨论新产品的发布计划，" * 4,
        "é" * 200,
        "ก็" * 100,
        "e" + "\u0301" * 300,
    ],
)
def test_captions_of_a_stream_have_room_in_obs(text):
    captions = push_obs.stream_captions(Sentence(0.0, 5.0, "", text), SubtitleRules())
    assert all(len(caption.encode()) <= 128 and caption.count("\n") < 4 for caption in captions)
    assert all(width(line) <= 32 for caption in captions for line in caption.splitlines())
    assert "".join(captions).replace("\n", "").replace(" ", "") == text.replace(" ", "")


def test_at_the_end_each_caption_is_held_while_there_is_time(obs, monkeypatch):
    monkeypatch.setattr(push, "_CLOSE_S", 0.3)
    sink = sent(opened("obs", f"ws://:pass@127.0.0.1:{obs.port}/Text"), [LONG] * 3)
    texts = [data["inputSettings"]["text"] for _, data in obs.requests]
    assert sink.lost == 0
    assert " ".join(texts).replace("\n", " ").strip() == f"{LONG} {LONG} {LONG}"


@pytest.mark.usefixtures("held")
def test_obs_refuses_a_wrong_password_and_a_missing_source(obs, caplog, monkeypatch):
    monkeypatch.setenv("OBS_WEBSOCKET_PASSWORD", "wrong")
    assert sent(opened("obs", f"ws://127.0.0.1:{obs.port}")).lost == 2
    assert "the password is missing or wrong; give it in OBS_WEBSOCKET_PASSWORD" in caplog.text
    assert sent(opened("obs", f"ws://:pass@127.0.0.1:{obs.port}/missing")).lost == 2
    assert "OBS refuses SetInputSettings (600 No source was found" in caplog.text


@pytest.mark.usefixtures("held")
def test_obs_that_does_not_stream_is_said_once_and_one_that_restarts_is_found_again(obs, caplog):
    obs.streaming = False
    assert sent(opened("obs", f"ws://:pass@127.0.0.1:{obs.port}")).lost == 0
    assert [record.getMessage() for record in caplog.records] == [
        f"obs (127.0.0.1:{obs.port}): it does not stream, so that nobody gets captions until it does"
    ]
    obs.streaming, obs.hang_up = True, True
    obs.answered = queue.Queue()
    sink = opened("obs", f"ws://:pass@127.0.0.1:{obs.port}")
    for event in sentence(0, TEXTS[0]):
        sink.write(event)
    assert obs.answered.get(timeout=HANG_S) == ("SendStreamCaption", {"captionText": TEXTS[0]})
    sink.close()
    assert sink.lost == 0
    assert not obs.hang_up


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("twitch=x", "'twitch' is not one of zoom="),
        ("zoom", "'zoom' is not one of"),
        ("zoom=@/no/such/file", "/no/such/file cannot be read"),
    ],
)
def test_what_cannot_be_meant(given, said, capsys):
    with pytest.raises(SystemExit) as end:
        live.run(["talk.wav", "--push", given])
    assert end.value.code == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("zoom=ftp://host/", "--push zoom=… needs an address"),
        ("webhook=http://host:99999999/", "--push webhook=… needs an address"),
        ("obs=http://localhost", "--push obs=… needs an address"),
        ("zoom.fr=http://host/", "zoom.fr is for a language that is no target; there is de, pt"),
        ("zoom=http://host/", "takes one of the languages de, pt: write zoom.de=…"),
        ("hls.pt=/dev/null/x", "name a folder that can be written"),
    ],
)
def test_addresses_and_languages_that_do_not_fit(given, said):
    targets = ("de", "pt") if "language" in said else ("pt",)
    with pytest.raises(UsageError, match=".") as error:
        open_pushes([some_push(given)], targets, SubtitleRules())
    assert said in str(error.value)


def test_a_file_keeps_an_address_from_others(tmp_path):
    (tmp_path / "zoom.txt").write_text("https://host/closedcaption?id=1\n", "utf-8")
    assert some_push(f"zoom.pt=@{tmp_path}/zoom.txt") == Where("zoom", "pt", "https://host/closedcaption?id=1")


def test_nothing_of_it_is_imported_by_other_runs():
    program = "import sys; import pipeline.apps.live, pipeline.apps.live_run; print(*sys.modules, sep='\\n')"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "pipeline.apps.live_run" in loaded
    assert not [
        name
        for name in loaded
        if name.startswith(
            (
                "pipeline.push.push",
                "pipeline.server",
                "pipeline.speaking",
                "pipeline.media.subtitles.check",
                "websockets",
            )
        )
    ]


@pytest.mark.slow
def test_a_live_run_sends_while_it_writes(server, tmp_path):
    talk = write_wav(tmp_path / "talk.wav", read_wav(PHRASES)[: 16_000 * 5])
    given = ["--push", f"webhook={server.url}", "--push", f"hls={tmp_path / 'hls'}"]
    assert run("live", talk, "--config", "demo-zh", "--srt", tmp_path / "out.srt", *given).returncode == 0
    text = json.loads(server.next().body)["text"]
    assert text in (tmp_path / "out.srt").read_text("utf-8").replace("\n", "")
    assert "captions-0.vtt" in (tmp_path / "hls" / "captions.m3u8").read_text("utf-8")
    with pytest.raises(UsageError, match="does not run in real time"):
        live.run([str(talk), "--config", "demo-zh", "--fast", *given])


class Refused(Pusher):
    """Sends to a place that takes nothing."""

    tries = 0

    def deliver(self, language: str, sentence: Sentence) -> None:
        self.tries += 1
        raise PushRefusedError("it is another address now")


def test_nothing_more_is_sent_to_a_place_that_refuses() -> None:
    sink = Refused("test", ["de"], SubtitleRules())
    for event in sentence(0, TEXTS[0]):
        sink.write(event)
    while not sink.lost:
        threading.Event().wait(0.001)
    for event in [*sentence(1, TEXTS[1]), *sentence(2, TEXTS[0])]:
        sink.write(event)
    sink.close()
    assert (sink.tries, sink.lost, sink.sent) == (1, 3, 0)


class Held(Pusher):
    """Sends when the test lets it."""

    def __init__(self) -> None:
        self.begun, self.released = threading.Event(), threading.Event()
        self.texts: list[str] = []
        super().__init__("test", ["de"], SubtitleRules())

    def deliver(self, language: str, sentence: Sentence) -> None:
        self.begun.set()
        assert self.released.wait(HANG_S)
        self.texts.append(sentence.text)


def test_of_what_waits_the_newest_is_sent_and_the_rest_is_counted(monkeypatch) -> None:
    monkeypatch.setattr(push, "_CAPACITY", 2)
    sink = Held()
    for number in range(5):
        for event in sentence(number, f"Satz {number}."):
            sink.write(event)
        assert sink.begun.wait(HANG_S)
    sink.released.set()
    sink.close()
    assert sink.texts == ["Satz 0.", "Satz 3.", "Satz 4."]
    assert (sink.lost, sink.sent) == (2, 3)


class Failing(Pusher):
    """Sends to a place that cannot be reached for a while. It waits for nothing: how long it would is kept."""

    def __init__(self, *failures: Exception) -> None:
        super().__init__("test", ["de"], SubtitleRules())
        self.close()
        self.failures, self.waits_s, self._closing, self._refused = list(failures), list[float](), False, False
        self._changed.wait_for = lambda _, timeout_s: self.waits_s.append(timeout_s)  # type: ignore[method-assign]

    def deliver(self, language: str, sentence: Sentence) -> None:
        if self.failures:
            raise self.failures.pop(0)


@pytest.mark.parametrize(
    ("asked_s", "waits_s"), [(0.0, [0.5, 1, 2, 4, 8, 16, 30, 30]), (5.0, [5, 5, 5, 5, 8, 16, 30, 30]), (40.0, [40] * 8)]
)
def test_waits_double_up_to_half_a_minute_and_are_as_long_as_is_asked(monkeypatch, asked_s, waits_s) -> None:
    monkeypatch.setattr(push, "_FIRST_WAIT_S", 0.5)
    sink = Failing(*[PushError("busy", asked_s)] * 8)
    sink._send("de", Sentence(0.0, 1.0, "", "Hallo."))
    assert sink.waits_s == waits_s
    assert (sink.sent, sink.lost) == (1, 0)


def test_that_a_place_cannot_be_reached_is_said_each_time_that_it_begins(caplog) -> None:
    sink = Failing()
    for failures in (2, 0, 1):
        sink.failures = [PushError("busy")] * failures
        sink._send("de", Sentence(0.0, 1.0, "", "Hallo."))
    assert [message.partition(": ")[2] for message in caplog.messages] == [
        *("busy; trying again", "sending again; 0 sentences were lost") * 2
    ]


def test_after_the_end_a_sentence_is_tried_once(caplog) -> None:
    sink = Failing(*[PushError("busy")] * 3)
    sink._closing = True
    sink._send("de", Sentence(0.0, 1.0, "", "Hallo."))
    assert (sink.waits_s, sink.sent, sink.lost) == ([0.0], 0, 1)


def test_an_unexpected_failure_costs_its_sentence_and_a_refusal_all_that_wait() -> None:
    sink = Failing(ValueError("what"))
    sink._waiting.extend(("de", Sentence(0.0, 1.0, "", text)) for text in ("Ja.", "Nein."))
    sink._send("de", Sentence(0.0, 1.0, "", "Hallo."))
    assert (sink.lost, len(sink._waiting)) == (1, 2)
    sink.failures = [PushRefusedError("no")]
    sink._send("de", Sentence(0.0, 1.0, "", "Hallo."))
    assert (sink.lost, len(sink._waiting)) == (4, 0)


@pytest.mark.parametrize(
    ("status", "after", "wait_s"),
    [
        (429, "7", 7), (503, "999", 999), (503, "1000", 0), (503, "Fri, 31 Dec 1999 23:59:59 GMT", 0), (503, None, 0),
        (408, None, 0), (425, None, 0), (599, None, 0), (418, "7", 7),
        (400, "7", None), (404, None, None), (301, None, None), (600, None, None),
    ],
)  # fmt: skip
def test_what_may_pass_is_tried_again_when_the_server_says_and_the_rest_is_refused(monkeypatch, status, after, wait_s):
    headers = Message()
    if after is not None:
        headers["Retry-After"] = after
    addresses = []

    def answer(request, timeout):
        addresses.append(request.full_url)
        raise HTTPError(request.full_url, status, "Because", headers, None)

    monkeypatch.setattr(push._OPENER, "open", answer)
    with pytest.raises(PushError) as error:
        asked("http://host/a?key=x", b"", passing=frozenset({418}), seq=3)
    assert isinstance(error.value, PushRefusedError) == (wait_s is None)
    assert error.value.wait_s == (wait_s or 0)
    with pytest.raises(PushError):
        asked("http://host/a", b"", seq=3)
    assert addresses == ["http://host/a?key=x&seq=3", "http://host/a?seq=3"]
    assert ("another address" in str(error.value)) == (status == 301)


@pytest.mark.parametrize("url", ["http://host/a b", "http://host/ä", "http://host:0/", "http:///a", "ws://host/"])
def test_what_is_no_address_of_http_is_refused_without_naming_it(url):
    with pytest.raises(UsageError) as error:
        http_address(url, "zoom")
    assert url not in str(error.value)
