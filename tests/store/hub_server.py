"""A local server with the hub's protocol, as used by huggingface_hub 0.30 to 2.4, its faults, and client programs."""

import contextlib
import hashlib
import http.server
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from huggingface_hub import constants

from tests.commands import hub_constants, run
from tests.conftest import HANG_S

COMMIT, NEXT_COMMIT = "c" * 40, "e" * 40
# Patterns of the hub's .gitattributes for large file storage, which serves files from another host.
LARGE = (".bin", ".onnx", "_data", ".data", ".spm", ".safetensors")


@dataclass
class Faults:
    """Faults by file name."""

    cut: dict[str, list[int]] = field(default_factory=dict)
    """Bytes after which each connection in turn breaks; later connections work."""
    hold: dict[str, int] = field(default_factory=dict)
    """Bytes after which the server stalls; ``HubServer.held`` is set then, until the server closes."""
    damaged: set[str] = field(default_factory=set)
    """Files sent with a changed last byte."""
    listed_sizes: dict[str, int] = field(default_factory=dict)
    """A wrong size in the listing."""
    missing: set[str] = field(default_factory=set)
    """Files that are listed but missing."""
    deaf: set[str] = field(default_factory=set)
    """Files sent from the beginning, whatever range is requested."""
    no_hashes: bool = False
    """The listing has only names."""
    status: int = 0
    """HTTP status of every response."""
    new_commit_after: str = ""
    """After a request for this file, the branches are at ``NEXT_COMMIT``."""


class HubServer:
    """Serves repositories: id → {file name: path}. ``url`` goes into HF_ENDPOINT."""

    def __init__(self, repositories: dict[str, dict[str, Path]]) -> None:
        self.repositories = repositories
        self.faults = Faults()
        self.requests: list[str] = []
        """Method and path of each request."""
        self.ranges: list[tuple[str, int]] = []
        """Name and first byte of each request for a file's content."""
        self.held = threading.Event()
        self._closed = threading.Event()
        self._commit = COMMIT
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_HEAD(self) -> None:
                outer._answer(self, body=False)

            def do_GET(self) -> None:
                outer._answer(self, body=True)

            def log_message(self, *args: object) -> None:
                return

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        # The default poll interval is half a second.
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def close(self) -> None:
        self._closed.set()
        self._server.shutdown()
        self._server.server_close()

    def _answer(self, handler: http.server.BaseHTTPRequestHandler, body: bool) -> None:
        path = urlsplit(handler.path).path
        self.requests.append(f"{handler.command} {path}")
        if self.faults.status:
            return self._refuse(handler, self.faults.status, "")
        for name, files in self.repositories.items():
            if path.startswith(f"/api/models/{name}/tree/"):
                return self._json(handler, [self._tree_entry(file, files[file]) for file in files])
            if path == f"/api/models/{name}" or path.startswith(f"/api/models/{name}/revision/"):
                if path.endswith("/nowhere"):
                    return self._refuse(handler, 404, "RevisionNotFound")
                siblings = [self._sibling(file, files[file]) for file in files]
                return self._json(
                    handler, {"id": name, "sha": self._commit_of(path.rpartition("/")[2]), "siblings": siblings}
                )
            if path.startswith(f"/{name}/resolve/"):
                revision, file = path.removeprefix(f"/{name}/resolve/").split("/", 1)
                if file in files and file not in self.faults.missing:
                    return self._file(handler, file, files[file], self._commit_of(revision), body)
                return self._refuse(handler, 404, "EntryNotFound")
            if path.startswith(f"/storage/{name}/"):
                file = path.removeprefix(f"/storage/{name}/")
                return self._content(handler, file, files[file], "", body)
        return self._refuse(handler, 404, "RepoNotFound")

    def _sibling(self, file: str, path: Path) -> dict[str, object]:
        if self.faults.no_hashes:
            return {"rfilename": file}
        size = self.faults.listed_sizes.get(file, path.stat().st_size)
        large = {"lfs": {"sha256": _sha256(path), "size": size, "pointerSize": 134}} if file.endswith(LARGE) else {}
        return {"rfilename": file, "size": size, "blobId": _git_sha1(path), **large}

    def _tree_entry(self, file: str, path: Path) -> dict[str, object]:
        size = path.stat().st_size
        large = {"lfs": {"oid": _sha256(path), "size": size, "pointerSize": 134}} if file.endswith(LARGE) else {}
        return {"type": "file", "path": file, "size": size, "oid": _git_sha1(path), **large}

    def _commit_of(self, revision: str) -> str:
        """The commit of a revision: itself if it is one; all branches are at the same commit."""
        return revision if len(revision) == 40 else self._commit

    def _refuse(self, handler: http.server.BaseHTTPRequestHandler, status: int, code: str) -> None:
        handler.send_response(status)
        handler.send_header("X-Error-Code", code)
        handler.send_header("Content-Length", "0")
        handler.end_headers()

    def _json(self, handler: http.server.BaseHTTPRequestHandler, value: object) -> None:
        data = json.dumps(value).encode()
        handler.send_response(200)
        handler.send_header("Content-Type", "application/json")
        handler.send_header("Content-Length", str(len(data)))
        handler.end_headers()
        handler.wfile.write(data)

    def _file(
        self, handler: http.server.BaseHTTPRequestHandler, file: str, path: Path, commit: str, body: bool
    ) -> None:
        if not file.endswith(LARGE):
            return self._content(handler, file, path, commit, body)
        name = next(name for name, files in self.repositories.items() if files.get(file) == path)
        handler.send_response(302)
        # Another host, like the real hub's storage.
        handler.send_header("Location", f"http://localhost:{self._server.server_port}/storage/{name}/{file}")
        handler.send_header("X-Repo-Commit", commit)
        handler.send_header("X-Linked-Size", str(path.stat().st_size))
        handler.send_header("X-Linked-ETag", f'"{_sha256(path)}"')
        handler.send_header("Content-Length", "0")
        return handler.end_headers()

    def _content(
        self, handler: http.server.BaseHTTPRequestHandler, file: str, path: Path, commit: str, body: bool
    ) -> None:
        data = path.read_bytes()
        if file in self.faults.damaged:
            data = data[:-1] + bytes([data[-1] ^ 1])
        asked = handler.headers.get("Range", "").removeprefix("bytes=").split("-")[0]
        start = int(asked) if asked and file not in self.faults.deaf else 0
        if body:
            self.ranges.append((file, int(asked or 0)))
            if file == self.faults.new_commit_after:
                self._commit = NEXT_COMMIT
        if start >= len(data):
            return self._refuse(handler, 416, "")
        handler.send_response(206 if start else 200)
        handler.send_header("X-Repo-Commit", commit)
        handler.send_header("ETag", f'"{_git_sha1(path)}"')
        handler.send_header("Accept-Ranges", "bytes")
        handler.send_header("Content-Length", str(len(data) - start))
        if start:
            handler.send_header("Content-Range", f"bytes {start}-{len(data) - 1}/{len(data)}")
        handler.end_headers()
        if not body:
            return None
        if self.faults.cut.get(file):
            handler.wfile.write(data[start : start + self.faults.cut[file].pop(0)])
            handler.close_connection = True
            return None
        if file in self.faults.hold:
            handler.wfile.write(data[start : start + self.faults.hold[file]])
            self.held.set()
            self._closed.wait()
            return None
        handler.wfile.write(data[start:])
        return None


