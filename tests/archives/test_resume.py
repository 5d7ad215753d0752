"""A run that is cut anywhere and resumed writes what an uninterrupted run writes, with the options that change text."""

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline import Models, PipelineConfig
from pipeline.apps import translate
from pipeline.archives.journal import JournalSink
from pipeline.config.resources import CONFIGS
from pipeline.errors import SinkError
from pipeline.events import PipelineEvent
from tests.conftest import EXAMPLES, examples, read_wav, write_wav
from tests.fixtures.scripted.loading import Recognizer

_SAID = "A ticket to Berlin costs forty-five euros. The train to Berlin leaves now. Is it late?"
_TERMS = "source:en\ttarget:zh\ntrain\t动车\nrestaurant\t饭馆儿\nticket\t车票儿\nBerlin\t柏林市\nmuseum\t博物院\n"
_CONFIG = f"""
[languages]
source = "en"
target = ["zh", "zh-TW"]
[asr]
model = "base"
threads = 1
[nmt]
model = "{CONFIGS.parent / "models/demo/nmt-en-zh"}"
[subtitles]
bilingual = true
"""
_GLOSSARY = '[glossary]\nfile = "{0}/terms.tsv"\nprompt_terms = 3\n[captions]\nmasked = "{0}/masked.txt"\n'
_MASKED = "[en]\nticket\n[zh]\n博物院\n柏林市\n"


class Command:
    """Translates the recording into all formats, and fails at the ``cut_at``-th event of the journal."""

    def __init__(self, audio: Path, *, glossary: bool) -> None:
        self._audio, self.glossary = audio, glossary  # with one, segments are recognised one by one
        self.events = 0
        """Journal events of the last run."""
        self._cut_at: int | None = None
        self._write = JournalSink.write

    def run(self, folder: Path, cut_at: int | None = None) -> int:
        """The exit status; the files are in ``folder / "out"``."""
        terms, config = folder / "terms.tsv", folder / "config.toml"
        terms.write_text(_TERMS, "utf-8")
        (folder / "masked.txt").write_text(_MASKED, "utf-8")
        config.write_text(_CONFIG + (_GLOSSARY.format(folder) if self.glossary else ""), "utf-8")
        self._cut_at, self.events = cut_at, 0
        options = ["--format", "srt,vtt,ass,txt,jsonl", "--config", str(config), "--output-dir", str(folder / "out")]
        return translate.run([str(self._audio), *options])

    def write(self, sink: JournalSink, event: PipelineEvent) -> None:
        """Replaces ``JournalSink.write``."""
        if self.events == self._cut_at:
            raise SinkError("the disk was full for a moment")
        self.events += 1
        self._write(sink, event)


@contextmanager
def running(command: Command, models: Callable[[], Models]) -> Iterator[Command]:
    """Let the command use the models, and fail."""

    async def loaded(config: PipelineConfig) -> Models:
        recognizer, translation = (found := models()).recognizer, found.translations["zh"]
        return Models(recognizer, dict.fromkeys(config.languages.targets, translation))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(translate, "_load", loaded)
        patch.setattr(JournalSink, "write", lambda sink, event: command.write(sink, event))
        yield command


@pytest.fixture(scope="module", params=[False, True], ids=["packed", "glossary"])
def command(
    request: pytest.FixtureRequest, demo_models: Models, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Command]:
    """The command with 10 s of speech, in which given words are heard."""
    audio = write_wav(tmp_path_factory.mktemp("audio") / "travel.wav", read_wav(EXAMPLES / "travel.wav")[: 10 * 16_000])
    heard = partial(replace, demo_models)
    with running(Command(audio, glossary=request.param), lambda: heard(recognizer=Recognizer(_SAID.split()))) as found:
        yield found


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (folder / "out").iterdir()}


def uninterrupted(command: Command, folder: Path) -> tuple[dict[str, bytes], int]:
    """What an uninterrupted run writes, file name → content; and the number of its events."""
    assert command.run(folder) == 0
    found = files(folder)
    assert len(found) == 9
    for name, term in (("travel.zh.txt", "动车"), ("travel.zh-TW.txt", "動車")):
        assert (term in found[name].decode()) == command.glossary
    assert ("柏**" in found["travel.zh.txt"].decode()) == command.glossary
    assert ("A t***** to" in found["travel.zh.srt"].decode()) == command.glossary
    assert ("A ticket" in found["travel.jsonl"].decode()) != command.glossary
    return found, command.events


@pytest.fixture(scope="module")
def whole(command: Command, tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, bytes], int]:
    return uninterrupted(command, tmp_path_factory.mktemp("whole"))


@pytest.mark.slow
@settings(max_examples=examples(20))
@given(st.lists(st.floats(0.0, 1.0, exclude_max=True), min_size=1, max_size=3))
def test_a_run_cut_at_any_events_ends_up_with_the_same_files(command, whole, cuts):
    """``cuts``: shares of the events before which the runs are cut, one run after another."""
    check_cuts(command, *whole, cuts)


def check_cuts(command: Command, expected: dict[str, bytes], events: int, cuts: list[float]) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for share in cuts:
            assert command.run(folder, int(share * events)) == 1
        assert command.run(folder) == 0
        assert files(folder) == expected
