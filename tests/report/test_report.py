"""The report of what a change does to real inputs: what it compares, counts and prints, and how it ends."""

import shutil
import subprocess
from dataclasses import replace

import pytest
from sacrebleu import corpus_chrf

from pipeline.bench.texts import is_lost_question
from tests.conftest import ROOT
from tests.report import __main__ as report
from tests.report import runner
from tests.report.compare import COLUMNS, InputSet, Item, as_json, as_text, changes, chrf, from_json, row, words_wrong

NAMES = ("main", "the working tree")
HOUSE = Item("names 1", "The house is old.", "A casa é velha.", "A casa é velha.")
DOG = Item("names 2", "The dog sleeps.", "O cão dorme.", "O cachorro dorme.")
WORSE = replace(HOUSE, text="Casa velho é.")


def printed(old, new):
    return as_text({"names en→pt": InputSet(old)}, {"names en→pt": InputSet(new)}, NAMES)


def cells(old, new):
    """Column → the cell of a set."""
    return dict(zip(COLUMNS, row("names en→pt", old, new, changes(old.items, new.items)), strict=True))


def test_a_changed_text_is_printed_once_with_both_versions_and_an_unchanged_one_is_not():
    text = printed([HOUSE, DOG], [WORSE, DOG])
    assert [line.split(maxsplit=1) for line in text.splitlines()[1:5]] == [
        ["source", HOUSE.source],
        ["old", HOUSE.text],
        ["new", WORSE.text],
        ["reference", HOUSE.reference],
    ]
    assert text.count(WORSE.text) == 1
    assert DOG.source not in text
    assert "1 text changed" in text


def test_the_same_change_in_two_sets_is_printed_once_with_both_places():
    live, recordings = "live en→pt", "recordings en→pt"
    old, new = InputSet([HOUSE]), InputSet([WORSE])
    text = as_text({live: old, recordings: old}, {live: new, recordings: new}, NAMES)
    assert text.startswith("live en→pt, names 1; recordings en→pt, names 1")
    assert text.count(WORSE.text) == 1


def test_without_a_change_only_the_table_is_printed():
    assert printed([HOUSE, DOG], [HOUSE, DOG]).startswith("main → the working tree: no texts changed\n")


def test_what_was_recognised_differently_is_printed_with_both_transcripts():
    text = printed([replace(HOUSE, source="The mouse is old.")], [HOUSE])
    assert "old source  The mouse is old." in text
    assert "new source  The house is old." in text


def test_a_sentence_more_does_not_change_those_after_it():
    more = Item("names 0", "Look!", "Olha!")
    assert changes([HOUSE, DOG], [more, HOUSE, DOG]) == [(None, more)]
    assert changes([more, HOUSE, DOG], [HOUSE, DOG]) == [(more, None)]


def test_the_table_counts_changes_and_what_is_better_and_worse():
    better = replace(DOG, text=DOG.reference)
    found = cells(InputSet([HOUSE, DOG]), InputSet([WORSE, better]))
    assert [found[name] for name in ("texts", "changed", "better", "worse")] == ["2", "2", "1", "1"]
    scores = [
        corpus_chrf([one.text, other.text], [[HOUSE.reference, DOG.reference]]).score
        for one, other in ((HOUSE, DOG), (WORSE, better))
    ]
    assert found["chrF"] == f"{scores[0]:.1f} → {scores[1]:.1f}"


@pytest.mark.parametrize("references", [("", ""), (HOUSE.reference, "A casa toda é velha, e o jardim também.")])
def test_a_change_without_a_common_reference_is_neither_better_nor_worse(references):
    old, new = (replace(item, reference=text) for item, text in zip((HOUSE, WORSE), references, strict=True))
    found = cells(InputSet([old]), InputSet([new]))
    assert [found[name] for name in ("changed", "better", "worse")] == ["1", "0", "0"]
    assert (found["chrF"] == "–") is not any(references)


def test_what_the_runs_took_is_in_the_table():
    found = cells(InputSet([HOUSE], 12.34, 512.2, 18_000), InputSet([HOUSE], 11.0, 512.4, 18_250))
    assert [found[name] for name in ("CPU s", "MB", "lines")] == ["12.3 → 11.0", "512", "18,000 → 18,250"]


@pytest.mark.parametrize("old", [{}, {"names en→pt": InputSet(failed="unknown option")}])
def test_inputs_that_a_revision_cannot_do_are_named_and_not_compared(old):
    text = as_text(old, {"names en→pt": InputSet([HOUSE])}, NAMES)
    assert f"names en→pt: failed in main: {'unknown option' if old else 'not run'}" in text
    assert "no texts changed" in text
    assert cells(InputSet(failed="x"), InputSet([HOUSE]))["texts"] == "– → 1"


def test_words_of_a_recording_are_compared_as_a_whole():
    items = [Item("talk:1", "We go.", "", said="We go home. It is late."), Item("talk:2", "Home, it is late.", "")]
    assert words_wrong(items, "en") == 0
    assert words_wrong([items[0]], "en") == 4 / 6
    assert words_wrong([HOUSE], "en") is None


def test_the_parts_of_a_recording_are_scored_as_a_whole():
    halves = [Item("talk:1", "", "A casa", HOUSE.reference), Item("talk:2", "", "é velha.", "")]
    assert chrf(halves) == 100


