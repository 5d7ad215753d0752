"""The LiveKit agent: captions of each participant, by language and with names. The room is a fake; frames are LiveKit's."""

import asyncio
from collections import defaultdict
from types import SimpleNamespace

import pytest
from livekit import api, rtc

from examples import livekit_agent
from pipeline.bench.words import edits, scored_units
from pipeline.errors import PipelineError
from tests.conftest import PHRASES, read_wav, spoken_texts

SPEECH = read_wav(PHRASES)[: 7 * 16_000]  # two sentences
FRAME = 160


class Room:
    """Calls back when a track is subscribed, and keeps the text streams that are sent: by stream id, each with attributes."""

    def __init__(self):
        self.callbacks, self.sent = {}, []
        self.local_participant = self

    def on(self, event, callback):
        self.callbacks[event] = callback

    async def stream_text(self, *, topic, sender_identity, attributes):
        assert topic == "lk.transcription"
        text = []
        self.sent.append((sender_identity, attributes, text))

        async def write(part):
            text.append(part)

        async def aclose(): ...

        return SimpleNamespace(write=write, aclose=aclose)


class Sound:
    """A track's frames as the SDK gives them. It ends, or fails, after them."""

    def __init__(self, track):
        self.track = track
        self.track.open = True

    @classmethod
    def from_track(cls, *, track, sample_rate, num_channels):
        assert (sample_rate, num_channels) == (16_000, 1)
        return cls(track)

    async def __aiter__(self):
        for start in range(0, len(SPEECH), FRAME):
            part = SPEECH[start : start + FRAME]
            yield rtc.AudioFrameEvent(rtc.AudioFrame(part.tobytes(), 16_000, 1, len(part)))
            await asyncio.sleep(0)
            if self.track.fails and start > len(SPEECH) / 2:
                raise PipelineError("the connection was lost")

    async def aclose(self):
        self.track.open = False


@pytest.mark.slow
async def test_each_participant_has_captions_by_language_and_with_a_name(demo_models, monkeypatch, caplog):
    monkeypatch.setattr(rtc, "AudioStream", Sound)
    monkeypatch.setattr(livekit_agent, "config", livekit_agent.load_config("demo-zh"))
    for name, value in (("URL", "wss://rooms.example.org"), ("API_KEY", "key"), ("API_SECRET", "a secret " * 4)):
        monkeypatch.setenv(f"LIVEKIT_{name}", value)
    monkeypatch.setattr("sys.argv", ["livekit_agent.py", "lobby"])
    room, kind = Room(), rtc.TrackKind.KIND_AUDIO
    tracks = [SimpleNamespace(sid=sid, kind=kind, fails=sid == "TR_c") for sid in ("TR_a", "TR_b", "TR_c")]
    tracks.append(SimpleNamespace(sid="TR_v", kind=rtc.TrackKind.KIND_VIDEO))
    names = [("ana", "Ana"), ("ben", ""), ("cleo", "Cleo"), ("ana", "Ana")]

    async def connect(url, token):
        assert url == "wss://rooms.example.org"
        claims = api.TokenVerifier().verify(token)
        assert (claims.identity, claims.video.room) == ("captions", "lobby")
        for track, (identity, name) in zip(tracks, names, strict=True):
            room.callbacks["track_subscribed"](track, None, SimpleNamespace(identity=identity, name=name))
        room.callbacks["disconnected"]("the room was closed")

    room.connect = connect
    await livekit_agent.follow(room, demo_models)

    final = defaultdict(list)
    for identity, attributes, text in room.sent:
        assert attributes["lk.segment_id"].startswith(attributes["lk.transcribed_track_id"])
        if attributes["lk.transcription_final"] == "true":
            final[identity, attributes["name"], attributes["language"]].append("".join(text))
    for speaker in (("ana", "Ana"), ("ben", "ben")):
        heard = [scored_units(text, "en") for text in final[*speaker, "en"]]
        expected = [scored_units(text, "en") for text in spoken_texts()["phrases"][:2]]
        assert sum(edits(a, b) for a, b in zip(heard, expected, strict=True)) <= 2  # "7 o'clock"
        assert len(final[*speaker, "zh"]) == 2
    assert {attributes["lk.transcribed_track_id"] for _, attributes, _ in room.sent} <= {"TR_a", "TR_b", "TR_c"}
    assert any(attributes["lk.transcription_final"] == "false" for _, attributes, _ in room.sent)
    assert not any(track.open for track in tracks[:3])
    assert "the captions of cleo have ended: the connection was lost" in caplog.text  # those of others go on
