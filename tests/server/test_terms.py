"""``/v1/terms``: terms that are proposed to speakers. The panel is tested in test_page_glossary.py."""

import asyncio
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from pipeline.apps import serve
from pipeline.errors import UsageError
from pipeline.glossary.candidates import Candidate
from pipeline.server import terms
from pipeline.server.access import Access
from tests.conftest import HANG_S
from tests.glossary.test_candidates import TALK, docx, pdf
from tests.server.running import Running, running, until

OURS = (Candidate("Ferro", 3), Candidate("Marchetti Kowalski", 1))


async def answer(server: Running, document: bytes | None = None, **options: Any) -> httpx.Response:
    async with httpx.AsyncClient(base_url=server.url, timeout=HANG_S) as http:
        if document is None:
            return await http.get("/v1/terms", **options)
        return await http.post("/v1/terms", files={"file": document}, **options)


async def test_the_terms_of_a_document_and_of_the_server_are_proposed(new_service):
    service = new_service()
    service.proposals = OURS
    async with running(service) as server:
        found = (await answer(server, TALK.encode(), data={"language": "en"})).json()["terms"]
        assert {"term": "Berlin", "count": 3} in found
        assert (await answer(server, docx("Anna Weber"), data={"language": "tlh"})).json()["terms"] == [
            {"term": "Anna Weber", "count": 1}
        ]
        assert (await answer(server)).json() == {
            "terms": [{"term": "Ferro", "count": 3}, {"term": "Marchetti Kowalski", "count": 1}]
        }
        refused = await answer(server, b"\0")
        assert (refused.status_code, refused.json()["error"]["code"]) == (400, "bad-document")
        assert len(service.places.recordings) == 0


async def test_a_document_whose_client_leaves_is_read_no_further(new_service, monkeypatch):
    reading = threading.Event()

    def read(path: Path, unwanted: Callable[[], bool]) -> str:
        """Stands for a document that is never read to its end."""
        reading.set()
        while not unwanted():
            time.sleep(0.01)
        raise UsageError("nobody waits for it any more")

    monkeypatch.setattr(terms, "text_of_document", read)
    service = new_service(max_recordings=1)
    async with running(service) as server, httpx.AsyncClient(base_url=server.url, timeout=HANG_S) as http:
        asking = asyncio.create_task(http.post("/v1/terms", files={"file": b"Anna Weber"}))
        await asyncio.to_thread(reading.wait)
        assert (await answer(server, b"Anna Weber")).json()["error"]["code"] == "busy"
        asking.cancel()
        await until(lambda: len(service.places.recordings) == 0)
        monkeypatch.undo()
        assert (await answer(server, b"Dear Anna Weber")).status_code == 200


async def test_a_recordings_place_is_taken_until_the_work_has_ended(new_service, monkeypatch):
    """Else clients that come and go would have any number of documents read at once."""
    reading, end = threading.Event(), threading.Event()

    def propose(*_: object) -> list[Candidate]:
        reading.set()
        end.wait(HANG_S)
        return []

    monkeypatch.setattr(terms, "proposed", propose)
    monkeypatch.setattr(terms, "text_of_document", lambda path, unwanted: "")
    service = new_service(max_recordings=1)
    async with running(service) as server, httpx.AsyncClient(base_url=server.url, timeout=HANG_S) as http:
        asking = asyncio.create_task(http.post("/v1/terms", files={"file": b"Anna Weber"}))
        await asyncio.to_thread(reading.wait)
        asking.cancel()
        await until(lambda: len(server.server.server_state.connections) == 0)
        assert len(service.places.recordings) == 1
        end.set()
        await until(lambda: len(service.places.recordings) == 0)


async def test_who_has_no_token_gets_no_terms(new_service):
    service = new_service()
    service.proposals = OURS
    async with running(service, Access.of("a-token-of-the-speakers")) as server:
        for data in (None, b"Anna Weber"):
            assert (await answer(server, data)).status_code == 401
        headers = {"authorization": "Bearer a-token-of-the-speakers"}
        assert (await answer(server, b"Dear Anna Weber", headers=headers)).status_code == 200


@pytest.mark.slow
def test_a_document_of_the_command_line_that_cannot_be_read_is_named(tmp_path):
    (tmp_path / "torn.pdf").write_bytes(pdf("x")[:40])
    with pytest.raises(UsageError, match=r"--terms-from .*torn\.pdf: it is damaged or protected"):
        serve.run(["--config", "demo-zh", "--port", "0", "--terms-from", str(tmp_path / "torn.pdf")])
