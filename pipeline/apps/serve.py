"""python -m pipeline.serve: speak in one browser, read in many.

Without more options the server is for this machine only. On any other address speakers need a token.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import importlib.util
import logging
import os
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, ExitStack, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..backends import usable_cores
from ..config import SharedModels, load_shared
from ..console import (
    ENDING,
    Parser,
    description_of,
    handled,
    importing,
    some_path,
    some_text,
    tell,
    tell_loading,
    whole_number,
)
from ..errors import UsageError
from ..server import MOST_TARGETS, PROTOCOLS, ServerLimits
from ..store import HIBARI
from .directory import add_directory_arguments, in_directory
from .listening import (
    ShortageError,
    access_of,
    addresses,
    allow_files,
    listening,
    own_tls,
    some_network,
    some_ports,
    some_sessions,
    tls_context,
    wyoming_address,
)
from .options import add_model_arguments, configured_several, naming_demo
from .proposals import add_terms_argument, proposals_of
from .pushes import add_push_argument, open_pushes

if TYPE_CHECKING:
    import uvicorn

    from ..core import Models
    from ..server import Pushes, Service
    from .pushes import Where

_PACKAGES = {
    "starlette": "starlette",
    "uvicorn": "uvicorn",
    "websockets": "websockets",
    "prometheus_client": "prometheus-client",
    "multipart": "python-multipart",
    "segno": "segno",
}
# File descriptors beside those of connections: models, records, and the process's own.
_OTHER_FILES = 200
_FEWEST_CONNECTIONS = 16

_EXAMPLES = (
    "%(prog)s --config demo --config demo-pt-en",
    "%(prog)s --config demo --host 0.0.0.0 --token-file token --allow-host captions.example.org",
    "%(prog)s --source en --target zh,de --max-sessions 4 --record transcripts",
)


def arguments(prog: str = "python -m pipeline.serve") -> Parser:
    parser = Parser(prog=prog, description=description_of(__doc__), examples=_EXAMPLES)
    add_model_arguments(parser, several=True)
    _add_address(parser)
    _add_access(parser)
    _add_sessions(parser)
    _add_languages(parser)
    add_directory_arguments(parser)
    return parser


def _add_address(parser: Parser) -> None:
    address = parser.add_argument_group("address")
    address.add_argument("--host", type=some_text, default="127.0.0.1", metavar="ADDRESS", help="default: 127.0.0.1")
    address.add_argument(
        "--port",
        type=some_ports,
        default=range(8000, 8001),
        metavar="N|N-M",
        help="default: 8000; 0 takes a free one; 8000-8019 the first free one of these",
    )
    address.add_argument(
        "--tls",
        choices=["auto"],
        help="https with a certificate that the server makes itself and keeps; browsers ask once whether to trust it",
    )
    address.add_argument("--tls-cert", type=some_path, metavar="FILE", help="certificate chain (PEM), for https")
    address.add_argument("--tls-key", type=some_path, metavar="FILE", help="its private key")
    address.add_argument(
        "--proxy",
        type=some_network,
        action="append",
        default=[],
        metavar="ADDRESS",
        help="a reverse proxy in front, whose X-Forwarded-For and X-Forwarded-Proto are believed",
    )


def _add_access(parser: Parser) -> None:
    access = parser.add_argument_group("access")
    access.add_argument(
        "--token-file",
        type=some_path,
        metavar="FILE",
        help="a file with the token that speakers need; needed on any other address",
    )
    access.add_argument(
        "--allow-host",
        type=some_text,
        action="append",
        default=[],
        metavar="NAME",
        help="a name under which the server is reached",
    )
    access.add_argument(
        "--allow-origin",
        type=some_text,
        action="append",
        default=[],
        metavar="ORIGIN",
        help="another site whose pages may connect, such as https://example.org",
    )


def _add_sessions(parser: Parser) -> None:
    sessions = parser.add_argument_group("sessions")
    sessions.add_argument(
        "--max-sessions",
        type=some_sessions,
        default=ServerLimits.max_sessions,
        metavar="N",
        help=f"speakers at the same time (default: {ServerLimits.max_sessions}); auto measures how many this machine carries",
    )
    sessions.add_argument(
        "--wyoming",
        type=some_text,
        metavar="URI",
        help="serve Home Assistant's protocol as well, such as tcp://127.0.0.1:10300",
    )
    sessions.add_argument(
        "--protocol",
        choices=PROTOCOLS,
        action="append",
        default=[],
        metavar="NAME",
        help="serve a protocol of an installed package as well (docs/extending.md)",
    )
    sessions.add_argument(
        "--record",
        type=some_path,
        metavar="DIR",
        help="keep the text of each session in this folder (JSONL, SRT, VTT); by default nothing is kept",
    )
    sessions.add_argument(
        "--allow-speakers",
        action="store_true",
        help="speakers may have voices told apart in their sessions (extra speakers; docs/recordings.md)",
    )
    add_push_argument(sessions)
    add_terms_argument(sessions)
    sessions.add_argument(
        "--speak",
        nargs="?",
        const=HIBARI.size,
        type=some_path,
        action="append",
        default=[],
        metavar="VOICE",
        help=f"readers can also listen to translations into the language of this voice ({HIBARI.size} without a value); may be "
        "given again (docs/live.md)",
    )


def _add_languages(parser: Parser) -> None:
    languages = parser.add_argument_group("languages beyond the configured ones")
    languages.add_argument(
        "--allow-downloads",
        action="store_true",
        help="fetch the translators of other languages when a speaker chooses them (20 to 60 MB each); by default, those that "
        "are on this machine can be chosen",
    )
    languages.add_argument(
        "--model-memory",
        type=whole_number(50, 1_000_000),
        default=1_000,
        metavar="MB",
        help="for translators in memory (default: 1000); those that nobody uses are dropped first",
    )
    languages.add_argument(
        "--reader-targets",
        type=whole_number(0, MOST_TARGETS),
        default=ServerLimits.reader_targets,
        metavar="N",
        help=f"languages into which readers may have a session translated, too (default: {ServerLimits.reader_targets})",
    )


def run(argv: list[str], prog: str = "python -m pipeline.serve") -> int:
    options = arguments(prog).parse_args(argv)
    _check_packages(options)
    access = access_of(options)
    context, certificate = (
        own_tls(options, access) if options.tls else (tls_context(options.tls_cert, options.tls_key), "")
    )
    wyoming_at = wyoming_address(options.wyoming) if options.wyoming else None
    configs = configured_several(options)
    with importing():
        import uvicorn

        from ..media import close_all
        from ..server import Offers, ServedLanguages, Service, Settings, check_folder, create_app
    languages = ServedLanguages(tuple(config.languages for config in configs))
    logging.getLogger(Service.__module__.rpartition(".")[0]).setLevel(logging.INFO)  # a line a session
    for name in ("uvicorn.error", "python_multipart"):  # not a line for each malformed request
        logging.getLogger(name).setLevel(logging.ERROR)
    if options.record is not None:
        os.umask(0o077)  # records are for the owner of the process
        check_folder(options.record)
    close_all(open_pushes(options.push, languages.targets, configs[0].subtitles))  # mistakes end the command here
    pushes = _pushes(options.push) if options.push else None
    with ExitStack() as stack:
        listener = stack.enter_context(listening(options.host, *options.port))
        wyoming_listener = stack.enter_context(listening(*wyoming_at)) if wyoming_at else None
        shared = SharedModels(options.model_memory * 1_000_000, fetches=options.allow_downloads)
        speakers = shared.voices_on_demand(configs[0].speakers) if options.allow_speakers else None
        tell_loading(*(config.asr.model for config in configs))
        with naming_demo(options):
            models = load_shared(configs, several_calls=True, shared=shared)
        gc.collect()
        gc.freeze()  # modules and models stay: a collection that looks at their objects takes 30 ms and more
        most = options.max_sessions or measured_sessions(models)
        limits = within_files(ServerLimits(max_sessions=most, reader_targets=options.reader_targets))
        chains = list(zip(configs, models, strict=True))
        offers = Offers(chains, shared, downloads=options.allow_downloads)
        voices = None
        if options.speak:
            from .speaking import voices_for

            voices = voices_for(options.speak, languages.targets, limits.max_viewers)
        service = Service(*chains[0], limits, options.record, chains[1:], offers, pushes, voices)
        service.proposals = proposals_of(options.terms_from, *chains[0])
        service.speakers = speakers
        scheme = "https" if context else "http"
        app = create_app(
            service,
            access,
            shared_at=lambda: next(iter(addresses(listener, scheme)[1:]), None),
            protocols=options.protocol,
        )
        settings = Settings(app, limits, options.proxy, context)
        where = ", from other machines ".join(addresses(listener, scheme))
        lines = [f"serving on {where}  ({languages.described()}; Ctrl-C ends)"]
        if certificate:
            lines.append(certificate)
        if wyoming_listener is not None:
            lines.append(f"serving Wyoming on {options.wyoming}")
        taking_part = in_directory(options, service, addresses(listener, scheme)[-1])
        asyncio.run(_serve_all(uvicorn.Server(settings), service, listener, wyoming_listener, lines, taking_part))
    return 0


def _check_packages(options: argparse.Namespace) -> None:
    needed = _PACKAGES | ({"wyoming": "wyoming"} if options.wyoming else {})
    needed |= {"cryptography": "cryptography"} if options.tls else {}
    missing = [package for module, package in needed.items() if importlib.util.find_spec(module) is None]
    if missing:
        raise UsageError(
            f"the server needs {', '.join(missing)}; install them with pip install 'streaming-speech-translation[server]'"
        )


def _pushes(wanted: Sequence[Where]) -> Pushes:
    from ..server import Pushes

    return Pushes(lambda config: open_pushes(wanted, config.languages.targets, config.subtitles))


def measured_sessions(models: Sequence[Models]) -> int:
    """The number of sessions that this machine carries with these models, which is printed with what it comes from."""
    from ..server import sessions_for, slowest_window_s

    window_s = slowest_window_s([loaded.recognizer for loaded in models])
    sessions = sessions_for(window_s, usable_cores())
    tell(f"--max-sessions auto: {sessions}, since a window of speech takes {window_s:.3f} s")
    return sessions


def within_files(limits: ServerLimits) -> ServerLimits:
    """The limits, with as many connections as this process can open, which it says if these are fewer."""
    files = allow_files(limits.connections + _OTHER_FILES)
    if (most := max(files - _OTHER_FILES, _FEWEST_CONNECTIONS)) >= limits.connections:
        return limits
    tell(
        f"at most {most} connections, as this process may open {files} files; raise the limit (ulimit -n) for {limits.connections}"
    )
    return replace(limits, connections=most)


async def _serve_all(
    server: uvicorn.Server,
    service: Service,
    listener: socket.socket,
    wyoming_listener: socket.socket | None,
    lines: Sequence[str],
    taking_part: AbstractAsyncContextManager[None],
) -> None:
    """Serve, and print ``lines`` once signals are handled: whoever waits for them may send one at once."""
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(taking_part)
        if wyoming_listener is not None:
            from ..server import serving_wyoming

            await stack.enter_async_context(serving_wyoming(service, wyoming_listener))
        await serve(server, service, listener, ready=lambda: tell("\n".join(lines)))


async def serve(
    server: uvicorn.Server,
    service: Service,
    listener: socket.socket,
    stopping: asyncio.Event | None = None,
    ready: Callable[[], None] = lambda: None,
) -> None:
    """Serve until SIGTERM or SIGINT, or until ``stopping`` is set; then let the sessions end first.

    A second signal ends at once. ``ready`` is called when signals are handled and connections are accepted.
    """
    stopping = stopping or asyncio.Event()
    from ..server import sweep

    asyncio.get_running_loop().set_exception_handler(_without_shortages)
    with _signals(server, stopping):
        sweeping = asyncio.create_task(sweep(server, service.limits))
        serving = asyncio.create_task(server._serve([listener]))  # serve() would install signal handlers of its own
        waiting = asyncio.create_task(stopping.wait())
        ready()
        await asyncio.wait({serving, waiting}, return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        if not serving.done():
            draining = asyncio.create_task(service.drain())
            await asyncio.wait({serving, draining}, return_when=asyncio.FIRST_COMPLETED)
            server.should_exit = True
        await serving
        sweeping.cancel()


def _without_shortages(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Log what asyncio reports, but for a shortage, which ``ListeningSocket`` has told."""
    if not isinstance(context.get("exception"), ShortageError):
        loop.default_exception_handler(context)


@contextmanager
def _signals(server: uvicorn.Server, stopping: asyncio.Event) -> Iterator[None]:
    """Set ``stopping`` at the first SIGTERM or SIGINT; make the server end at once at the second."""

    def stop() -> None:
        if stopping.is_set():
            server.should_exit = server.force_exit = True
        else:
            tell("stopping: the sessions in progress end first; once more to end at once")
        stopping.set()

    on_main_thread = threading.current_thread() is threading.main_thread()
    with handled(dict.fromkeys(ENDING if on_main_thread else [], stop)):
        yield
