"""The rules of single languages: a record each, and no tables by language elsewhere."""

import ast
import re
import subprocess
import sys
from dataclasses import fields
from importlib import import_module

import pytest

from pipeline.languages import known_language
from pipeline.languages.marks import letters
from pipeline.languages.rules import _KNOWN, _OWN_DIGITS, rules
from pipeline.languages.rules.clock import Clock, SpokenTimes
from pipeline.languages.rules.record import FullStops, Rules
from tests.conftest import ROOT

RECORDS = ROOT / "pipeline" / "languages" / "rules"
SOURCES = {
    path.relative_to(ROOT / "pipeline").as_posix(): path.read_text("utf-8")
    for path in sorted((ROOT / "pipeline").rglob("*.py"))
    if path.parent != RECORDS
}
NOT_RULES = {
    "languages/tags.py": "tags: the codes themselves, and scripts without blanks",
    "backends/script.py": "the two scripts of Chinese",
    "backends/marian/preparation.py": "the two scripts of Chinese",
    "backends/whisper/language_id.py": "models of English only",
    "bench/words.py": "English references of speech have numbers in words",
    "backends/marian/pairs.py": "the names of models' makers",
    "push/zoom.py": "a code of Zoom's own",
    "media/subtitles/breaks.py": "the models of BudouX",
}
"""Modules that may tell languages apart by their codes, and what for."""


def language_of(node):
    """The language that a constant names, if rules are known of it."""
    value = node.value if isinstance(node, ast.Constant) else None
    code = known_language(value) if isinstance(value, str) and re.fullmatch("[a-z]{2,3}(-[A-Za-z]+)*", value) else None
    return code if code in _KNOWN | _OWN_DIGITS else None


def by_code(source):
    """Lines that compare with codes of languages, or have tables by them: sets, tuples and dictionaries of nothing else."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Compare(left=left, comparators=[right]):
                named = re.search("lang|code|target|source", ast.unparse(left)) and language_of(right)
            case ast.Dict(keys=[_, *_] as keys):
                named = all(map(language_of, keys))
            case ast.Set(elts=members) | ast.Tuple(elts=members):
                named = all(map(language_of, members)) and len(set(map(language_of, members))) > 1
            case _:
                named = False
        if named:
            yield node.lineno


def test_every_record_is_of_a_known_language_and_fills_something_in():
    assert {path.stem for path in RECORDS.glob("*.py") if len(path.stem) <= 3} == _KNOWN
    assert len(_KNOWN) > 50
    assert [code for code in _KNOWN if known_language(code) is None] == []
    assert [code for code in _KNOWN if rules(code) == Rules()] == []
    assert not _KNOWN & _OWN_DIGITS


def test_the_rules_of_a_language_have_any_of_its_codes_and_others_have_none():
    assert rules("pt-BR") is rules("por") is import_module("pipeline.languages.rules.pt").RULES
    assert rules("zh-TW") is rules("cmn") is import_module("pipeline.languages.rules.zh").RULES
    assert rules("record") == rules("nowhere") == rules("") == Rules()
    assert rules("fa") == Rules(own_digits=True)


@pytest.mark.parametrize("code", sorted(_KNOWN))
def test_a_record_has_what_amounts_and_times_need(code):
    currencies, clock = rules(code).currencies, rules(code).clock
    for sign in ("$", "€", "£", "¥", "R$") if currencies else ():
        assert [after for before, after in currencies[sign] if not before]
    assert clock is None or clock.counts_to_24 or clock.written_parts[-1][1] == 24


def test_only_the_rules_of_languages_that_are_used_are_imported():
    code = "import sys; from pipeline.languages.rules import rules; rules('pt'); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    loaded = {name.rpartition(".")[2] for name in done.stdout.split() if name.startswith("pipeline.languages.rules.")}
    assert loaded == {"pt", "record", "clock"}


@pytest.mark.parametrize("record", [Rules, Clock, SpokenTimes, FullStops])
def test_every_field_of_a_record_is_used(record):
    read = {
        node.attr
        for source in SOURCES.values()
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Attribute)
    }
    own = (RECORDS / "record.py").read_text("utf-8")
    assert [field.name for field in fields(record) if field.name not in read and f"self.{field.name}" not in own] == []


def test_the_words_before_full_stops_are_written_without_their_last_one():
    lists = {code: rules(code).full_stops for code in _KNOWN}
    assert {"en", "de", "fr", "es", "it", "pt", "ru", "pl", "cs", "nl"} <= {
        code for code in lists if lists[code].before
    }
    for code, words in lists.items():
        for kind in fields(words):
            assert not [word for word in getattr(words, kind.name).split() if word.endswith(".")], (code, kind.name)


def test_nothing_else_has_tables_by_languages():
    found = {name: list(lines) for name, source in SOURCES.items() if (lines := list(by_code(source)))}
    assert {name: lines for name, lines in found.items() if name not in NOT_RULES} == {}
    assert set(NOT_RULES) == set(found)


def test_english_ordinals_end_as_they_are_said():
    wanted = {
        1: "st",
        2: "nd",
        3: "rd",
        4: "th",
        11: "th",
        12: "th",
        13: "th",
        21: "st",
        101: "st",
        111: "th",
        122: "nd",
    }
    ordinal = rules("en").ordinal
    assert ordinal is not None
    assert {number: ordinal(number) for number in wanted} == wanted


@pytest.mark.parametrize(
    ("said", "printed"),
    [
        ("uh, yes", "yes"),
        ("yes, uh-huh, well", "yes, well"),
        ("uh-huh, yes", "yes"),
        ("well, uh-huh.", "well."),
        ("uh-huh", "uh-huh"),  # an answer
        ("I uh-huh it", "I uh-huh it"),
        ("the uh-oh", "the uh-oh"),
    ],
)
def test_sounds_with_a_hyphen_are_left_out_between_commas_only(said, printed):
    assert rules("en").fillers.sub("", said) == printed


@pytest.mark.parametrize("code", sorted(_KNOWN))
def test_phrases_are_known_by_their_letters(code):
    assert [said for phrases in rules(code).phrases.values() for said in phrases if letters(said) != said] == []
