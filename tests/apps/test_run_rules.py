"""Rules of a run over recordings, without models and processes: turns, results, jobs on an executor, names of subtitles."""

import logging
from argparse import ArgumentTypeError, Namespace
from collections.abc import Callable
from concurrent.futures import CancelledError, Executor, Future
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pipeline import load_config
from pipeline.apps import pushes
from pipeline.apps.listening import some_ports
from pipeline.apps.options import configured_several, naming_demo
from pipeline.apps.subtitle_files import SubtitleOptions, _outputs
from pipeline.archives import recording_run, results, several
from pipeline.archives.outputs import OutputName, OutputNames
from pipeline.archives.recordings import Job, Options, find_recordings
from pipeline.archives.results import Result
from pipeline.archives.several import Run, translate_on
from pipeline.archives.speakers import speaker_names
from pipeline.archives.turns import Turns
from pipeline.config import with_overrides
from pipeline.console.bars import Bars
from pipeline.core.captions.masking import Masking
from pipeline.core.run.stats import PipelineStats, Withheld
from pipeline.errors import DownloadError, HubUnreachableError, PipelineError, UsageError
from tests.streams import spoken

CONFIG = load_config("demo-zh")
RUN = Run(Options(CONFIG))


def results_of(folder: Path, *sizes: int) -> list[Result]:
    """Jobs of recordings of these sizes."""
    found = []
    for number, size in enumerate(sizes):
        (folder / f"{number}.wav").write_bytes(bytes(size))
        found.append(Result(Job(folder / f"{number}.wav", {}, OutputNames(OutputName(folder, str(number))))))
    return found


@pytest.mark.parametrize(("largest_first", "order"), [(True, [1, 3, 2, 0]), (False, [0, 1, 2, 3])])
def test_several_workers_begin_with_the_largest_recordings(largest_first, order, tmp_path):
    turns = Turns(results_of(tmp_path, 1, 4, 2, 4), largest_first=largest_first)
    assert [turns.take() for _ in range(5)] == [*order, None]
    assert turns.left == 0


class Calls(Executor):
    """Runs calls when they are waited for, one after another; remembers how many waited at most."""

    def __init__(self, work: Callable[[int, Result], Result]) -> None:
        self.work, self.submitted, self.futures = work, list[int](), list[Future[Result]]()

    def submit(self, function: Any, run: Run, index: int, result: Result) -> Future[Result]:  # type: ignore[override]
        future: Future[Result] = Future()
        self.submitted.append(index)
        self.futures.append(future)
        try:
            future.set_result(self.work(index, result))
        except BaseException as error:
            future.set_exception(error)
        return future


class Released(Turns):
    """Turns that remember which jobs have ended."""

    def __init__(self, found: list[Result]) -> None:
        super().__init__(found)
        self.released: list[int] = []

    def release(self, index: int) -> None:
        self.released.append(index)


def test_a_job_that_fails_costs_no_other(tmp_path, capsys):
    def work(index: int, result: Result) -> Result:
        if index == 1:
            raise ValueError("the worker ended")
        return replace(result, outcome="done")

    found = results_of(tmp_path, 1, 2, 3)
    calls = Calls(work)
    turns = Released(found)
    translate_on(calls, found, RUN, at_once=lambda: 1, turns=turns)
    assert calls.submitted == turns.released == [2, 1, 0]
    assert [(each.outcome, each.failed, each.error) for each in found] == [
        ("done", False, ""),
        ("failed", True, "the translation stage failed: the worker ended"),
        ("done", False, ""),
    ]
    assert capsys.readouterr().err.count("the worker ended") == 1


@pytest.mark.parametrize(
    ("error", "message"),
    [(UsageError("no such folder"), "no such folder"), (CancelledError(), "the jobs were cancelled")],
)
def test_a_worker_that_cannot_do_the_jobs_ends_the_run(error, message, tmp_path):
    def work(index: int, result: Result) -> Result:
        raise error

    calls = Calls(work)
    with pytest.raises(PipelineError, match=message):
        translate_on(calls, results_of(tmp_path, 1, 2, 3), RUN, at_once=lambda: 2)
    assert len(calls.submitted) == 2


