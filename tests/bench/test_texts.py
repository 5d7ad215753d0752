"""python -m pipeline.bench texts: what each rule of translation gains and costs."""

import json

import pytest

from pipeline.backends.marian.preparation import TextRule
from pipeline.bench.__main__ import run
from pipeline.bench.texts import Row, as_text, changes, pair, read_translations
from pipeline.errors import UsageError
from tests.conftest import ROOT

PAIRS = (
    ("um, it costs €50.", "Custa 50 euros."),
    ("The museum is closed on Mondays.", "O museu está fechado às segundas-feiras."),
    ("12:30", "12h30"),
)
SOURCES, REFERENCES = zip(*PAIRS, strict=True)
NONE = Row("no rules", ("Um, custa um.", "O museu está fechado às segundas-feiras.", "12:30 (30)"), 2.0)
ALL = Row("all rules", ("Custa 50 euros.", "O museu fecha.", "12h30"), 3.0)
WITHOUT = Row("without fillers", ("Um, custa 50 euros.", "O museu fecha.", "12h30"), None)


def test_all_rules_are_compared_with_none_and_each_with_its_absence():
    rows = [NONE, ALL, WITHOUT]
    assert pair(rows, ALL) == (NONE, ALL)
    assert pair(rows, WITHOUT) == (WITHOUT, ALL)
    lines = as_text(rows, SOURCES, REFERENCES, "pt").splitlines()[4:]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    assert [(row[0], *row[3:6]) for row in cells] == [
        ("no rules", "0", "0", "0"),
        ("all rules", "3", "2", "1"),
        ("without fillers", "1", "1", "0"),
    ]
    assert [row[-1] for row in cells] == ["2.0", "3.0", ""]


def test_the_worst_change_comes_first_and_equal_texts_are_no_changes():
    found = changes(SOURCES, REFERENCES, NONE.texts, ALL.texts)
    assert found[0].source == PAIRS[1][0]
    assert found[0].gain < 0 < found[1].gain <= found[2].gain
    assert changes(SOURCES, REFERENCES, ALL.texts, ALL.texts) == []


def test_a_run_prints_a_line_for_each_rule_and_what_changed_since(tmp_path, capsys):
    file, old = tmp_path / "pairs.tsv", tmp_path / "old.json"
    file.write_text("".join(f"{source}\t{right}\n" for source, right in PAIRS), "utf-8")
    assert run(["texts", str(file), "--show", "2", "--json", str(old)]) == 0
    printed = capsys.readouterr().out
    assert all(f"| without {rule} |" in printed for rule in TextRule)
    assert "all rules, chrF +" in printed
    assert "since" not in printed
    made = json.loads(old.read_text("utf-8"))
    assert list(made["texts"]) == list(SOURCES)
    made["texts"][SOURCES[1]] = "Outro texto."
    old.write_text(json.dumps(made), "utf-8")
    assert run(["texts", str(file), "--against", str(old)]) == 0
    (since,) = capsys.readouterr().out.split("\nsince ")[1:]
    assert SOURCES[1] in since
    assert "Outro texto." in since


def test_the_texts_may_stand_after_the_tab(tmp_path, capsys):
    file = tmp_path / "pairs.tsv"
    file.write_text("You speak English.\tVocê fala inglês.\n" * 3, "utf-8")
    assert run(["texts", str(file), "--model", "firefox/pt-en-tiny", "--back", "--sample", "2"]) == 0
    assert capsys.readouterr().out.startswith("2 texts")


@pytest.mark.parametrize("text", ["no json", "{}", '{"texts": 1}'])
def test_a_file_without_translations_is_named(tmp_path, text):
    path = tmp_path / "old.json"
    path.write_text(text, "utf-8")
    with pytest.raises(UsageError, match=f"cannot read {path} .*; give a file that --json wrote"):
        read_translations(path)


def test_texts_without_references_are_refused(tmp_path):
    path = tmp_path / "texts.txt"
    path.write_text("A text.\n", "utf-8")
    with pytest.raises(UsageError, match="has no translations; give each after a tab"):
        run(["texts", str(path)])


def test_the_sheet_in_the_docs_has_each_rule():
    page = (ROOT / "docs" / "benchmarks.md").read_text("utf-8")
    assert [rule for rule in TextRule if f"| without {rule} |" not in page] == []
