"""Others' protocols over HTTP, each with a file here: programs made for them work with this server. Wyoming has a port of its own."""

from collections.abc import Callable

from starlette.routing import BaseRoute

from ..access import Access
from ..guard import Rate
from ..service import Service
from . import libretranslate, openai, realtime, transcription, whisper_asr

ROUTES: tuple[Callable[[Service, Access, Rate], list[BaseRoute]], ...] = (
    openai.routes,
    libretranslate.routes,
    realtime.routes,
    transcription.routes,
    whisper_asr.routes,
)
"""``Rate``: for a protocol that counts requests itself, until their key is known."""