@pytest.mark.parametrize(("configured", "count", "threads"), [(0, 2, 4), (0, 3, 2), (0, 16, 1), (6, 2, 6)])
def test_processes_share_out_the_cores_unless_their_threads_are_configured(configured, count, threads, monkeypatch):
    given: list[Run] = []
    monkeypatch.setattr(several, "usable_cores", lambda: 8)
    monkeypatch.setattr(several, "translate_on", lambda executor, results, run, **more: given.append(run))
    monkeypatch.setattr(several, "pool", SimpleNamespace(Processes=lambda count, receive: Calls(lambda *_: None)))  # type: ignore[arg-type, return-value]
    config = replace(CONFIG, asr=replace(CONFIG.asr, threads=configured))
    several.translate_in_processes([], Options(config), count, Turns([]))
    assert [run.options.config.asr.threads for run in given] == [threads]


def test_a_message_that_comes_after_the_end_of_its_job_changes_nothing(tmp_path, caplog):
    (result,) = results_of(tmp_path, 1)
    with ExitStack() as stack:
        shown = several._Shown(stack, [result])
        shown.receive(0, "begin", 10.0)
        assert result.outcome == "interrupted"
        shown.ended(0, replace(result, outcome="done", elapsed_s=2.0, audio_s=10.0))
        shown.receive(0, "begin", 10.0)
        shown.receive(0, "log", "pipeline.core.asr", logging.ERROR, "late but %s")
    assert result.outcome == "done"
    assert caplog.messages == ["late but %s"]


@pytest.mark.parametrize(
    ("run", "problem"),
    [
        (RUN, None),
        (replace(RUN, folders=(Path("/"),)), None),
        (replace(RUN, folders=(Path("/"), Path("/none"))), "it does not see the folder /none; mount it there"),
        (replace(RUN, version="0"), "not 0; install the same version"),
    ],
)
def test_a_worker_says_why_it_cannot_do_the_jobs(run, problem):
    found = run.problem()
    assert found is problem is None or (problem is not None and found is not None and found.endswith(problem))


def test_models_stay_loaded_while_the_configuration_is_the_same(monkeypatch):
    loaded: list[Any] = []
    monkeypatch.setattr("pipeline.config.loading.load_models", lambda config: loaded.append(config) or object())
    monkeypatch.setattr(several, "keep_freed_memory", lambda: None)
    monkeypatch.setattr(several, "_loaded", None)
    other = with_overrides(CONFIG, bilingual=True)
    first = several._models(CONFIG)
    assert several._models(with_overrides(CONFIG)) is first
    assert several._models(other) is not first
    assert loaded == [CONFIG, other]


@pytest.mark.parametrize(
    ("changes", "summary", "complete"),
    [
        ({}, "done", True),
        ({"outcome": "finished"}, "finished", True),
        ({"outcome": "interrupted"}, "interrupted", False),
        ({"truncated": 1}, "done, but 1 translation was cut short", False),
        ({"truncated": 2, "damage": ("cut off", "silent")},
         "done, but the recording is cut off and silent and 2 translations were cut short", False),
        ({"without_cue": True}, "no subtitles: no speech was found; the next run tries again", False),
        ({"without_cue": True, "sentences": 1}, "no subtitles: the translation is empty; the next run tries again", False),
        ({"without_cue": True, "withheld": "4 s"},
         "no subtitles: everything heard was withheld; is --source right? The next run tries again", False),
        ({"without_cue": True, "withheld": "4 s", "other_language": "in Spanish"}, "no subtitles: it is in Spanish", False),
        ({"other_language": "in Spanish", "damage": ("cut off",)},
         "done, but the recording is cut off and it is in Spanish", False),
        ({"outcome": "failed", "failed": True, "error": "a\\nb", "damage": ("cut off",)}, "failed: a\\nb", False),
        ({"outcome": "failed", "failed": True}, "failed", False),
        ({"outputs": {}, "damage": ("cut off",)}, "done", False),
    ],
)  # fmt: skip
def test_what_became_of_a_recording_is_one_line(changes, summary, complete, tmp_path):
    (result,) = results_of(tmp_path, 1)
    result.outcome, result.outputs = "done", {("srt", "zh"): tmp_path / "0.srt"}
    vars(result).update(changes)
    assert (result.summary, result.complete) == (summary, complete)


