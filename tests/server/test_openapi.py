"""The description of the HTTP interface is true: schemathesis finds nothing, and results have the form that it says."""

import asyncio
import re
import subprocess
import sys
from typing import Any

import pytest
import requests
import schemathesis
from starlette.routing import Route

from pipeline.server.access import Access
from pipeline.server.app import create_app
from pipeline.server.languages.served import ServedLanguages
from pipeline.server.openapi import description
from tests.conftest import PHRASES
from tests.server.running import running

TOKEN = "0123456789abcdef"
PAGES = re.compile(r"/|/(view|overlay)/.*")


@pytest.mark.slow
def test_schemathesis_finds_nothing(new_service, tmp_path):
    async def work() -> tuple[int | None, str]:
        async with running(new_service(), Access.of(TOKEN)) as server:
            # Examples of a file are arbitrary bytes, which the server rightly does not accept as audio.
            tester = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "schemathesis.cli", "run", f"http://127.0.0.1:{server.port}/openapi.json"),
                *("--exclude-checks=positive_data_acceptance", "--phases=coverage,fuzzing", "--max-examples=5"),
                *("--seed=1", "--generation-database=none", "--no-color", f"--header=Authorization:Bearer {TOKEN}"),
                cwd=tmp_path,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
            )
            printed, _ = await tester.communicate()
            return tester.returncode, printed.decode()

    status, printed = asyncio.run(work())
    assert status == 0, printed
    assert re.search(r"Tested: +21\b", printed), printed  # all but the description itself, at its first address


def test_every_route_is_described(new_service, demo_config, demo_models):
    routes = create_app(new_service()).routes
    paths = {route.path for route in routes if isinstance(route, Route) and not PAGES.fullmatch(route.path)}
    assert set(description(ServedLanguages((demo_config.languages,)), Access())["paths"]) == paths


def check(operation: Any, answer: requests.Response) -> None:
    """Check an answer against the description."""
    assert str(answer.status_code) in operation.definition.raw["responses"]
    operation.validate_response(answer)


@pytest.mark.slow
async def test_results_have_the_described_form(new_service, demo_config, demo_models):
    access = Access.of(TOKEN)
    described = schemathesis.openapi.from_dict(description(ServedLanguages((demo_config.languages,)), access))
    async with running(new_service(), access) as server:
        audio = PHRASES.read_bytes()[: 5 * 32_000]
        for form in (
            {"response_format": "verbose_json", "timestamp_granularities[]": "word"},
            {"response_format": "vtt"},
            {"stream": "true"},
        ):
            address, token = f"{server.address}/audio/transcriptions", {"authorization": f"Bearer {TOKEN}"}
            answer = await asyncio.to_thread(requests.post, address, data=form, files={"file": audio}, headers=token)
            assert answer.status_code == 200
            check(described["/v1/audio/transcriptions"]["POST"], answer)


@pytest.mark.slow
async def test_refusals_have_the_described_form(new_service, demo_config, demo_models):
    access = Access.of(TOKEN)
    described = schemathesis.openapi.from_dict(description(ServedLanguages((demo_config.languages,)), access))
    for limits, token, status in (
        ({"upload_bytes": 1_000}, TOKEN, 413),
        ({"upload_s": 0.0}, TOKEN, 408),
        ({"max_recordings": 0}, TOKEN, 503),
        ({}, "wrong", 401),
    ):
        async with running(new_service(**limits), access) as server:
            address, headers = f"{server.address}/audio/translations", {"authorization": f"Bearer {token}"}
            answer = await asyncio.to_thread(
                requests.post, address, files={"file": PHRASES.read_bytes()}, headers=headers
            )
            assert answer.status_code == status
            check(described["/v1/audio/translations"]["POST"], answer)


async def test_the_checks_before_any_other_answer_as_described(new_service, demo_config, demo_models):
    described = schemathesis.openapi.from_dict(description(ServedLanguages((demo_config.languages,)), Access()))
    path = "/v1/audio/transcriptions"
    service = new_service(connections_a_minute=0)
    async with running(service) as server:
        for headers, status in (({"host": "evil.example"}, 421), ({"origin": "http://evil.example"}, 403), ({}, 429)):
            address = f"{server.address}/audio/transcriptions"
            answer = await asyncio.to_thread(requests.post, address, headers=headers)
            assert answer.status_code == status
            check(described[path]["POST"], answer)
        service.places.draining = True
        answer = await asyncio.to_thread(requests.get, f"http://127.0.0.1:{server.port}/readyz")
        assert answer.status_code == 503
        check(described["/readyz"]["GET"], answer)
