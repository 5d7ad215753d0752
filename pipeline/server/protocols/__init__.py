"""Others' protocols over HTTP, each with a file here: programs made for them work with this server. Wyoming has a port of its own."""

from ...plugins import Table
from ..deferred import Paths

PATH, DETECTION = "/translate", "/detect"
"""Of LibreTranslate's interface, whose requests ``libretranslate`` counts itself."""
_POST, _GET, _WEBSOCKET = ("POST",), ("GET",), ()
PATHS: dict[str, Paths] = {
    "openai": {
        "/v1/audio/transcriptions": _POST,
        "/v1/audio/translations": _POST,
        "/v1/models": _GET,
        "/v1/models/{model}": _GET,
    },
    "libretranslate": {"/languages": _GET, "/health": _GET, "/frontend/settings": _GET, PATH: _POST, DETECTION: _POST},
    "realtime": {"/v1/realtime/translations": _WEBSOCKET},
    "transcription": {"/v1/realtime": _WEBSOCKET},
    "whisper_asr": {"/asr": _POST, "/detect-language": _POST},
}
"""Those of the routes of each of ours, which are loaded when one of them is asked for."""
PROTOCOLS = Table("protocols", "protocol", {name: f"server.protocols.{name}:routes" for name in PATHS})
"""Each is a function of the service, the access, and the ``Rate`` for a protocol that counts requests itself until their key is
known; it returns Starlette's routes. Ours are always served, those of other packages when they are named."""