def test_the_numbers_of_several_speakers_are_those_of_one_recording(tmp_path, monkeypatch):
    monkeypatch.setattr(results, "time", SimpleNamespace(perf_counter=lambda: 13.0))
    (result,) = results_of(tmp_path, 1)
    result.count(
        PipelineStats(started=5.0, audio_samples=32_000, sentences=2),
        PipelineStats(started=3.0, audio_samples=16_000, sentences=3),
    )
    assert (result.audio_s, result.sentences, result.elapsed_s, result.withheld) == (2.0, 5, 10.0, "")


def test_of_what_was_withheld_a_few_stretches_are_named(tmp_path):
    (result,) = results_of(tmp_path, 1)
    stats = PipelineStats()
    for number in range(5):
        stats.withheld.append(Withheld(number, number + 1.0, "uncertain"))
        stats.withheld_count += 1
        stats.withheld_s["uncertain"] = number + 1.0
    result.count(stats)
    assert result.withheld.count("uncertain") >= 1
    assert "2 more" in result.withheld


@pytest.mark.parametrize(
    ("name", "kinds", "written"),
    [
        ("film.srt", (), ["film.pt.srt"]),
        ("film.en.srt", (), ["film.pt.srt"]),
        ("film.EN-gb.SRT", (), ["film.pt.srt"]),
        ("film.EN.VTT", (), ["film.pt.vtt"]),
        ("film.fr.srt", ("vtt", "srt"), ["film.fr.pt.vtt", "film.fr.pt.srt"]),
        ("en.srt", (), ["en.pt.srt"]),
        (".en.srt", (), [".en.pt.srt"]),
    ],
)
def test_subtitles_have_the_target_in_the_place_of_the_language_spoken(name, kinds, written, tmp_path):
    for folder in (None, tmp_path / "out"):
        options = SubtitleOptions(CONFIG, kinds, folder)
        found = _outputs(tmp_path / name, Path("s1"), "en", "pt", options)
        assert found == [(folder / "s1" if folder else tmp_path) / each for each in written]


@pytest.mark.parametrize("asked", ["Ann", "Ann,", "Ann,Ann", ",".join(map(str, range(9))), "Ann,B\u202eob", " , "])
def test_speakers_are_several_and_each_has_a_name(asked):
    with pytest.raises(UsageError, match="expected 2 to 8 different names"):
        speaker_names(asked)
    assert speaker_names(" Ann , Bob ") == ("Ann", "Bob")
    assert len(speaker_names("1,2,3,4,5,6,7,8")) == 8


