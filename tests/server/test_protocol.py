"""Messages of the WebSocket: what is read, and what a client is told about one that is not."""

import gc
import json
import time
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.server.protocol import (
    _FIELDS,
    _LONGEST_TEXT,
    Correct,
    End,
    Listen,
    Mask,
    NewGlossary,
    Pause,
    ProtocolError,
    Resume,
    Speaker,
    Start,
    Watch,
    kind_of,
    read_message,
)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"type": "start"}', Start()),
        (
            '{"type": "start", "version": 2, "sample_rate": 48000, "source": "en", "targets": ["zh"], "token": "t"}',
            Start(48_000, "en", ("zh",), "t"),
        ),
        (json.dumps({"type": "start", "targets": ["de"] * 32}), Start(targets=("de",) * 32)),
        ('{"type": "start", "speakers": true}', Start(speakers=True)),
        ('{"type": "resume", "session": "s", "key": "k"}', Resume("s", "k")),
        ('{"type": "watch", "session": "s", "language": "zh"}', Watch("s", "zh")),
        ('{"type": "start", "glossary": "Acme\\t="}', Start(glossary="Acme\t=")),
        ('{"type": "glossary", "text": ""}', NewGlossary("")),
        (json.dumps({"type": "glossary", "text": '",' * 32_768}), NewGlossary('",' * 32_768)),
        (json.dumps({"type": "glossary", "text": "[{" * 32_768}), NewGlossary("[{" * 32_768)),
        ('{"type": "end"}', End()),
        ('{"type": "listen", "session": "s", "language": "zh"}', Listen("s", "zh")),
        ('{"type": "correct", "sentence": 1, "text": "Yes."}', Correct(1, "Yes.")),
        ('{"type": "correct", "sentence": 1, "speaker": ""}', Correct(1, speaker="")),
        ('{"type": "mask", "sentence": 1, "text": "yes", "language": "de"}', Mask(1, "yes", "de")),
        ('{"type": "speaker", "name": "Ana"}', Speaker("Ana")),
        ('{"type": "pause", "on": true}', Pause(True)),
    ],
)
def test_messages_are_read(text, message):
    assert read_message(text) == message
    assert f'"type": "{kind_of(message)}"' in text


@pytest.mark.parametrize(
    ("text", "code", "words"),
    [
        ("", "bad-message", "not JSON"),
        ("[" * 200, "bad-message", "not JSON"),
        ("[" * 100_000, "bad-message", "too many values"),
        ("[" + "[]," * 300 + "[]]", "bad-message", "too many values"),
        ('{"type": "start", "targets": [' + "{}," * 300 + '"["]}', "bad-message", "too many values"),
        ("[" + r'"\\",' * 1_000 + "1]", "bad-message", "too many values"),
        ("[" + "1," * 10_000 + "1]", "bad-message", "too many values"),
        ('"' + r"\"" * 40_000 + "[" * 300 + "\\", "bad-message", "not JSON"),
        (json.dumps({str(number): 1 for number in range(2_000)}), "bad-message", "too many values"),
        (f'{{"type": {"[" * 200}{"]" * 200}}}', "bad-message", "the type is a JSON array"),
        ("[1]", "bad-message", "a JSON array"),
        ("1", "bad-message", "a JSON number"),
        ("{}", "bad-message", "the type is null"),
        ('{"type": ["start"]}', "bad-message", "the type is"),
        ('{"type": "begin"}', "bad-message", "one of start, resume, watch, end"),
        ('{"type": "start", "rate": 1}', "bad-message", "no field"),
        ('{"type": "end", "now": true}', "bad-message", "may have: none"),
        ('{"type": "start", "sample_rate": "16000"}', "bad-message", "must be int"),
        ('{"type": "start", "sample_rate": true}', "bad-message", "must be int"),
        ('{"type": "start", "targets": [1]}', "bad-message", "at most 32 language codes"),
        (json.dumps({"type": "start", "targets": ["de"] * 33}), "bad-message", "at most 32 language codes"),
        (json.dumps({"type": "start", "targets": ["d" * 65]}), "bad-message", "a target has 65 characters"),
        ('{"type": "start", "sample_rate": 0}', "bad-sample-rate", "from 8000 to 192000 Hz"),
        ('{"type": "start", "sample_rate": 10000000}', "bad-sample-rate", "10000000 Hz"),
        ('{"type": "start", "version": 1}', "bad-version", "version 2"),
        ('{"type": "resume", "session": "s"}', "bad-message", "needs key"),
        ('{"type": "watch"}', "bad-message", "needs session"),
        ('{"type": "start", "glossary": []}', "bad-message", "must be str"),
        ('{"type": "glossary"}', "bad-message", "needs text"),
        ('{"type": "correct", "sentence": 1}', "bad-message", "needs text, which replaces the line, or speaker"),
        ('{"type": "mask", "text": "yes"}', "bad-message", "needs sentence"),
        ('{"type": "speaker"}', "bad-message", "needs name"),
        ('{"type": "pause", "on": 1}', "bad-message", "must be bool"),
    ],
)
def test_what_is_wrong_is_said(text, code, words):
    with pytest.raises(ProtocolError, match=words) as error:
        read_message(text)
    assert error.value.code == code


