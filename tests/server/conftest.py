"""Services for tests, what speakers say to them, and a catalogue of models."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from pipeline import Models, PipelineConfig
from pipeline.config.loading import SharedModels, load_shared
from pipeline.events import Samples
from pipeline.server.languages.offers import Offers
from pipeline.server.limits import ServerLimits
from pipeline.server.service import Service
from tests.commands import loaded_once
from tests.conftest import PHRASES, read_wav, spoken_texts
from tests.fixtures.student import write_student
from tests.server.running import SPOKEN, NewService, Texts, serving, translated, with_hebrew
from tests.store.catalogue_server import Catalogue, serving_catalogue


def speech() -> Samples:
    """Two sentences."""
    return read_wav(PHRASES)[SPOKEN]


@pytest.fixture
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that takes temporary files."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


@pytest.fixture(scope="session")
def new_service(demo_config: PipelineConfig, demo_models: Models) -> NewService:
    return partial(serving, demo_config, demo_models)


@pytest.fixture(scope="module")
def service_of(demo_config: PipelineConfig, demo_models: Models) -> Callable[..., Service]:
    """Makes a service of two languages."""

    def make(record: Path | None = None, **limits: Any) -> Service:
        return Service(*with_hebrew(demo_config, demo_models), replace(ServerLimits(), **limits), record)

    return make


@pytest.fixture(scope="session")
def expected(demo_config: PipelineConfig, demo_models: Models) -> Texts:
    """The text of the recording from a translator in this process."""
    found = asyncio.run(translated(*with_hebrew(demo_config, demo_models), speech()))
    assert [found[0, "en"], found[1, "en"]] == spoken_texts()["phrases"][3:5]
    return found


@pytest.fixture
def catalogue(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Catalogue]:
    """Has random students from English into German and French."""
    with serving_catalogue(tmp_path, monkeypatch) as served:
        write_student(tmp_path / "french", pair="enfr")
        served.add("tiny", "Release", tmp_path / "french", "en-fr")
        yield served


@pytest.fixture(scope="module")
def shared() -> SharedModels:
    return SharedModels()


@pytest.fixture(scope="module")
def offering(demo_config: PipelineConfig, shared: SharedModels) -> NewService:
    """Makes a service of English into Chinese that offers other languages. ``downloads``: it fetches."""
    with loaded_once():
        models = load_shared([demo_config], several_calls=True, shared=shared)[0]

    def make(record: Path | None = None, downloads: bool = True, voices: Any = None, **limits: Any) -> Service:
        offers = Offers([(demo_config, models)], shared, downloads=downloads)
        limits = {"connections_a_minute": 10_000, **limits}
        return Service(demo_config, models, ServerLimits(**limits), record, offers=offers, voices=voices)

    return make
