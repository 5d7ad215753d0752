"""Rules of the interfaces that other programs use, without a server: what is read, chosen and answered."""

import asyncio
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipeline import Models, PipelineConfig
from pipeline.events import EndOfInput, SourceSentence, SourceText, TargetText, Transcript, Translation
from pipeline.languages.options import LanguageConfig
from pipeline.server.chains import Chain
from pipeline.server.languages.served import ServedLanguages
from pipeline.server.protocol import ProtocolError, Start
from pipeline.server.protocols import libretranslate, openai, realtime, whisper_asr, wyoming
from pipeline.server.service import Service
from pipeline.server.uploads import Upload, UploadError
from tests.streams import spoken, translated


def read(data: bytes, limit: int = 10) -> Any:
    """The first event of the Wyoming protocol in some bytes."""

    async def work() -> Any:
        reader = asyncio.StreamReader()
        reader.feed_data(data)
        reader.feed_eof()
        return await wyoming.next_event(reader, limit)

    return asyncio.run(work())


@pytest.mark.parametrize(
    ("data", "kind", "fields", "payload"),
    [
        (b'{"type": "ping"}\n', "ping", {}, None),
        (b'{"type": "ping", "data": null, "payload_length": null}\n', "ping", {}, None),
        (b'{"type": "x", "data": {"a": 1}, "data_length": 8, "payload_length": 2}\n{"b": 2}\1\2\3', "x", {"b": 2}, b"\1\2"),
        (b'{"type": "x", "payload_length": 10}\n0123456789', "x", {}, b"0123456789"),
    ],
)  # fmt: skip
def test_an_event_of_wyoming_has_data_and_a_payload_beside_it(data, kind, fields, payload):
    event = read(data)
    assert (event.type, event.data, event.payload) == (kind, fields, payload)
    assert read(b"") is None


@pytest.mark.parametrize(
    "data",
    [
        b"x\n", b"[]\n", b'{"type": 1}\n', b'{"type": "x", "payload_length": 11}\n', b'{"type": "x", "payload_length": -1}\n',
        b'{"type": "x", "data_length": true}\n', b'{"type": "x", "data_length": 65537}\n', b'{"type": "x", "data": [1]}\n',
        b'{"type": "x", "data_length": 2}\n[]', b'{"type": "x", "data_length": 1}\n{',
    ],
)  # fmt: skip
def test_what_is_no_event_of_wyoming_is_refused(data):
    with pytest.raises(ProtocolError) as refused:
        read(data)
    assert refused.value.code == "bad-message"


def test_each_language_that_is_translated_into_is_a_program_of_wyoming():
    languages = ServedLanguages(
        (LanguageConfig("en", ("zh", "de")), LanguageConfig("fr", ("de",)), LanguageConfig("auto", ("es", "pt")))
    )
    assert [(each.name, each.spoken, each.translates, each.target) for each in wyoming.programs(languages)] == [
        ("transcribe", ("en", "fr", "es", "pt"), False, None),
        ("translate", ("es", "pt"), True, None),
        ("translate-zh", ("en",), True, "zh"),
        ("translate-de", ("en", "fr"), True, "de"),
    ]


@pytest.mark.parametrize(
    ("data", "wanted"),
    [
        ({}, Start(8_000, None, ("zh",))),
        ({"language": "en"}, Start(8_000, "en", ("zh",))),
        ({"name": "translate-zh"}, Start(8_000, "en", ("zh",))),
        ({"name": "translate-zh", "language": "en-GB"}, Start(8_000, "en-GB", ("zh",))),
    ],
)
async def test_the_session_of_wyoming_is_that_of_the_chosen_program(data, wanted, demo_config, demo_models):
    connection = wyoming.WyomingConnection(None, None, Service(demo_config, demo_models))  # type: ignore[arg-type]
    connection._choose(data)
    assert connection._wanted(8_000) == wanted


@pytest.mark.parametrize(
    ("data", "code"),
    [
        ({"name": "translate-de"}, "unknown-program"),
        ({"name": 1}, "unknown-program"),
        ({"language": "zh"}, "unknown-language"),
        ({"language": 1}, "unknown-language"),
    ],
)
async def test_a_program_of_wyoming_that_is_none_leaves_the_choice_as_it_was(data, code, demo_config, demo_models):
    connection = wyoming.WyomingConnection(None, None, Service(demo_config, demo_models))  # type: ignore[arg-type]
    before = connection._wanted(8_000)
    with pytest.raises(ProtocolError) as refused:
        connection._choose(data)
    assert refused.value.code == code
    assert code != "unknown-program" or connection._wanted(8_000) == before


