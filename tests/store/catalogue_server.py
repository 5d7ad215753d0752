"""Mozilla's catalogue of translators on this machine, with a random student from English into German."""

import gzip
import hashlib
import http.server
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from pipeline.store import students, url
from pipeline.store.firefox import VARIABLE
from tests.fixtures.student import write_student


class Catalogue:
    """Serves models.json and packed files, each by its path."""

    def __init__(self, folder: Path) -> None:
        write_student(folder, pair="ende")
        self.models: dict[str, Any] = {}
        self.files: dict[str, bytes] = {}
        self.cut: list[int] = []
        """Bytes after which each answer in turn breaks off."""
        self.ranges: list[str | None] = []
        self.asked: list[str] = []
        self.came = threading.Condition()
        self.answer: bytes | None = None
        """In place of models.json."""
        self.open = threading.Event()
        """Until it is set, each file stays without its last byte."""
        self.open.set()
        self.add("base-memory", "Release", folder)
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                with outer.came:
                    outer.asked.append(self.path)
                    outer.came.notify_all()
                content = outer.answer if self.path == "/models.json" and outer.answer else outer.content(self.path)
                if content is None:
                    self.send_error(404)
                    return
                begin = 0
                if wanted := self.headers.get("Range"):
                    begin = int(wanted.removeprefix("bytes=").removesuffix("-"))
                if self.path != "/models.json":
                    outer.ranges.append(wanted)
                self.send_response(206 if begin else 200)
                self.send_header("Content-Length", str(len(content) - begin))
                self.end_headers()
                end = begin + outer.cut.pop(0) if outer.cut and self.path != "/models.json" else None
                self.wfile.write(content[begin:end][:-1])
                if self.path != "/models.json":
                    outer.open.wait()
                self.wfile.write(content[begin:end][-1:])

            def log_message(self, *_: object) -> None:
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.base = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()

    def add(self, architecture: str, status: str | None, folder: Path, pair: str = "en-de") -> None:
        files: dict[str, Any] = {}
        for path in sorted(folder.iterdir()):
            place = f"models/{architecture}/{path.name}.gz"
            self.files[f"/{place}"] = gzip.compress(path.read_bytes())
            kind = {"model": "model", "vocab": "vocab", "lex": "lexicalShortlist"}[path.name.split(".")[0]]
            files[kind] = {"path": place}
            if kind == "model":
                content = path.read_bytes()
                files[kind] |= {
                    "uncompressedSize": len(content),
                    "uncompressedHash": hashlib.sha256(content).hexdigest(),
                }
        self.models.setdefault(pair, []).append({"architecture": architecture, "releaseStatus": status, "files": files})

    def asked_for(self, path: str) -> None:
        """Wait until somebody asks for a path."""
        with self.came:
            self.came.wait_for(lambda: path in self.asked)

    def content(self, path: str) -> bytes | None:
        if path == "/models.json":
            return json.dumps({"baseUrl": self.base, "models": self.models}).encode()
        return self.files.get(path)


@contextmanager
def serving_catalogue(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Catalogue]:
    """A catalogue, whose models go into a folder of the test's own."""
    served = Catalogue(tmp_path / "served")
    monkeypatch.setenv(VARIABLE, f"{served.base}/models.json")
    monkeypatch.setattr(students, "assets", lambda: tmp_path / "assets")
    monkeypatch.setattr(url.time, "sleep", lambda _: None)
    try:
        yield served
    finally:
        served.open.set()
        served.server.shutdown()
        served.server.server_close()
