"""The plan for a recording in several languages: which files to write, and what an interrupted run began."""

import dataclasses
import json
import shutil
from pathlib import Path

import pytest

from pipeline import PipelineConfig, load_config
from pipeline.archives.journal import header
from pipeline.archives.outputs import JOURNAL_SUFFIX, language_tags
from pipeline.archives.recordings import Begin, Job, begin, labels_of, plan
from pipeline.errors import UsageError
from tests.conftest import PHRASES

TARGETS = ("zh", "de")


@pytest.fixture
def config(demo_config: PipelineConfig) -> PipelineConfig:
    languages = dataclasses.replace(demo_config.languages, targets=TARGETS)
    return dataclasses.replace(demo_config, languages=languages)


def planned(folder: Path, kinds: str = "srt,jsonl", targets: tuple[str, ...] = TARGETS) -> Job:
    recording = folder / "talk.wav"
    if not recording.exists():
        shutil.copy(PHRASES, recording)
    (job,) = plan([recording], kinds.split(","), None, language_tags(targets, always=False))
    return job


def begun(job: Job, config: PipelineConfig, *outputs: tuple[str, str]) -> None:
    """Leave the journal of an interrupted run that began these outputs."""
    job.journal.write_text(json.dumps(header(job.recording, config, labels_of(job, outputs))) + "\n", "utf-8")


def test_a_recording_has_a_file_per_language_and_one_journal(tmp_path):
    job = planned(tmp_path)
    assert {output: path.name for output, path in job.outputs.items()} == {
        ("srt", "zh"): "talk.zh.srt",
        ("srt", "de"): "talk.de.srt",
        ("jsonl", ""): "talk.jsonl",
    }
    assert job.journal == tmp_path / f"talk{JOURNAL_SUFFIX}"
    (tmp_path / "talk.de.mp3").touch()  # talk.de.srt could belong to it
    assert planned(tmp_path).outputs["srt", "de"].name == "talk.wav.de.srt"


def test_only_languages_without_subtitles_are_written(tmp_path, config):
    job = planned(tmp_path)
    assert begin(job, config, overwrite=False) == (Begin.NEW, job.outputs)
    for name in ("talk.zh.srt", "talk.jsonl"):
        (tmp_path / name).write_text('{"type": "delta"}')
    assert begin(job, config, overwrite=False) == (Begin.NEW, {("srt", "de"): tmp_path / "talk.de.srt"})
    assert begin(job, config, overwrite=True) == (Begin.NEW, job.outputs)
    (tmp_path / "talk.de.srt").write_text("1")
    assert begin(job, config, overwrite=False) == (Begin.SKIP, {})


def test_a_run_resumes_the_languages_that_it_began(tmp_path, config):
    job = planned(tmp_path, "srt")
    (tmp_path / "talk.zh.srt").write_text("from before")
    begun(job, config, ("srt", "de"), ("vtt", "de"))
    outputs = {("srt", "de"): tmp_path / "talk.de.srt", ("vtt", "de"): tmp_path / "talk.de.vtt"}
    assert begin(job, config, overwrite=False) == (Begin.RESUME, outputs)
    (tmp_path / "talk.zh.srt").unlink()
    with pytest.raises(
        UsageError, match=r"was begun for de\.srt and de\.vtt alone; finish it with the same version and"
    ):
        begin(job, config, overwrite=False)
    with pytest.raises(UsageError, match=r"was begun with --format srt,vtt; finish it"):
        begin(planned(tmp_path, "txt"), config, overwrite=False)


def test_a_run_with_other_targets_or_options_of_one_is_not_resumed(tmp_path, config):
    job = planned(tmp_path, "srt")
    begun(job, config, *job.outputs)
    assert begin(job, config, overwrite=False)[0] is Begin.RESUME
    german = dataclasses.replace(config.nmt, beam_size=4)
    with pytest.raises(UsageError, match=r"begun with nmt\.de\.beam_size = 1, which is now 4"):
        begin(job, config.with_nmt("de", german), overwrite=False)
    faster = dataclasses.replace(config.nmt, threads=2)  # changes the speed, not the text
    assert begin(job, config.with_nmt("de", faster), overwrite=False)[0] is Begin.RESUME
    one = load_config("demo-zh")
    with pytest.raises(UsageError, match=r"begun with languages\.target = \['zh', 'de'\], which is now \['zh'\]"):
        begin(planned(tmp_path, "srt", ("zh",)), one, overwrite=False)


CUE = "1\n00:00:00,000 --> 00:00:01,000\nYes.\n"


@pytest.mark.parametrize(
    ("zh", "de", "missing"),
    [
        (CUE, CUE, []),
        (CUE, "", []),  # nothing was translated into it
        ("", "", ["talk.zh.srt", "talk.de.srt"]),
        (CUE, None, ["talk.de.srt"]),
        ("", None, ["talk.zh.srt", "talk.de.srt"]),
    ],
)
def test_a_file_without_a_cue_counts_where_another_language_has_one(zh, de, missing, tmp_path):
    job = planned(tmp_path, "srt")
    for name, text in (("talk.zh.srt", zh), ("talk.de.srt", de)):
        if text is not None:
            (tmp_path / name).write_text(text)
    assert [path.name for path in job.missing().values()] == missing


def test_what_replaces_all_replaces_what_an_interrupted_run_began_too(tmp_path, config):
    job = planned(tmp_path, "srt")
    begun(job, config, ("vtt", "de"))
    outputs = job.outputs | {("vtt", "de"): tmp_path / "talk.de.vtt"}
    assert begin(job, config, overwrite=True) == (Begin.NEW, outputs)


def test_a_run_with_other_languages_that_began_the_same_files_is_named(tmp_path, config):
    several, one = planned(tmp_path, "srt"), dataclasses.replace(config.languages, targets=("zh",))
    alone_config = dataclasses.replace(config, languages=one)
    (alone,) = plan([several.recording], ["srt"], None, language_tags(("zh",), always=True))
    begun(alone, alone_config, ("srt", "zh"))
    assert begin(alone, alone_config, overwrite=False)[0] is Begin.RESUME
    with pytest.raises(UsageError, match="talk.zh.unfinished.jsonl was begun for the same files with other languages"):
        begin(several, config, overwrite=False)
    assert begin(several, config, overwrite=True)[0] is Begin.NEW
    alone.journal.unlink()
    begun(several, config, *several.outputs)
    with pytest.raises(UsageError, match="talk.unfinished.jsonl was begun for the same files with other languages"):
        begin(alone, alone_config, overwrite=False)
