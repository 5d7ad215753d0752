"""Hosts, origins, tokens and rates."""

import pytest

from pipeline.server.access import Access, bearer_token, is_host_name, is_loopback, is_origin, password
from pipeline.server.guard import Rate

ACCESS = Access.of("0123456789abcdef", ["Caption.example"], ["https://App.example/"])


@pytest.mark.parametrize(
    "host",
    ["localhost", "localhost:8000", "LOCALHOST", "127.0.0.1:1", "[::1]:8000", "192.168.1.7:8000", "caption.example"],
)
def test_own_names_and_addresses_are_known(host):
    assert ACCESS.knows_host(host)


@pytest.mark.parametrize(
    "host",
    [
        None,
        "",
        "evil.example",
        "localhost.evil.example",
        "127.0.0.1.evil.example",
        "a@localhost",
        "localhost:x",
        "localhost/x",
        "[",
        "[::1].evil.example",
        "[::1]evil.example:80",
        "evil.example[::1]",
        "[localhost]",
        "localhost:8000:1",
        "localhost\n",
        "a" * 1_000_000,
    ],
)
def test_other_names_are_not(host):
    assert not ACCESS.knows_host(host)


@pytest.mark.parametrize(
    ("origin", "host", "known"),
    [
        (None, "localhost:8000", True),
        ("http://localhost:8000", "localhost:8000", True),
        ("https://LOCALHOST:8000", "localhost:8000", True),
        ("https://app.example", "localhost:8000", True),
        ("https://APP.example", "localhost:8000", True),
        ("http://localhost:9000", "localhost:8000", False),
        ("http://evil.example", "localhost:8000", False),
        ("http://app.example", "localhost:8000", False),
        ("null", "localhost:8000", False),
        ("", "localhost:8000", False),
        ("file://localhost:8000", "localhost:8000", False),
        ("http://localhost:8000", None, False),
        ("http://[", "localhost:8000", False),
        ("http://" + "a" * 1_000_000, "a" * 1_000_000, False),
    ],
)
def test_only_own_pages_may_connect(origin, host, known):
    assert ACCESS.knows_origin(origin, host) == known


def test_names_and_origins_are_those_of_headers():
    for name in ("captions.example", "Captions.Example", "192.0.2.1", "localhost"):
        assert is_host_name(name)
        assert Access.of(names=[name]).knows_host(f"{name}:8000")
    for origin in ("https://example.org", "http://example.org:8000/", "http://[::1]:8000", "chrome-extension://abc"):
        assert is_origin(origin)
        assert Access.of(origins=[origin]).knows_origin(origin.rstrip("/"), "localhost")
    for host in ("localhost?x", "localhost#x", "localhost/x", "x@localhost"):
        assert not Access().knows_host(host)


@pytest.mark.parametrize(
    ("header", "token", "as_password"),
    [
        ("Bearer  a:b ", "a:b", None),
        ("bearer a", "a", None),
        ("Basic dXNlcjphOmI=", None, "a:b"),
        ("basic OmE=", None, "a"),
        ("Basic YQ==", None, ""),
        ("Basic a", None, None),
        ("Basic /w==", None, None),
        ("Digest a", None, None),
        (None, None, None),
    ],
)
def test_a_token_comes_as_bearer_or_as_a_password(header, token, as_password):
    assert (bearer_token(header), password(header)) == (token, as_password)


def test_the_token_must_be_right_where_there_is_one():
    assert ACCESS.knows_token("0123456789abcdef")
    for wrong in (None, "", "0123456789abcdeF", "0123456789abcdef ", "ü"):
        assert not ACCESS.knows_token(wrong)
    assert Access().knows_token(None)
    assert "0123456789abcdef" not in repr(ACCESS)


@pytest.mark.parametrize(
    ("host", "own"),
    [
        ("127.0.0.1", True),
        ("127.8.8.8", True),
        ("::1", True),
        ("localhost", True),
        ("0.0.0.0", False),
        ("::", False),
        ("", False),
    ],
)
def test_loopback_addresses_are_told_from_others(host, own):
    assert is_loopback(host) == own


def test_an_address_may_do_so_much_a_minute():
    now_s = 0.0
    rate = Rate(2, lambda: now_s)
    assert [rate.allows("a") for _ in range(3)] == [True, True, False]
    assert rate.allows("b")
    now_s = 60.0
    assert rate.allows("a")
    for number in range(20_000):
        rate.allows(str(number))
    assert len(rate._times) == 10_000


def test_a_network_of_ipv6_counts_as_one_address():
    rate = Rate(1, lambda: 0.0)
    assert rate.allows("2001:db8::1")
    assert not rate.allows("2001:db8::2")
    assert rate.allows("2001:db8:0:1::1")
    assert rate.allows("::ffff:192.0.2.1")
    assert rate.allows("::ffff:192.0.2.2")
    assert rate.allows("fe80::1%eth0")
    assert not rate.allows("fe80::2%eth0")
    assert rate.allows("")
