"""OBS Studio by obs-websocket 5: the stream's own captions, or the text of a source.

https://github.com/obsproject/obs-websocket/blob/master/docs/generated/protocol.md. Captions of a stream (608) have western
letters only and exist while it streams; a text source has any letters.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import time
from base64 import b64encode
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Any
from urllib.parse import unquote, urlsplit

from ..errors import UsageError
from ..media import Sentence, SubtitleRules, layout, reading_ms
from .push import Pusher, PushError, PushRefusedError

try:
    from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidMessage
    from websockets.sync.client import ClientConnection, connect
except ImportError:
    raise UsageError(
        "--push obs=… needs websockets; install it with pip install 'streaming-speech-translation[server]'"
    ) from None

log = logging.getLogger(__name__)

_PASSWORD = "OBS_WEBSOCKET_PASSWORD"
_ANSWER_S = 5.0
# OBS keeps so many bytes of a caption; a decoder shows four lines well.
_BYTES, _LINES, _COLUMNS = 128, 4, 32
# Codes of obs-websocket: the connection's end, and requests' status.
_WRONG_PASSWORD, _NOT_STREAMING = 4009, 501
_HELLO, _IDENTIFY, _IDENTIFIED, _REQUEST, _RESPONSE = 0, 1, 2, 6, 7


class Push(Pusher):
    """Sends to one OBS, over a connection that is made again when it is lost."""

    def __init__(self, where: str, languages: Sequence[str], rules: SubtitleRules) -> None:
        """``where``: ws://[:PASSWORD@]HOST[:PORT][/SOURCE]; the source is a text source's name."""
        try:
            parts = urlsplit(where)
            port = parts.port or 4455
        except ValueError:
            parts, port = urlsplit(""), 0
        if parts.scheme not in ("ws", "wss") or not parts.hostname or not port:
            raise UsageError(
                "--push obs=… needs an address, such as obs=ws://localhost:4455 or obs=ws://localhost:4455/Captions for a text "
                f"source of that name; give the password in the environment variable {_PASSWORD}"
            )
        host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
        self._url, self._source = f"{parts.scheme}://{host}:{port}", unquote(parts.path.strip("/"))
        self._password = unquote(parts.password or "") or os.environ.get(_PASSWORD, "")
        self._socket: ClientConnection | None = None
        self._open = ExitStack()
        self._idle = self._shown = False
        super().__init__(f"obs ({host}:{port})", languages, rules)

    def deliver(self, language: str, sentence: Sentence) -> None:
        rules = self.rules
        source = ["\n".join(lines) for lines in layout(sentence.text, rules, seams=sentence.seams)]
        for text in source if self._source else stream_captions(sentence, rules):
            self._show(text)
            self._shown = bool(self._source)
            self.hold(max(rules.min_duration_ms, reading_ms(text.replace("\n", ""), rules)) / 1000)
        self.stays_s = rules.linger_ms / 1000

    def lapse(self) -> None:
        super().lapse()
        if self._shown:
            self._shown = False
            self._show("")

    def _show(self, text: str) -> None:
        kind, data = "SendStreamCaption", dict[str, object](captionText=text)
        if self._source:
            kind, data = "SetInputSettings", {"inputName": self._source, "inputSettings": {"text": text}}
        try:
            if self._socket is None:
                self._socket = self._connected()
            _tell(self._socket, _REQUEST, requestType=kind, requestId="0", requestData=data)
            status = _heard(self._socket, _RESPONSE)["requestStatus"]
        except (OSError, ConnectionClosed, InvalidHandshake, InvalidMessage, ValueError, KeyError, TypeError) as error:
            self._hang_up()
            if isinstance(error, ConnectionClosed) and error.rcvd is not None and error.rcvd.code == _WRONG_PASSWORD:
                raise PushRefusedError(f"the password is missing or wrong; give it in {_PASSWORD}") from None
            raise PushError(f"OBS does not answer ({str(error) or type(error).__name__})") from None
        idle, self._idle = self._idle, status["code"] == _NOT_STREAMING
        if self._idle and not idle:
            log.warning("%s: it does not stream, so that nobody gets captions until it does", self.name)
        if not (status["result"] or self._idle):
            raise PushRefusedError(f"OBS refuses {kind} ({status['code']} {status.get('comment', '')})")

    def close(self) -> None:
        super().close()
        self._hang_up()

    def _connected(self) -> ClientConnection:
        socket = self._open.enter_context(connect(self._url, open_timeout=_ANSWER_S, close_timeout=1, proxy=None))
        hello = _heard(socket, _HELLO)
        identity: dict[str, Any] = {"rpcVersion": 1, "eventSubscriptions": 0}
        if asked := hello.get("authentication"):
            identity["authentication"] = _hashed(_hashed(self._password + asked["salt"]) + asked["challenge"])
        _tell(socket, _IDENTIFY, **identity)
        _heard(socket, _IDENTIFIED)
        return socket

    def _hang_up(self) -> None:
        self._socket = None
        self._open.close()


def stream_captions(sentence: Sentence, rules: SubtitleRules) -> list[str]:
    """A sentence in blocks that OBS keeps whole and that stream captions have room for."""
    wide = _COLUMNS // 2
    room = replace(rules, line_columns=_COLUMNS, line_cjk_characters=wide, line_japanese_characters=wide)
    captions: list[str] = []
    for lines in range(_LINES, 0, -1):
        blocks = layout(sentence.text, replace(room, max_lines=lines), seams=sentence.seams)
        captions = ["\n".join(block) for block in blocks]
        if all(len(block.encode()) <= _BYTES for block in captions):
            return captions
    return [part for line in captions for part in _parts(line)]  # letters of many code points


def _parts(text: str) -> Iterator[str]:
    data = text.encode()
    while data:
        part = data[:_BYTES].decode("utf-8", "ignore")
        yield part
        data = data[len(part.encode()) :]


def _hashed(text: str) -> str:
    return b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _tell(socket: ClientConnection, op: int, **data: object) -> None:
    socket.send(json.dumps({"op": op, "d": data}))


def _heard(socket: ClientConnection, op: int) -> dict[str, Any]:
    """The data of the next message of kind ``op``."""
    by_s = time.monotonic() + _ANSWER_S
    while True:
        message = json.loads(socket.recv(timeout=max(0.0, by_s - time.monotonic())))
        if message["op"] == op:
            content: dict[str, Any] = message["d"]
            return content