@pytest.mark.parametrize(("text", "audio"), [("AAE=", b"\0\1"), ("", b"")])
def test_audio_of_a_realtime_client_is_base64(text, audio):
    assert realtime.decoded_audio(text) == audio
    for wrong in (f"{text}!", "A", None, 1, "é"):
        with pytest.raises(ProtocolError, match="audio is no base64"):
            realtime.decoded_audio(wrong)


@pytest.mark.parametrize(
    ("code", "event_id", "kind", "answered"),
    [
        ("busy", "a", "server_error", "a"),
        ("stopping", None, "server_error", None),
        ("failed", 5, "server_error", None),
        ("bad-message", "a" * 512, "invalid_request_error", "a" * 512),
        ("bad-message", "a" * 513, "invalid_request_error", None),
    ],
)
def test_an_error_of_a_realtime_session_says_whose_it_is(code, event_id, kind, answered):
    details = realtime.details(ProtocolError(code, "why"), event_id)
    assert details == {"type": kind, "code": code, "message": "why", "param": None, "event_id": answered}


def test_a_field_of_a_realtime_message_is_an_object_or_left_out():
    assert realtime.object_in({"a": {"b": 1}}, "a") == {"b": 1}
    assert realtime.object_in({"a": None}, "a") == realtime.object_in({}, "a") == {}
    with pytest.raises(ProtocolError, match="a must be an object"):
        realtime.object_in({"a": []}, "a")


EVENTS = [
    Transcript(0, 0.0, 2.0, "So. Yes.", "en"),
    *spoken(0, "So.", 0.0, 1.0),
    *spoken(1, "Yes.", 1.0, 2.0),
    *translated(0, ["那", "。"]),
    *translated(1, ["", "是。"]),
    EndOfInput(2.5),
]


def wanted(config: PipelineConfig, models: Models, task: str, form: str = "json", words: bool = False) -> Any:
    language = "zh" if task == "translate" else "en"
    return openai._Wanted(Chain(config, models), task, language, form, False, words)


@pytest.mark.parametrize(("task", "text"), [("transcribe", "So. Yes."), ("translate", "那。是。")])
@pytest.mark.parametrize("form", ["json", "text", "verbose_json", "diarized_json", "srt", "vtt"])
def test_an_answer_has_what_was_said_or_its_translation(task, text, form, demo_config, demo_models):
    finished = [event for event in EVENTS if openai._is_finished(event)]
    body = openai._response(finished, wanted(demo_config, demo_models, task, form)).body.decode()
    if form == "text":
        assert body == text + "\n"
    elif form.endswith("json"):
        answer = json.loads(body)
        assert answer["text"] == text
        if form == "verbose_json":
            assert (answer["task"], answer["duration"], "words" in answer) == (task, 2.5, False)
        if form != "json":
            assert [each["text"].strip() for each in answer["segments"]] == (
                ["So.", "Yes."] if task == "transcribe" else ["那。", "是。"]
            )
    else:
        assert ("WEBVTT" in body) is (form == "vtt")
        assert ("So." in body, "那" in body) == (task == "transcribe", task == "translate")


@pytest.mark.parametrize("task", ["transcribe", "translate"])
@pytest.mark.parametrize(
    "name", ["response_format", "stream", "timestamp_granularities[]", "language", "target", "task", "output"]
)
async def test_an_error_has_the_beginning_of_a_field_alone(task, name, demo_config, demo_models):
    service, upload = Service(demo_config, demo_models), Upload(Path(), {name: ["ü" * 1_000_000]})
    with pytest.raises(UploadError) as refused:
        if name in ("task", "output"):
            whisper_asr._read(upload)
        else:
            await openai._wanted(upload, service, task)
    assert len(str(refused.value)) < 300


@pytest.mark.parametrize(("encode", "is_pcm"), [("", False), ("true", False), ("False", True), ("0", True)])
def test_audio_is_pcm_if_it_is_not_to_be_encoded(encode, is_pcm):
    assert whisper_asr._read(Upload(Path(), {"encode": [encode]}))[1].is_pcm is is_pcm


@pytest.mark.parametrize(("language", "text"), [("en", "So. Yes."), ("zh", "So.Yes.")])
def test_a_sentence_without_a_translation_leaves_no_blank(language, text):
    assert openai._joined(iter(["So.", "", "Yes."]), language) == text


def test_words_are_those_of_what_was_said_and_only_if_they_are_asked_for(demo_config, demo_models):
    for task, words, there in (("transcribe", True, True), ("transcribe", False, False), ("translate", True, False)):
        asked = wanted(demo_config, demo_models, task, "verbose_json", words)
        answer = json.loads(openai._response([each for each in EVENTS if openai._is_finished(each)], asked).body)
        assert ("words" in answer) is there


