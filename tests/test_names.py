"""Display of names: control sequences are escaped, readable text is unchanged."""

import os
import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.names import escaped, is_possible


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("a\x1b[31mred", r"a\x1b[31mred"),
        ("two\nlines\tand\rmore", r"two\nlines\tand\rmore"),
        ("\x9b31m", r"\u009b31m"),  # CSI as a single character
        ("exe\u202egpj.wav", r"exe\u202egpj.wav"),
        ("\u2066a\u2069\u200f", r"\u2066a\u2069\u200f"),
        ("a\u2028b\u200bc\ufeff", r"a\u2028b\u200bc\ufeff"),
        (os.fsdecode(b"caf\xe9.wav"), r"caf\xe9.wav"),
        ("\udc80\udcff\udc7f", r"\x80\xff\udc7f"),
        ("\ud800", r"\ud800"),
        ("\U000e0041", r"\U000e0041"),
    ],
)
def test_control_and_invisible_characters_are_escaped(name, shown):
    assert escaped(name) == shown


@pytest.mark.parametrize(
    "name",
    [
        "会议记录.wav",
        "cafe\u0301 – café.mp3",
        "שלום.wav",
        "می\u200cخواهم.mp3",  # Persian: with a zero-width non-joiner
        "क्\u200dष.ogg",
        "\U0001f469\u200d\U0001f4bb.mkv",  # an emoji of three code points
        "ประชุม.wav",
        "a \\n 'b' \"c\" $(d).wav",
        "\u06dd١٢.wav",
    ],
)
def test_readable_names_are_unchanged(name):
    assert escaped(name) == name


@given(st.text(alphabet=st.characters()))
def test_escaped_text_has_no_control_characters(name):
    shown = escaped(name)
    assert not {unicodedata.category(character) for character in shown} & {"Cc", "Cs", "Zl", "Zp"}
    assert not set(shown) & set("\u200e\u200f\u061c\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
    shown.encode()


@pytest.mark.parametrize(
    ("name", "possible"),
    [("talk.wav", True), ("会议 1.wav", True), (".hidden", True), ("console.wav", True), ("com10.srt", True)]
    + [(name, False) for name in ("a:b.wav", "why?.wav", "a\\b", "x*", "<x>", 'x"', "a|b", "x\x1f", "x.", "x ", "CON", "con.wav")]
    + [(name, False) for name in ("Nul.tar.gz", "aux .srt", "com1.wav", "LPT¹", "conin$")],
)  # fmt: skip
def test_names_that_windows_keeps_or_refuses_are_not_possible_there(name, possible, monkeypatch):
    assert is_possible(name)
    monkeypatch.setattr(sys, "platform", "win32")
    assert is_possible(name) is possible
