"""python -m pipeline.bench peer: a recording played to a server that speaks WhisperLiveKit's protocol, and its scores."""

from __future__ import annotations

import asyncio
import json
import re
import socket
import subprocess
import sys
import threading
import wave
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from websockets.exceptions import ConnectionClosed
from websockets.sync.server import ServerConnection, serve

from pipeline.bench import peer_play
from pipeline.bench.__main__ import run
from pipeline.bench.measures import LiveMeasures, Spread, WordErrors, measured
from pipeline.bench.peer_messages import (
    Finished,
    PeerError,
    PeerState,
    PeerText,
    Settings,
    as_received,
    read_message,
    taken_back,
)
from pipeline.bench.peer_play import PeerRun, check_server, play_to_peer
from pipeline.bench.shown import source_changes, versions
from pipeline.errors import UsageError
from pipeline.events import SAMPLE_RATE, SourceSentence, Word
from tests.conftest import PHRASES, read_wav

BYTES_PER_S = 2 * SAMPLE_RATE
SETTINGS: dict[str, Any] = {"type": "config", "useAudioWorklet": True, "mode": "full"}
DONE: dict[str, Any] = {"type": "ready_to_stop"}
HALF_A_SECOND = np.zeros(SAMPLE_RATE // 2, np.int16)


def update(*lines: str, draft: str = "", **changes: Any) -> dict[str, Any]:
    """A message with text, as WhisperLiveKit 0.2.26 sends it; a line without text is silence."""
    return {
        "status": "active_transcription",
        "lines": [
            {"speaker": 1 if text else -2, "text": text, "start": "0:00:00.88", "end": "0:00:02.44"} for text in lines
        ],
        "buffer_transcription": draft,
        "buffer_diarization": "",
        "buffer_translation": "",
        "remaining_time_transcription": 2.9,
        "remaining_time_transcription_processing": 0.4,
        "remaining_time_transcription_policy": 0.0,
        "remaining_time_diarization": 0,
    } | changes


Script = Sequence[tuple[float, Any]]
"""What a server sends when it has received so many seconds of audio; the last entries when it has received all of it."""
AT_END = float("inf")


class Peer:
    """A server on this machine that follows a script for each connection, and closes the connection at its end."""

    def __init__(self, script: Script, *, stays: bool = False) -> None:
        self.script, self.stays = script, stays
        self.received: list[bytes] = []
        self.url = ""

    def __call__(self, connection: ServerConnection) -> None:
        left, heard_s, audio = list(self.script), 0.0, b""
        try:
            while left or self.stays:
                while left and heard_s >= left[0][0]:
                    message = left.pop(0)[1]
                    connection.send(message if isinstance(message, str | bytes) else json.dumps(message))
                if left or self.stays:
                    chunk = connection.recv()
                    assert isinstance(chunk, bytes)
                    audio += chunk
                    heard_s = len(audio) / BYTES_PER_S if chunk else AT_END
        except ConnectionClosed:
            pass
        if audio:
            self.received.append(audio)


@contextmanager
def serving(peer: Callable[[ServerConnection], None]) -> Iterator[str]:
    """The address of a running server."""
    with serve(peer, "127.0.0.1", 0) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"ws://127.0.0.1:{server.socket.getsockname()[1]}/asr"
        finally:
            server.shutdown()
            thread.join()


def no_server() -> str:
    """An address at which nothing listens."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return f"ws://127.0.0.1:{free.getsockname()[1]}/asr"


def recording(path: Path, seconds: float) -> Path:
    with wave.open(str(path), "wb") as file:
        file.setparams((1, 2, SAMPLE_RATE, 0, "NONE", ""))
        file.writeframes(read_wav(PHRASES)[: int(seconds * SAMPLE_RATE)].tobytes())
    return path


# "The plane from Tokyo arrives at seven o'clock in the evening.", of which the server hears one word wrong and one not,
# withdraws one, and commits the last words at the end.
HEARD: Script = [
    (0.0, SETTINGS),
    (0.0, update(status="no_audio_detected")),
    (1.5, update(draft=" The plain")),
    (2.0, update(draft=" The plane from Tokyo")),
    (2.0, {"type": "metrics", "lines": 3}),
    (2.5, update(" The plane from", draft=" Tokyo")),
    (4.0, update(" The plane from Tokyo", "", draft="arrives at eight o'clock ")),
    (AT_END, update(" The plane from Tokyo", "", "arrives at eight o'clock in evening.")),
    (AT_END, DONE),
]


@pytest.mark.slow
def test_a_recording_is_played_to_a_server_and_scored(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    audio = recording(tmp_path / "talk.wav", 5.0)
    audio.with_suffix(".txt").write_text("The plane from Tokyo arrives at seven.", "utf-8")
    peer = Peer(HEARD)
    with serving(peer) as url:
        assert run(["peer", str(audio), "--config", "demo-zh", "--url", url, "--json"]) == 0
    assert peer.received == [read_wav(PHRASES)[: 5 * SAMPLE_RATE].tobytes()]
    found = json.loads(capsys.readouterr().out)
    assert (found["recording"], found["duration_s"], found["failure"]) == (str(audio), 5.0, None)
    assert found["taken_back"] == 0
    assert found["against_offline"] == {"units": 11, "substituted": 1, "missing": 1, "extra": 0, "rate": 2 / 11}
    assert found["against_text"]["rate"] == 4 / 7
    source = found["source"]
    assert (source["unit"], source["units"]) == ("word", 10)
    assert source["erasure"] == pytest.approx(1 / 10)  # "plain"
    assert source["changed"] == pytest.approx(1 / 10)
    for text in ("first_shown", "committed"):
        assert source[text]["count"] == 9  # all but "eight"
        assert source[text]["mean_s"] > 0
    assert source["committed"]["mean_s"] > source["first_shown"]["mean_s"]
    assert source["waiting_s"] > 2
    assert set(source["displayed_lagging"]) == {
        "computation_aware_al_ms", "computation_aware_laal_ms", "sentences", "empty",
    }  # fmt: skip
    assert found["drained_s"] >= 0
    assert found["cpu_share"] > 0
    assert found["memory_mb"] > 50  # this process, which runs the server too


def sentence(*words: str) -> SourceSentence:
    """A word a second."""
    timed = tuple(Word(f" {word}", float(at), at + 1.0) for at, word in enumerate(words))
    return SourceSentence(0, "en", " ".join(words), 0.0, float(len(words)), words=timed)


def scored(*timed: tuple[float, dict[str, Any]]) -> LiveMeasures:
    """The figures of a recording of four seconds: "we walk to town"."""
    received = as_received(states(*timed), "en", 4.0)
    return measured(received, ("en", "en"), 4.0, offline=[sentence("We", "walk", "to", "town.")])


def states(*timed: tuple[float, dict[str, Any]]) -> list[PeerState]:
    found = []
    for elapsed_s, message in timed:
        shown = read_message(json.dumps(message))
        assert isinstance(shown, PeerText)
        found.append(PeerState(shown, elapsed_s))
    return found


def spread(*values_s: float) -> Spread:
    found = Spread.of(values_s)
    assert found is not None
    return Spread(found.count, *(pytest.approx(value) for value in (found.mean_s, found.p50_s, found.p90_s)))


def test_delays_count_from_the_end_of_each_word() -> None:
    found = scored(
        (1.5, update(draft=" We work")),
        (3.5, update(" We", draft=" walk to")),
        (6.0, update(" We walk to", draft=" town.")),
        (7.0, update(" We walk to town.")),
    )
    source = found.source
    assert source.first_shown == spread(1.5 - 1, 3.5 - 2, 3.5 - 3, 6.0 - 4)
    assert source.committed == spread(3.5 - 1, 6.0 - 2, 6.0 - 3, 7.0 - 4)
    assert (source.units, source.erasure, source.changed) == (4, 0.25, 0.25)
    assert source.waiting_s == 2.0  # "walk" had ended 2 s before the audio
    assert found.against_offline == WordErrors(4, 0, 0, 0)
    assert found.source_curves.committed_s == (3.5, 6.0, 6.0, 7.0)


def test_nothing_waits_if_all_is_committed_in_time() -> None:
    assert scored((3.9, update(" We walk to town."))).source.waiting_s == 0.0


def test_words_that_are_never_committed_wait() -> None:
    source = scored((3.0, update(" We", draft=" walk"))).source
    assert (source.first_shown, source.committed) == (spread(2.0, 1.0), spread(2.0))
    assert source.waiting_s == 2.0


def test_a_server_that_shows_nothing_is_all_wrong() -> None:
    found = scored((0.1, update(status="no_audio_detected")))
    assert found.against_offline == WordErrors(4, 0, 4, 0)
    assert (found.source.units, found.source.first_shown, found.source.waiting_s) == (0, None, None)


def test_committed_text_that_changes_counts_from_when_it_is_final() -> None:
    timed = (
        (2.0, update(" We work")),
        (4.0, update(" We walk to")),
        (5.0, update(" We walk to town.")),
    )
    assert scored(*timed).source.committed == spread(2.0 - 1, 4.0 - 2, 4.0 - 3, 5.0 - 4)
    assert taken_back(states(*timed)) == len("ork")


def test_silence_and_lines_do_not_change_the_text() -> None:
    """A pause turns a draft into a line of its own: the same words, so nothing is withdrawn."""
    shown = states(
        (1.0, update(" We walk", draft=" to")),
        (2.0, update(" We walk to", "")),
        (3.0, update(" We walk to", "", draft="town")),
        (4.0, update(" We walk to", "", " town.")),
    )
    assert [(state.shown.text, state.shown.committed) for state in shown] == [
        ("We walk to", 7), ("We walk to", 10), ("We walk to town", 10), ("We walk to town.", 16),
    ]  # fmt: skip
    assert not any(change.delta.withdrawn for change in source_changes(as_received(shown, "en", 4.0)))


TEXTS = st.text("ab ", max_size=6)


@given(st.lists(st.tuples(TEXTS, TEXTS), min_size=1, max_size=8))
def test_any_texts_become_changes_that_give_them(texts: list[tuple[str, str]]) -> None:
    shown = states(*((float(at), update(line, draft=draft)) for at, (line, draft) in enumerate(texts)))
    found = versions(source_changes(as_received(shown, "en", 100.0))).get(0, [])
    by_time = {version.elapsed_s: version for version in found}
    text, final = "", shown[-1].shown
    for state in shown:
        text = by_time[state.elapsed_s].text if state.elapsed_s in by_time else text
        assert text == state.shown.text
    for version in found:  # what is committed never changes again
        assert final.text[: final.committed].startswith(version.text[: version.committed])
    if found:
        assert found[-1].committed == final.committed


def test_messages_without_text() -> None:
    assert read_message(json.dumps(SETTINGS)) == Settings(raw_audio=True)
    assert read_message(json.dumps(SETTINGS | {"useAudioWorklet": False})) == Settings(raw_audio=False)
    assert read_message(json.dumps(DONE)) == Finished()
    assert read_message('{"type": "metrics"}') is None


GARBAGE = [
    "hello", "[1]", "null", "{}", b"\xff\x00", '{"lines": 3}', '{"lines": [3]}', '{"lines": [{"speaker": 1, "text": null}]}',
    '{"lines": [], "buffer_transcription": null}', "x" * 1000,
]  # fmt: skip


@pytest.mark.parametrize("raw", GARBAGE)
def test_a_message_of_another_protocol_is_quoted(raw: str | bytes) -> None:
    with pytest.raises(PeerError, match="which is not a message of WhisperLiveKit") as error:
        read_message(raw)
    assert repr(raw[:80]) in str(error.value)
    assert len(str(error.value)) < 250


def played(script: Script, wait_s: float = 60.0, *, stays: bool = False) -> PeerRun:
    """Half a second of silence played to a server."""
    with serving(Peer(script, stays=stays)) as url:
        return asyncio.run(play_to_peer(HALF_A_SECOND, url, wait_s))


def texts_of(run: PeerRun) -> list[str]:
    return [state.shown.text for state in run.states]


def test_repeated_text_is_kept_once() -> None:
    again = update(" We", remaining_time_transcription=3.0)
    result = played([(0.0, SETTINGS), (0.1, update(" We")), (0.2, again), (0.3, update(" We walk")), (AT_END, DONE)])
    assert (texts_of(result), result.failure) == (["We", "We walk"], None)
    assert result.drained_s is not None
    assert [state.elapsed_s >= at for state, at in zip(result.states, (0.1, 0.3), strict=True)] == [True, True]


def test_a_server_that_hangs_up() -> None:
    result = played([(0.0, SETTINGS), (0.2, update(" We"))])
    assert texts_of(result) == ["We"]
    assert result.drained_s is None
    assert re.match(r"the server closed the connection after \d+\.\d s", str(result.failure))


def test_a_server_that_answers_nothing_is_not_waited_for_without_end() -> None:
    result = played([(0.0, SETTINGS)], 0.1, stays=True)
    assert (result.states, result.drained_s) == ([], None)
    assert str(result.failure).startswith("the server had not finished 0.1 s after the end of the audio")


def test_a_server_that_does_not_read_is_not_waited_for_without_end() -> None:
    ended = threading.Event()

    def deaf(connection: ServerConnection) -> None:
        connection.send(json.dumps(SETTINGS))
        ended.wait()

    with serving(deaf) as url:
        result = asyncio.run(play_to_peer(HALF_A_SECOND, url, 0.1))
        ended.set()
    assert str(result.failure).startswith("the server had not finished")


def test_a_server_that_finishes_before_the_end() -> None:
    result = played([(0.0, SETTINGS), (0.0, DONE)], stays=True)
    assert (result.drained_s, result.failure) == (None, "the server finished before the audio ended")


@pytest.mark.parametrize(
    ("message", "failure"),
    [
        ("garbage", "the server sent 'garbage', which is not a message of WhisperLiveKit"),
        (b"\xff", "which is not a message of WhisperLiveKit"),
        (update(status="error", error="FFmpeg error: gone"), "the server reports an error: FFmpeg error: gone"),
    ],
    ids=["garbage", "bytes", "error"],
)
def test_a_message_that_ends_the_run(message: Any, failure: str) -> None:
    result = played([(0.0, SETTINGS), (0.1, update(" We")), (0.2, message)], stays=True)
    assert texts_of(result) == ["We"]
    assert failure in str(result.failure)


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ([], "closed the connection at once"),
        ([(0.0, update())], "did not begin with its settings"),
        ([(0.0, "hello")], "is not a message of WhisperLiveKit"),
        ([(0.0, SETTINGS | {"useAudioWorklet": False})], "decodes compressed audio; start it with: .* --pcm-input"),
        ([(0.0, {"type": "error", "error": "no such language"})], "reports an error: no such language"),
    ],
    ids=["hangs up", "no settings", "garbage", "compressed", "error"],
)
def test_a_server_that_cannot_be_used(script: Script, message: str) -> None:
    with serving(Peer(script)) as url, pytest.raises(PeerError, match=message):
        asyncio.run(check_server(url))


def test_a_server_that_sends_no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peer_play, "_SETTINGS_S", 0.2)
    with serving(Peer([], stays=True)) as url, pytest.raises(PeerError, match="sent no settings within 0.2 s"):
        asyncio.run(check_server(url))


def test_something_else_that_listens(monkeypatch: pytest.MonkeyPatch) -> None:
    """It accepts the connection, and never answers the handshake."""
    monkeypatch.setattr(peer_play, "_CONNECT_S", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as other:
        url = f"ws://127.0.0.1:{other.getsockname()[1]}/asr"
        with pytest.raises(PeerError, match="did not accept a connection within 0.2 s"):
            asyncio.run(check_server(url))


def test_without_a_server_it_is_said_how_to_start_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr("pipeline.bench.peer._recognised")  # before a model is loaded
    url = no_server()
    with pytest.raises(PeerError, match=f"{url} .* start it with: whisperlivekit-server --pcm-input") as error:
        run(["peer", str(PHRASES), "--config", "demo-zh", "--url", url])
    assert error.value.exit_status == 1


def test_results_before_a_failure_are_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    audio = recording(tmp_path / "talk.wav", 1.0)
    monkeypatch.setattr("pipeline.bench.peer._recognised", lambda *_: [sentence("The", "plane")])  # takes seconds
    peer = Peer([(0.0, SETTINGS), (0.5, update(" The plane"))])
    with serving(peer) as url, pytest.raises(PeerError, match="closed the connection"):
        run(["peer", str(audio), "--config", "demo-zh", "--url", url])
    printed = capsys.readouterr().out.splitlines()
    assert printed[0] == f"{audio}: 1.0 s"
    row = next(line.split() for line in printed if line.startswith("WhisperLiveKit"))
    assert (row[1], row[-2:]) == ("2", ["0.00", "0.0%"])
    assert any(line.endswith("–") for line in printed)  # drained


@pytest.mark.parametrize(
    "url", ["localhost:8000", "http://localhost:8000/asr", "ws://", "ws://localhost:x/asr", "ws://a..b/asr", ""]
)
def test_a_wrong_address_is_wrong_usage(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        run(["peer", "--url", url])
    assert end.value.code == 2
    assert "--url" in capsys.readouterr().err


def test_a_peer_is_compared_in_one_language() -> None:
    with pytest.raises(UsageError, match="this benchmark needs a single one"):
        run(["peer", "--config", "demo-zh", "--source", "auto", "--target", "en,zh"])


def test_a_missing_client_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "websockets.asyncio.client", None)
    with pytest.raises(UsageError, match="needs the package websockets; pip install 'websockets>=15'"):
        asyncio.run(check_server("ws://localhost/asr"))


def test_neither_the_peer_nor_pytorch_is_imported() -> None:
    code = "import sys; import pipeline.bench.peer; print({'torch', 'whisperlivekit', 'websockets'} & set(sys.modules))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == "set()\n"