def test_subtitles_have_the_content_types_of_openai(demo_config, demo_models):
    for form, kind in (("srt", "text/plain"), ("vtt", "text/vtt"), ("text", "text/plain")):
        answer = openai._response([EndOfInput(1.0)], wanted(demo_config, demo_models, "transcribe", form))
        assert answer.headers["content-type"] == f"{kind}; charset=utf-8"


@pytest.mark.parametrize(("speaker", "told"), [("2", "2"), (None, "")])
def test_a_segment_says_who_speaks(speaker, told):
    sentence = SourceSentence(7, "en", "So.", start_s=1.0, end_s=2.00049, speaker=speaker)
    assert openai._diarized(sentence, "So.") == {
        "type": "transcript.text.segment",
        "id": "seg_7",
        "start": 1.0,
        "end": 2.0,
        "speaker": told,
        "text": "So.",
    }


TWO_CHANNELS = [[0, 256], [-512, -256], [32_512, 0]]


@pytest.mark.parametrize(
    ("width", "data"),
    [
        (1, bytes([128, 129, 126, 127, 255, 128])),
        (2, np.array(TWO_CHANNELS, "<i2").tobytes()),
        (3, b"".join((value * 256 + 7).to_bytes(3, "little", signed=True) for pair in TWO_CHANNELS for value in pair)),
        (4, (np.array(TWO_CHANNELS, "<i4") * 65_536 + 9).tobytes()),
    ],
)
def test_audio_of_wyoming_of_any_width_and_number_of_channels_becomes_16_bit_mono(width, data):
    assert np.frombuffer(wyoming.mono_16_bit(data, width, 2), "<i2").tolist() == [128, -384, 16_256]
    single = np.frombuffer(wyoming.mono_16_bit(data, width, 1), "<i2").tolist()
    assert single == [value for pair in TWO_CHANNELS for value in pair]
    assert wyoming.mono_16_bit(b"", width, 2) == b""
    if width > 2:
        with pytest.raises(ProtocolError, match=f"has {len(data) - 1} bytes; send whole frames, of 1 × {width} bytes"):
            wyoming.mono_16_bit(data[:-1], width, 1)
    with pytest.raises(ProtocolError, match=f"send whole frames, of 2 × {width} bytes"):
        wyoming.mono_16_bit(data[:-width], width, 2)


def test_texts_on_the_way_are_not_finished():
    kinds = {type(event) for event in EVENTS if openai._is_finished(event)}
    assert kinds == {Transcript, SourceSentence, TargetText, Translation, EndOfInput}
    assert not openai._is_finished(SourceText(0, "en", "So", 2))
    assert not openai._is_finished(TargetText(0, "zh", "那", 1))


@pytest.mark.parametrize(
    ("kind", "body", "query", "fields"),
    [
        ("application/json", b'{"q": ["a"]}', b"q=b", {"q": ["a"]}),
        ("application/x-www-form-urlencoded", b"q=a&q=b", b"q=c&source=en", {"q": "b", "source": "en"}),
        ("", b"", b"q=a+b", {"q": "a b"}),
    ],
)
def test_the_fields_of_a_text_are_those_of_its_body_and_its_query(kind, body, query, fields):
    assert libretranslate._parsed(kind, body, query) == fields
    with pytest.raises(ValueError, match="no object"):
        libretranslate._parsed("application/json", b"[]", b"")


FIELDS = {"q": "a", "source": "en", "target": "zh"}


@pytest.mark.parametrize(
    ("fields", "texts"),
    [
        ({}, ["a"]),
        ({"q": ["a", "b"]}, ["a", "b"]),
        ({"q": "a" * 20_000}, ["a" * 20_000]),
        ({"q": ["a"] * 1_000}, ["a"] * 1_000),
        ({"q": ["a" * 10_000, "b" * 10_001]}, "20001 characters exceed the limit of 20000"),
        ({"q": ["a"] * 1_001}, "1001 texts exceed the limit of 1000"),
        ({"q": []}, "missing q parameter"),
        ({"q": ["a", 1]}, "q must be a text"),
        ({"source": 1}, "q must be a text"),
        ({"target": ""}, "missing target parameter"),
    ],
)
def test_a_request_has_so_much_text(fields, texts):
    asked = FIELDS | fields
    if isinstance(texts, str):
        with pytest.raises(libretranslate._RefusedError, match=texts) as refused:
            libretranslate._checked_texts(asked, "source", "target")
        assert refused.value.status == 400
    else:
        assert libretranslate._checked_texts(asked, "source", "target") == texts
