"""Text that looks like markup."""

import pytest

from pipeline.media.subtitles import escapes

J = "\u2060"


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("MyValue<String> a < b", f"MyValue<{J}String> a <{J} b"),
        ("<b>bold</b>", f"<{J}b>bold<{J}/b>"),
        (r"{\an8}top", rf"｛\{J}an8｝top"),
        ("&lt;&#60; AT&T", f"&{J}lt;&{J}#60; AT&T"),
        ("a --> b ---> c -> d", f"a --{J}> b ---{J}> c -> d"),
        ("00:00:01,000 --> 1:00:02.5", f"00:00:01,{J}000 --{J}> 1:00:02.{J}5"),
        ("42", f"42{J}"),
        ("at 10:30", "at 10:30"),
    ],
)
def test_subrip(text, written):
    assert escapes.srt(text) == written


def test_ass():
    assert escapes.ass(r"{\an8}a\Nb\h <b>&lt;") == rf"｛\{J}an8｝a\{J}Nb\{J}h <b>&lt;"


def test_webvtt():
    assert escapes.vtt("a --> <b> &lt; {x}") == "a --&gt; &lt;b&gt; &amp;lt; {x}"


def test_ttml_lacks_what_xml_cannot_have():
    assert escapes.ttml("a\ufffe<b>\uffff & c") == "a&lt;b&gt; &amp; c"


def test_lrc():
    assert escapes.lrc("[1] <b> [ a < b [") == f"[{J}1] <{J}b> [ a < b ["
