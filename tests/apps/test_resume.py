"""A run that is cut anywhere and resumed writes what an uninterrupted run writes, with the options that change text."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline import Models, PipelineConfig
from pipeline.apps import translate
from pipeline.apps.journal import JournalSink
from pipeline.errors import SinkError
from pipeline.events import PipelineEvent
from pipeline.resources import CONFIGS
from tests.conftest import EXAMPLES, examples

pytestmark = [pytest.mark.slow, pytest.mark.once]

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
    """Translates a recording into all formats, and fails at the ``cut_at``-th event of the journal."""

    def __init__(self) -> None:
        self.glossary = False
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
        return translate.run([str(EXAMPLES / "travel.wav"), *options])

    def write(self, sink: JournalSink, event: PipelineEvent) -> None:
        """Replaces ``JournalSink.write``."""
        if self.events == self._cut_at:
            raise SinkError("the disk was full for a moment")
        self.events += 1
        self._write(sink, event)


@pytest.fixture(scope="module", params=[False, True], ids=["packed", "glossary"])
def command(request: pytest.FixtureRequest, demo_models: Models) -> Iterator[Command]:
    found = Command()
    found.glossary = request.param  # with one, segments are recognised one by one

    async def loaded(config: PipelineConfig) -> Models:
        return Models(demo_models.recognizer, dict.fromkeys(config.languages.targets, demo_models.translations["zh"]))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(translate, "_load", loaded)
        patch.setattr(JournalSink, "write", lambda sink, event: found.write(sink, event))
        yield found


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (folder / "out").iterdir()}


@pytest.fixture(scope="module")
def whole(command: Command, tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, bytes], int]:
    """What an uninterrupted run writes, file name → content; and the number of its events."""
    folder = tmp_path_factory.mktemp("whole")
    assert command.run(folder) == 0
    found = files(folder)
    assert len(found) == 9
    for name, term in (("travel.zh.txt", "动车"), ("travel.zh-TW.txt", "動車")):
        assert (term in found[name].decode()) == command.glossary
    assert ("柏**" in found["travel.zh.txt"].decode()) == command.glossary
    assert (
        "A t***** to" in found["travel.srt" if "travel.srt" in found else "travel.zh.srt"].decode()
    ) == command.glossary
    assert ("A ticket" in found["travel.jsonl"].decode()) != command.glossary
    return found, command.events


@settings(max_examples=examples(12))
@given(st.lists(st.floats(0.0, 1.0, exclude_max=True), min_size=1, max_size=3))
def test_a_run_cut_at_any_events_ends_up_with_the_same_files(command, whole, cuts):
    """``cuts``: shares of the events before which the runs are cut, one run after another."""
    expected, events = whole
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for share in cuts:
            assert command.run(folder, int(share * events)) == 1
        assert command.run(folder) == 0
        assert files(folder) == expected