@pytest.mark.parametrize(
    ("source", "text", "lost"),
    [
        ("Onde está?", "Where is it?", False),
        ("Onde está?", "Where it is.", True),
        ("Ele está em casa?", "He is at home?", True),
        ("Ele está em casa?", "Is he at home?", False),
        ("De qual plataforma ele sai?", "From which platform does it leave?", False),
        ("Está frio, não está?", "It's cold, isn't it?", False),
        ("<p>Você vem?</p>", "<p>You are coming?</p>", True),
        ("<p>Você vem?</p>", "<p>Are you coming?</p>", False),
        ("Ele está em casa.", "He is at home.", False),
        ("Vamos? Claro.", "Let's go. Of course.", False),
    ],
)
def test_a_question_is_lost_without_its_mark_or_its_order(source, text, lost):
    assert is_lost_question(source, text, "en") is lost


def test_a_question_in_portuguese_needs_its_mark_alone():
    assert not is_lost_question("Is he at home?", "Ele está em casa?", "pt")
    assert is_lost_question("Is he at home?", "Ele está em casa.", "pt")


def test_results_are_the_same_after_they_were_stored():
    result = {"names en→pt": InputSet([HOUSE], 1.5, 100.0, 9), "pages pt→en": InputSet([], failed="no server")}
    assert from_json(as_json(result)) == result


@pytest.mark.parametrize(
    ("name", "text", "cue"),
    [
        ("x.srt", "1\n00:00:01,000 --> 00:00:02,500\nOlá,\n<i>mundo</i>\n", ("00:00:01,000 --> 00:00:02,500", "Olá,\n<i>mundo</i>")),
        ("x.vtt", "WEBVTT\n\n00:01.000 --> 00:02.500 align:start\nOlá\n", ("00:01.000 --> 00:02.500", "align:start\nOlá")),
        ("x.ass", "[Events]\nDialogue: 0,0:00:01.00,0:00:02.50,Default,,0,0,0,,Olá, mundo\n", ("0:00:01.00,0:00:02.50", "Default,,0,0,0,,Olá, mundo")),
    ],
)  # fmt: skip
def test_cues_are_told_apart_by_their_times(name, text, cue, tmp_path):
    path = tmp_path / name
    path.write_text(text, "utf-8")
    others = {"WEBVTT": "WEBVTT"} if name == "x.vtt" else {"[Events]": "[Events]"} if name == "x.ass" else {}
    assert runner.parts(path) == {**others, cue[0]: cue[1]}


def test_each_kind_of_inputs_has_references_in_both_directions():
    for kind in ("html", "lines", "tatoeba", "talks", "numbers", "questions", "names"):
        there, back = (runner.pairs(kind, direction) for direction in runner.CONFIGS)
        assert len(there) >= 20
        assert back == [(reference, source) for source, reference in there]
    assert all(path.stem in runner.TRANSLATED for paths in runner.RECORDINGS.values() for path in paths)


@pytest.mark.timeout(300)
def test_a_line_is_translated_by_the_revision_in_a_folder(tmp_path):
    programs = runner.Programs(ROOT, tmp_path)
    options = ("demo-zh", "en", "zh")
    assert "车站" in programs.run(
        runner.HERE / "texts.py", *options, standard_input='["Where is the station?"]'
    ).encode().decode("unicode_escape")
    assert programs.cpu_s > 0
    assert programs.peak_mb > 10
    assert "pipeline.backends.marian.model" in programs.modules
    assert programs.lines() > len(
        (ROOT / "pipeline" / "backends" / "marian" / "model.py").read_text("utf-8").splitlines()
    )


def test_a_program_that_fails_says_why(tmp_path):
    with pytest.raises(runner.FailedError, match=r"^unknown option$"):
        runner.Programs(ROOT, tmp_path).run("-c", "import json, sys; sys.exit('unknown option')")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["no-such-revision"], "there is no revision no-such-revision"),
        (["HEAD", "poems"], "no inputs are called poems"),
    ],
)
def test_an_unknown_revision_or_kind_is_one_line_and_status_2(arguments, said, capsys):
    assert report.main(*arguments) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"error: {said}")


def test_the_working_tree_is_compared_with_an_earlier_report(tmp_path, monkeypatch, capsys):
    earlier = tmp_path / "new.json"
    earlier.write_text(as_json({"names en→pt": InputSet([HOUSE]), "pages en→pt": InputSet([DOG])}), "utf-8")

    def run_all(trees, files, kinds):
        assert (trees, kinds) == ([report.ROOT], ("names",))
        files[0].write_text(as_json({"names en→pt": InputSet([WORSE])}), "utf-8")
        return True

    monkeypatch.setattr(report, "RESULTS", tmp_path)
    monkeypatch.setattr(report, "run_all", run_all)
    assert report.main("HEAD", "names", against=earlier) == 0
    said = capsys.readouterr().out
    assert HOUSE.text in said
    assert f"{earlier} → the working tree: 1 text changed" in said
    assert "pages" not in said


@pytest.mark.parametrize("content", [None, "no JSON", "[]", '{"names en→pt": {"item": []}}'])
def test_what_is_no_earlier_report_is_one_line_and_status_2(content, tmp_path, capsys):
    earlier = tmp_path / "old.json"
    if content is not None:
        earlier.write_text(content, "utf-8")
    assert report.main(against=earlier) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"error: cannot read {earlier}")


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
def test_the_files_of_the_revision_are_removed_when_the_run_fails(error, tmp_path, monkeypatch):
    def git(*arguments):
        command = ["git", "-c", "user.name=a", "-c", "user.email=a@example.org", *arguments]
        return subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True).stdout

    git("init", "--quiet")
    (tmp_path / "file").write_text("old", "utf-8")
    git("add", "file")
    git("commit", "--quiet", "--message", "x")
    monkeypatch.setattr(report, "ROOT", tmp_path)
    with pytest.raises(error), report.worktree("HEAD") as tree:
        assert (tree / "file").read_text("utf-8") == "old"
        raise error
    assert not tree.exists()
    assert len(git("worktree", "list").splitlines()) == 1
