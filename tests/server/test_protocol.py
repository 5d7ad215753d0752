"""Messages of the WebSocket: what is read, and what a client is told about one that is not."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.server.protocol import (
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
        ('{"type": "start", "speakers": true}', Start(speakers=True)),
        ('{"type": "resume", "session": "s", "key": "k"}', Resume("s", "k")),
        ('{"type": "watch", "session": "s", "language": "zh"}', Watch("s", "zh")),
        ('{"type": "start", "glossary": "Acme\\t="}', Start(glossary="Acme\t=")),
        ('{"type": "glossary", "text": ""}', NewGlossary("")),
        (json.dumps({"type": "glossary", "text": '",' * 32_768}), NewGlossary('",' * 32_768)),
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
        ("[" * 50_000, "bad-message", "not JSON"),
        ("[" * 100_000, "bad-message", "too many values"),
        (json.dumps({str(number): 1 for number in range(2_000)}), "bad-message", "too many values"),
        (f'{{"type": {"[" * 900}{"]" * 900}}}', "bad-message", "the type is a JSON array"),
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
