"""A local server that speaks the hub's protocol, as far as huggingface_hub 0.30 to 2.4 asks for a snapshot."""

from __future__ import annotations

import hashlib
import http.server
import json
import threading
from pathlib import Path
from urllib.parse import urlsplit

COMMIT = "c" * 40


class HubServer:
    """Serves repositories: id → {file name: path}. ``url`` goes into HF_ENDPOINT; ``requests`` logs what was asked."""

    def __init__(self, repositories: dict[str, dict[str, Path]]) -> None:
        self.repositories = repositories
        self.requests: list[str] = []
        self.cut_after: int | None = None
        """Bytes after which the next large file's connection breaks, once."""
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
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _answer(self, handler: http.server.BaseHTTPRequestHandler, body: bool) -> None:
        path = urlsplit(handler.path).path
        self.requests.append(f"{handler.command} {path}")
        for name, files in self.repositories.items():
            if path.startswith(f"/api/models/{name}/tree/"):
                listing = [
                    {"type": "file", "path": f, "size": p.stat().st_size, "oid": _sha1(p)} for f, p in files.items()
                ]
                return self._json(handler, listing)
            if path == f"/api/models/{name}" or path.startswith(f"/api/models/{name}/revision/"):
                commit = _commit(path.rpartition("/")[2])
                siblings = [{"rfilename": file} for file in files]
                return self._json(handler, {"id": name, "sha": commit, "siblings": siblings})
            if path.startswith(f"/{name}/resolve/"):
                revision, file = path.removeprefix(f"/{name}/resolve/").split("/", 1)
                if file in files:
                    return self._file(handler, files[file], _commit(revision), body)
        handler.send_response(404)
        handler.send_header("X-Error-Code", "RepoNotFound")
        handler.send_header("Content-Length", "0")
        return handler.end_headers()

    def _json(self, handler: http.server.BaseHTTPRequestHandler, value: object) -> None:
        data = json.dumps(value).encode()
        handler.send_response(200)
        handler.send_header("Content-Type", "application/json")
        handler.send_header("Content-Length", str(len(data)))
        handler.end_headers()
        handler.wfile.write(data)

    def _file(self, handler: http.server.BaseHTTPRequestHandler, path: Path, commit: str, body: bool) -> None:
        data = path.read_bytes()
        start = 0
        if (asked := handler.headers.get("Range", "")).startswith("bytes=") and asked[6:].split("-")[0]:
            start = int(asked[6:].split("-")[0])
        handler.send_response(206 if start else 200)
        handler.send_header("X-Repo-Commit", commit)
        handler.send_header("ETag", f'"{_sha1(path)}"')
        handler.send_header("Accept-Ranges", "bytes")
        handler.send_header("Content-Length", str(len(data) - start))
        if start:
            handler.send_header("Content-Range", f"bytes {start}-{len(data) - 1}/{len(data)}")
        handler.end_headers()
        if not body:
            return
        if self.cut_after is not None and len(data) > self.cut_after:
            handler.wfile.write(data[start : self.cut_after])
            self.cut_after = None
            handler.close_connection = True
            return
        handler.wfile.write(data[start:])


def _commit(revision: str) -> str:
    """A revision that is a commit stands for itself; a branch is at the one commit there is."""
    return revision if len(revision) == 40 else COMMIT


def _sha1(path: Path) -> str:
    return hashlib.sha1(path.read_bytes()).hexdigest()
