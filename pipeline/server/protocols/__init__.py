"""Others' protocols over HTTP, each with a file here: programs made for them work with this server. Wyoming has a port of its own."""

from ...plugins import Table

PROTOCOLS = Table(
    "protocols",
    "protocol",
    {
        name: f"server.protocols.{name}:routes"
        for name in ("openai", "libretranslate", "realtime", "transcription", "whisper_asr")
    },
)
"""Each is a function of the service, the access, and the ``Rate`` for a protocol that counts requests itself until their key is
known; it returns Starlette's routes. Ours are always served, those of other packages when they are named."""
