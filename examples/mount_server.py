"""Mount the server into an application of your own: python mount_server.py, then open http://127.0.0.1:8000/captions/.

Any ASGI framework does: with FastAPI, app.mount("/captions", create_app(service, access)) is the same.
"""

import contextlib
import sys
from collections.abc import AsyncIterator

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Mount, Route

from speech_translate import load_config, load_models
from speech_translate.server.access import Access
from speech_translate.server.app import create_app
from speech_translate.server.service import Service

config = load_config("demo")
service = Service(config, load_models(config))  # record=Path(…) keeps the text of each session
# The names under which browsers reach the application, and a token if others than this machine do.
access = Access.of(token=None, names=["localhost"])


@contextlib.asynccontextmanager
async def lifespan(app: Starlette) -> AsyncIterator[None]:
    yield
    # By now, uvicorn has cut the WebSockets; pipeline.apps.serve.serve drains before. What was heard still gets recorded.
    await service.drain()


async def home(request: Request) -> PlainTextResponse:
    return PlainTextResponse("an application of your own\n")


app = Starlette(routes=[Route("/", home), Mount("/captions", create_app(service, access))], lifespan=lifespan)

if __name__ == "__main__":
    uvicorn.run(app, port=int(sys.argv[1]) if sys.argv[1:] else 8000, ws_per_message_deflate=False)