def environment(home: Path, url: str, **more: str) -> dict[str, str]:
    """The environment of a program that uses only the hub at ``url`` and keeps its cache in ``home``."""
    return os.environ | {"HF_HOME": str(home), "HF_ENDPOINT": url, "HF_HUB_DISABLE_XET": "1"} | more


def python(home: Path, url: str, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        env=environment(home, url, **more), capture_output=True, text=True, encoding="utf-8", timeout=HANG_S, check=False,
    )  # fmt: skip


@contextlib.contextmanager
def used(home: Path, url: str, **more: str) -> Iterator[None]:
    """Let this process use only the hub at ``url`` and keep its cache in ``home``, as ``environment`` does others."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in hub_constants({"HF_HOME": str(home), "HF_ENDPOINT": url, **more}).items():
            patch.setattr(constants, name, value)
        for name, value in more.items():
            patch.setenv(name, value)
        yield


def models(home: Path, url: str, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    """Run ``python -m pipeline.models`` in this process."""
    return command(home, url, "models", *arguments, **more)


def command(
    home: Path, url: str, module: str, *arguments: str, stdin: bytes = b"", **more: str
) -> subprocess.CompletedProcess[str]:
    """Run a command in this process."""
    done = run(module, *arguments, stdin=stdin, HF_HOME=str(home), HF_ENDPOINT=url, **more)
    return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())


def failed(done: subprocess.CompletedProcess[str], status: int = 1) -> str:
    """The one-line error of a failed run."""
    assert done.returncode == status, done.stderr
    assert "Traceback" not in done.stderr
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    return line


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _git_sha1(path: Path) -> str:
    data = path.read_bytes()
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()
