"""The socket of the server."""

import argparse
import re
import socket

import pytest

from pipeline.apps.listening import addresses, listening, some_ports
from pipeline.errors import UsageError


def test_small_messages_are_sent_at_once():
    with listening("127.0.0.1", 0) as listener, socket.create_connection(listener.getsockname()):
        accepted, _ = listener.accept()
        with accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_the_first_free_port_of_several_is_taken():
    with listening("127.0.0.1", 0) as one, listening("127.0.0.1", 0) as other:
        first, second = (each.getsockname()[1] for each in (one, other))
        with listening("127.0.0.1", first, second, 0) as third:
            assert third.getsockname()[1] not in (0, first, second)
        with pytest.raises(UsageError, match=f"any port from {first} to {second}: Address already in use"):
            listening("127.0.0.1", first, second).__enter__()


@pytest.mark.parametrize(("text", "ports"), [("8000", range(8000, 8001)), ("0", range(1)), ("80-82", range(80, 83))])
def test_ports_are_a_number_or_a_range(text, ports):
    assert some_ports(text) == ports


@pytest.mark.parametrize("text", ["", "-", "80-", "-80", "82-80", "80-82-84", "65536", "80-65536", "x"])
def test_other_ports_are_refused(text):
    with pytest.raises(argparse.ArgumentTypeError, match="not a whole number|has no port"):
        some_ports(text)


def test_the_addresses_can_be_opened():
    with listening("127.0.0.1", 0) as listener:
        port = listener.getsockname()[1]
        assert addresses(listener, "http") == [f"http://127.0.0.1:{port}/"]
    with listening("0.0.0.0", 0) as listener:
        port = listener.getsockname()[1]
        own, *others = addresses(listener, "https")
        assert own == f"https://localhost:{port}/"
        for other in others:  # none on a machine without a network
            (host,) = re.findall(rf"https://([\d.]+):{port}/", other)
            socket.create_connection((host, port)).close()