@given(st.text() | st.recursive(st.none() | st.booleans() | st.integers() | st.text(), st.lists).map(str))
def test_any_text_is_a_message_or_a_protocol_error(text):
    try:
        read_message(text)
    except ProtocolError as error:
        assert len(str(error)) < 500  # noqa: PT017 (most texts are refused, some are not)


def test_secrets_are_not_in_the_representation():
    assert "secret" not in repr(Start(token="secret")) + repr(Resume("s", key="secret", token="secret"))


PIECES = [
    *'a "[]{},:019.-e',
    "é",
    "\N{GRINNING FACE}",
    *r"\\ \" \n \ud800 \u0041 \ ".split(),
    '"",',
    '"a":',
    "[],",
    "{},",
    "[1,",
    '{"a":',
    "1e9,",
    "null,",
]
LONGEST = 1_000_000
TRIES = 10
runs = st.builds(
    lambda pieces, times: ("".join(pieces) * times)[:LONGEST],
    st.lists(st.sampled_from(PIECES), min_size=1, max_size=4),
    st.sampled_from([1, 300, 10_000, 60_000, LONGEST]),
)
values = st.one_of(
    runs.map('"{}"'.format),
    runs,
    runs.map("[{}1]".format),
    st.lists(runs, max_size=3).map("".join),
    st.integers().map(str),
)


@st.composite
def long_messages(draw: st.DrawFn) -> str:
    """A text of at most 1 MB that begins as a message of the protocol."""
    kind = draw(st.sampled_from(sorted(_FIELDS)))
    names = draw(st.lists(st.sampled_from([*_FIELDS[kind], "other"]), max_size=4))
    fields = "".join(f', "{name}": {draw(values)}' for name in names)
    text = f'{{"type": "{kind}"{fields}{draw(st.sampled_from(["}", ""]))}'
    return text.encode()[:LONGEST].decode(errors="ignore")


def cost_s(text: str) -> float:
    """The work of reading a message."""
    began_s = time.thread_time()
    with suppress(ProtocolError):
        read_message(text)
    return time.thread_time() - began_s


@given(long_messages())
def test_no_message_takes_much_longer_to_read_than_a_plain_one(text):
    # In multiples of what is read in 2.5 ms where all messages have 10 ms, so that a slower machine has longer, too.
    plain = json.dumps({"type": "glossary", "text": "a" * (_LONGEST_TEXT - 100)})
    gc.disable()
    try:
        assert any(cost_s(text) <= 4 * cost_s(plain) for _ in range(TRIES))
    finally:
        gc.enable()
