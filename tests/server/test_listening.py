"""The socket of the server."""

from __future__ import annotations

import socket

from pipeline.apps.serve import listening


def test_small_messages_are_sent_at_once() -> None:
    with listening("127.0.0.1", 0) as listener, socket.create_connection(listener.getsockname()):
        accepted, _ = listener.accept()
        with accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
