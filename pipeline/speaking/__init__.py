"""Translations spoken by a small voice. Nothing else imports this package unless a voice is asked for."""

from typing import TYPE_CHECKING

from .._door import door

if TYPE_CHECKING:
    from .device import DeviceOutput
    from .speaker import Speaker, at_rate
    from .track import SpokenTrack
    from .voice import Voice
    from .voices import load_voice
else:
    __all__, __getattr__ = door(
        __name__,
        {
            "device": "DeviceOutput",
            "speaker": "Speaker at_rate",
            "track": "SpokenTrack",
            "voice": "Voice",
            "voices": "load_voice",
        },
    )
