"""Which translators stay in memory, by stand-ins for models: what they translate is no part of these rules."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.backends.nmt_options import NmtConfig
from pipeline.config import loading
from pipeline.config.loading import SharedModels
from pipeline.errors import MemoryLimitError


class Model:
    """Stands for a loaded translator."""

    attends, languages = True, ("en", "de")


@pytest.fixture
def shared(monkeypatch: pytest.MonkeyPatch) -> SharedModels:
    """Has room for two translators, each of which takes 200 bytes."""
    monkeypatch.setattr(loading.MarianModel, "load", lambda directory, nmt: Model())
    return SharedModels(limit_bytes=450)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The directory of every model, with 100 bytes in two files."""
    for place, size in ((tmp_path / "model.bin", 60), (tmp_path / "more" / "vocab.spm", 40)):
        place.parent.mkdir(exist_ok=True)
        place.write_bytes(bytes(size))
    return tmp_path


def loaded(shared: SharedModels, folder: Path, name: str) -> Model:
    key = NmtConfig(model=name)
    shared.make_room({key: folder})
    return shared.translator(key, key, folder)  # type: ignore[return-value]


def in_memory(shared: SharedModels) -> set[str]:
    return {key.model for key in shared._translators}


def test_a_translator_that_nobody_uses_stays_until_another_one_needs_its_room(shared, folder):
    first = loaded(shared, folder, "a")
    assert loaded(shared, folder, "a") is first
    del first
    loaded(shared, folder, "b")
    assert (in_memory(shared), shared.used_bytes) == ({"a", "b"}, 400)
    loaded(shared, folder, "a")  # used again: the other one was not used for longer
    loaded(shared, folder, "c")
    assert in_memory(shared) == {"a", "c"}
    loaded(shared, folder, "c")
    loaded(shared, folder, "d")
    assert in_memory(shared) == {"c", "d"}


def test_translators_in_use_are_not_dropped(shared, folder):
    in_use = [loaded(shared, folder, "a"), loaded(shared, folder, "b")]
    with pytest.raises(MemoryLimitError, match=r"would take .* and .* are allowed \(--model-memory\)"):
        loaded(shared, folder, "c")
    del in_use[0]
    loaded(shared, folder, "c")
    assert in_memory(shared) == {"b", "c"}


def test_what_is_asked_for_is_not_dropped_for_itself(shared, folder):
    loaded(shared, folder, "a")
    keys = [NmtConfig(model=name) for name in ("a", "b")]
    shared.make_room(dict.fromkeys(keys, folder))
    assert in_memory(shared) == {"a"}
    with pytest.raises(MemoryLimitError):
        shared.make_room(dict.fromkeys([*keys, NmtConfig(model="c")], folder))
    assert in_memory(shared) == {"a"}


def test_a_detector_of_sounds_is_loaded_once_and_only_where_it_is_wanted(monkeypatch):
    from pipeline.backends.vad import sounds
    from pipeline.core.run.options import SoundOptions

    monkeypatch.setattr(sounds, "FireRedDetector", list)
    shared = SharedModels()
    assert shared.sound_detector(SoundOptions()) is None
    assert shared._sounds is None
    assert (
        shared.sound_detector(SoundOptions(captions=True)) is shared.sound_detector(SoundOptions(captions=True)) == []
    )
    assert shared.sound_detector(SoundOptions()) is None


def test_a_model_that_tells_voices_apart_is_loaded_once_and_only_where_it_is_wanted(monkeypatch, tmp_path):
    from pipeline.backends import voices
    from pipeline.core.run.options import SpeakerOptions

    monkeypatch.setattr(voices, "voice_model_folder", lambda options: tmp_path / (options.model or "default"))
    monkeypatch.setattr(voices, "VoiceModel", lambda path: path)
    shared = SharedModels()
    assert shared.voice_model(SpeakerOptions()) is None
    on_demand = shared.voices_on_demand(SpeakerOptions())
    assert shared._voices == {}
    assert on_demand() is on_demand() is shared.voice_model(SpeakerOptions(auto=True))
    assert shared.voice_model(SpeakerOptions(auto=True, model="other")).args == (tmp_path / "other",)
