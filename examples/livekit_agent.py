"""Captions in a LiveKit room: each participant's microphone has a translator of its own; they share the models.

pip install '.[demo,livekit]'
LIVEKIT_URL=wss://… LIVEKIT_API_KEY=… LIVEKIT_API_SECRET=… python examples/livekit_agent.py ROOM
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from contextlib import aclosing

import numpy as np
from livekit import api, rtc

from speech_translate import (
    Models,
    SourceSentence,
    SourceText,
    SpeechTranslator,
    TargetText,
    Translation,
    load_config,
    load_models,
)
from speech_translate.errors import PipelineError

log = logging.getLogger("captions")
config = load_config("demo")

Text = SourceText | TargetText | SourceSentence | Translation


async def captions(room: rtc.Room, participant: rtc.RemoteParticipant, track: rtc.RemoteTrack, models: Models) -> None:
    """Translate one participant's track until it ends. Its texts are sent in the participant's name, as LiveKit's own
    transcriptions are: one replaces that before with the same ``lk.segment_id``; ``language`` and ``name`` go with it."""

    async def listen() -> None:
        async with aclosing(rtc.AudioStream.from_track(track=track, sample_rate=16_000, num_channels=1)) as sound:
            async for each in sound:
                await translator.feed(np.asarray(each.frame.data, np.int16))
        await translator.end()

    async def send(text: Text) -> None:
        final = isinstance(text, SourceSentence | Translation)
        attributes = {
            "lk.segment_id": f"{track.sid}/{text.language}/{text.sentence}",
            "lk.transcription_final": str(final).lower(),
            "lk.transcribed_track_id": track.sid,
            "language": text.language,
            "name": participant.name or participant.identity,
        }
        writer = await room.local_participant.stream_text(
            topic="lk.transcription", sender_identity=participant.identity, attributes=attributes
        )
        await writer.write(text.text)
        await writer.aclose()

    async with SpeechTranslator(config, models, live=True) as translator, asyncio.TaskGroup() as group:
        group.create_task(listen())
        async for event in translator.events():
            newest: dict[tuple[str, int], Text] = {}  # sending takes time: drafts that are no longer shown are left out
            for each in (event, *translator.take_ready()):
                if isinstance(each, Text):
                    newest[each.language, each.sentence] = each
            for text in newest.values():
                await send(text)


async def follow(room: rtc.Room, models: Models) -> None:
    """Follow every microphone in the room until it is left. What fails ends the captions of one track."""
    left, running = asyncio.Event(), set[asyncio.Task[None]]()

    async def of_one(participant: rtc.RemoteParticipant, track: rtc.RemoteTrack) -> None:
        try:
            await captions(room, participant, track, models)
        except* PipelineError as errors:
            log.error("the captions of %s have ended: %s", participant.identity, errors.exceptions[0])

    def subscribed(track: rtc.RemoteTrack, _: rtc.RemoteTrackPublication, participant: rtc.RemoteParticipant) -> None:
        if track.kind == rtc.TrackKind.KIND_AUDIO:
            task = asyncio.create_task(of_one(participant, track))
            running.add(task)
            task.add_done_callback(running.discard)

    room.on("track_subscribed", subscribed)
    room.on("disconnected", lambda reason: left.set())
    grants = api.VideoGrants(room_join=True, room=sys.argv[1], can_publish=False, can_publish_data=True)
    token = api.AccessToken().with_identity("captions").with_kind("agent").with_grants(grants).to_jwt()
    await room.connect(os.environ["LIVEKIT_URL"], token)
    await left.wait()
    await asyncio.gather(*running)


async def main() -> None:
    models = await asyncio.to_thread(load_models, config)
    await follow(rtc.Room(), models)


if __name__ == "__main__":
    if len(sys.argv) != 2 or not {"LIVEKIT_URL", "LIVEKIT_API_KEY", "LIVEKIT_API_SECRET"} <= os.environ.keys():
        sys.exit(__doc__)
    asyncio.run(main())
