"""How fast a client's messages are read, and who gives up a place for others."""

import pytest

from pipeline.server.protocol import ProtocolError
from pipeline.server.shares import Pace, displaced, gives_way


class Clock:
    """Told by the test, in seconds."""

    now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


def test_some_messages_are_read_at_once_and_then_so_many_a_second():
    clock = Clock()
    pace = Pace(4.0, clock)
    assert [pace.wait_s() for _ in range(80)] == [0.0] * 80
    assert [pace.wait_s() for _ in range(3)] == [0.25, 0.5, 0.75]
    clock.now_s += 0.75
    assert pace.wait_s() == 0.25
    clock.now_s += 1e6  # no more is saved up than at first
    assert [pace.wait_s() for _ in range(80)] == [0.0] * 80
    assert pace.wait_s() > 0.0


@pytest.mark.parametrize(
    ("held", "newcomer", "kept", "loser"),
    [
        ("", "a", 0, None),
        ("aab", "c", 0, "a"),
        ("abbb", "a", 0, "b"),
        ("aabb", "a", 0, None),
        ("aabbb", "a", 0, None),  # it would have as many as the other keeps now, and the other could take one back
        ("ab", "c", 0, None),
        ("aaab", "c", 3, None),
        ("aaab", "c", 2, "a"),
        ("aaaa", "a", 0, None),
    ],
)
def test_the_address_with_the_most_places_gives_one_up(held, newcomer, kept, loser):
    assert gives_way(list(held), newcomer, kept) == loser


def test_the_newest_of_an_address_with_more_than_half_of_the_places_gives_its_up():
    held = {1: "a", 2: "a", 3: "b", 4: "a"}
    assert displaced(held, "c", 5, "readers") is None
    assert displaced(held, "c", 4, "readers") == 4
    held[4] = "b"
    with pytest.raises(ProtocolError, match="the session has 4 readers, which is the limit"):
        displaced(held, "c", 4, "readers")
    with pytest.raises(ProtocolError, match="the session has 0 readers"):
        displaced({}, "c", 0, "readers")
