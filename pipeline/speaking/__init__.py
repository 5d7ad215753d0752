"""Translations spoken by a small voice. Nothing else imports this package unless a voice is asked for."""

from typing import TYPE_CHECKING

from .._door import door

if TYPE_CHECKING:
    from .device import *
    from .speaker import *
    from .track import *
    from .voice import *
    from .voices import *
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
