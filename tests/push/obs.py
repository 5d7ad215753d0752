"""A server that speaks obs-websocket 5 as OBS does: greeting, password, and the requests that set text."""

import base64
import hashlib
import json
import queue
import threading
from typing import Any, Self

from websockets.exceptions import ConnectionClosed
from websockets.sync.server import ServerConnection, serve

_SALT, _CHALLENGE = "salt of the test", "challenge of the test"


def _hashed(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


class FakeObs:
    """Listens on a free port inside the block."""

    def __init__(self, password: str) -> None:
        self.requests: list[tuple[str, dict[str, Any]]] = []
        self.answered: queue.Queue[tuple[str, dict[str, Any]]] = queue.Queue()
        self.streaming = True
        self.hang_up = False
        """Whether to end the connection at the next request without an answer."""
        self._secret = _hashed(_hashed(password + _SALT) + _CHALLENGE)
        self._server = serve(self._talk, "127.0.0.1", 0)
        self.port = self._server.socket.getsockname()[1]

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()

    def _talk(self, socket: ServerConnection) -> None:
        say = lambda op, data: socket.send(json.dumps({"op": op, "d": data}))  # noqa: E731
        authentication = {"challenge": _CHALLENGE, "salt": _SALT}
        say(0, {"obsWebSocketVersion": "5.5.0", "rpcVersion": 1, "authentication": authentication})
        try:
            identity = json.loads(socket.recv())
            assert identity["op"] == 1
            if identity["d"].get("authentication") != self._secret:
                socket.close(4009, "Authentication failed.")
                return
            say(2, {"negotiatedRpcVersion": 1})
            if identity["d"].get("eventSubscriptions", 1):
                say(5, {"eventType": "StreamStateChanged", "eventIntent": 64})
            for message in socket:
                request = json.loads(message)["d"]
                if self.hang_up:
                    self.hang_up = False
                    socket.close()
                    return
                kind, data = request["requestType"], request.get("requestData", {})
                status: dict[str, Any] = {"result": True, "code": 100}
                if kind == "SendStreamCaption" and not self.streaming:
                    status = {"result": False, "code": 501}
                if data.get("inputName") == "missing":
                    status = {"result": False, "code": 600, "comment": "No source was found by the name of `missing`."}
                self.requests.append((kind, data))
                say(7, {"requestType": kind, "requestId": request["requestId"], "requestStatus": status})
                self.answered.put((kind, data))
        except ConnectionClosed:
            pass