def test_a_recording_that_is_named_twice_is_found_once_and_hidden_ones_are_not(tmp_path):
    for name in ("a/b/one.wav", "a/.hidden/two.wav", "a/.three.wav", "a/notes.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "link.wav").symlink_to(tmp_path / "a/b/one.wav")
    one = tmp_path / "a/b/one.wav"
    assert find_recordings([tmp_path / "a", tmp_path / "link.wav", one]) == [(one, Path("b"))]
    assert find_recordings([one, tmp_path / "a"]) == [(one, Path())]
    hidden = tmp_path / "a/.three.wav"
    assert find_recordings([hidden]) == [(hidden, Path())]


def test_each_of_several_recordings_has_its_number():
    with ExitStack() as stack:
        assert Bars(stack, 1).numbered("a.wav", 1) == "a.wav"
        bars = Bars(stack, 3)
        assert bars.numbered("a.wav", 2) == "2 of 3, a.wav"
        bars.ended()
        bars.ended(2)
        assert bars._ended == 3


class Written:
    """A sink that remembers."""

    def __init__(self) -> None:
        self.events: list[Any] = []

    def write(self, event: Any) -> None:
        self.events.append(event)


def test_the_journal_alone_has_masked_words_as_they_were_said():
    journal, *files = [Written() for _ in range(3)]
    events = spoken(0, "We met Mark.")
    recording_run._write([journal, *files], Masking([("en", "Mark")]), events)
    assert journal.events == events
    for file in files:
        assert [event.text for event in file.events] == ["We met M***."] * 2


def test_files_are_written_aside_beside_the_journal_where_their_names_have_room(tmp_path):
    names = OutputNames(OutputName(tmp_path, "talk"), {"zh": "zh", "de": "de"})
    job = Job(tmp_path / "talk.wav", {}, names)
    outputs = {output: names.path(output) for output in (("srt", "zh"), ("jsonl", ""), ("vtt", "de"))}
    assert {path.name for path in recording_run.aside_paths(job, outputs).values()} == {
        "talk.unfinished.zh.srt",
        "talk.unfinished.all.jsonl",
        "talk.unfinished.de.vtt",
    }
    short = replace(job, names=replace(names, base=replace(names.base, longest=22)))
    found = recording_run.aside_paths(short, outputs)
    assert [found[output].name for output in outputs] == [
        "talk.unfinished.zh.srt",
        "talk.jsonl",
        "talk.unfinished.de.vtt",
    ]


@pytest.mark.parametrize(("text", "ports"), [("8000", [8_000]), ("8000-8002", [8_000, 8_001, 8_002]), ("7-7", [7])])
def test_a_port_or_the_ports_from_one_to_another(text, ports):
    assert list(some_ports(text)) == ports
    for wrong in ("8002-8000", "65536", "1-65536", "a", ""):
        with pytest.raises(ArgumentTypeError):
            some_ports(wrong)


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"config": None}, True),
        ({"config": "en-zh"}, True),
        ({"config": "zh-en"}, False),
        ({"config": None, "source": "en"}, False),
        ({"config": None, "target": ("de",)}, False),
    ],
)
def test_the_demo_is_named_where_the_default_models_cannot_be_fetched(options, named):
    asked = Namespace(**{"source": None, "target": (), **options})
    with pytest.raises(HubUnreachableError) as error, naming_demo(asked):
        raise HubUnreachableError("no network")
    assert str(error.value).endswith("or give --config demo, which needs no network") is named
    with pytest.raises(DownloadError, match="^another$"), naming_demo(asked):
        raise DownloadError("another")


def test_the_options_of_one_configuration_are_refused_with_several():
    options = {"config": ["demo", "demo-zh"], "source": None, "target": (), "asr": None, "nmt": None, "via": None}
    options |= {"glossary": None, "masked": None, "models": None}
    for name, value in (("source", "en"), ("target", ("de",)), ("nmt", "x/y"), ("via", "en")):
        with pytest.raises(UsageError, match=f"--{name} is for one configuration, and there are 2"):
            configured_several(Namespace(**options | {name: value}))
    assert [each.languages.targets for each in configured_several(Namespace(**options))] == [("pt",), ("zh",)]


def test_what_was_opened_to_push_is_closed_where_another_cannot_be_opened(monkeypatch):
    closed: list[str] = []

    def module(name: str) -> Any:
        def push(where: str, languages: object, rules: object) -> Any:
            if "obs" in name:
                raise UsageError("no such place")
            return SimpleNamespace(close=lambda: closed.append(where))

        return SimpleNamespace(Push=push)

    monkeypatch.setattr("pipeline.plugins.import_module", module)
    wanted = [
        pushes.Where("webhook", "", "one"),
        pushes.Where("webhook", "zh", "two"),
        pushes.Where("obs", "zh", "three"),
    ]
    with pytest.raises(UsageError, match="no such place"):
        pushes.open_pushes(wanted, ["zh"], CONFIG.subtitles)
    assert closed == ["one", "two"]
    assert len(pushes.open_pushes(wanted[:2], ["zh"], CONFIG.subtitles)) == 2
