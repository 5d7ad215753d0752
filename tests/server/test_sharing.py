"""Turns at the recogniser: one at a time, finals before drafts, whoever came first before others."""

from __future__ import annotations

import threading

import pytest

from pipeline.asr.recognizer import DraftRecognizer
from pipeline.loading import Models
from pipeline.server.sharing import DRAFT, FINAL, Turns, shared
from tests.conftest import HANG_S


def order(urgencies: list[int], at_once: int = 1) -> list[int]:
    """The order in which threads that wait get their turns, by their index."""
    turns, found = Turns(at_once), list[int]()
    hold, held = threading.Event(), threading.Event()

    def first() -> None:
        with turns.turn(FINAL):
            held.set()
            assert hold.wait(HANG_S)

    def work(index: int, urgency: int) -> None:
        with turns.turn(urgency):
            found.append(index)

    threads = [threading.Thread(target=first, daemon=True)]
    threads[0].start()
    assert held.wait(HANG_S)
    for index, urgency in enumerate(urgencies):
        thread = threading.Thread(target=work, args=(index, urgency), daemon=True)
        thread.start()
        threads.append(thread)
        while turns.waiting <= index:
            pass
    hold.set()
    for thread in threads:
        thread.join(HANG_S)
    return found


def test_finals_come_before_drafts_and_the_first_before_later_ones() -> None:
    assert order([DRAFT, FINAL, DRAFT, FINAL]) == [1, 3, 0, 2]


def test_a_failed_call_gives_its_turn_back() -> None:
    turns = Turns()
    for _ in range(2):
        with pytest.raises(ZeroDivisionError), turns.turn(FINAL):
            raise ZeroDivisionError


def test_a_shared_recogniser_drafts_if_its_own_does(demo_models: Models) -> None:
    recognizer = demo_models.recognizer
    assert isinstance(shared(recognizer, Turns()), DraftRecognizer) == isinstance(recognizer, DraftRecognizer)
    assert shared(recognizer, Turns()).config is recognizer.config
