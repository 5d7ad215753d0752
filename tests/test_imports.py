"""Imports follow the data, from left to right, and never in a circle."""

import ast
from graphlib import CycleError, TopologicalSorter

import pytest

from tests.conftest import ROOT

ORDER = (
    "errors plugins bounds names resources notices events languages glossary run store captions audio vad asr sentences nmt subtitles latency "
    "config loading stages translator sinks speaking server apps bench testing"
).split()
"""The packages and modules of ``pipeline``, each before those that may import it. Left out: the commands, which anything may start."""
COMMANDS = ("__main__", "check", "live", "models", "serve", "translate")

FILES = {
    tuple(path.relative_to(ROOT).with_suffix("").parts): path for path in sorted((ROOT / "pipeline").rglob("*.py"))
}


def imported(module: tuple[str, ...]) -> set[tuple[str, ...]]:
    """The modules that one imports anywhere in it, except for types alone."""
    tree = ast.parse(FILES[module].read_text("utf-8"))
    for_types = {
        id(node)
        for test in ast.walk(tree)
        if isinstance(test, ast.If) and ast.unparse(test.test) == "TYPE_CHECKING"
        for node in ast.walk(test)
    }
    found: set[tuple[str, ...]] = set()
    for node in ast.walk(tree):
        if not isinstance(node, ast.ImportFrom) or not node.level or id(node) in for_types:
            continue
        place = (*module[: -node.level], *(node.module or "").split(".")) if node.module else module[: -node.level]
        for name in node.names:
            inner = (*place, name.name)
            found.add(inner if inner in FILES else place if place in FILES else (*place, "__init__"))
    return found - {module}


@pytest.mark.slow
def test_no_modules_import_each_other():
    try:
        TopologicalSorter({module: imported(module) for module in FILES}).prepare()
    except CycleError as error:
        pytest.fail(" → ".join(".".join(module) for module in error.args[1]))


@pytest.mark.slow
def test_nobody_else_asks_for_the_class_of_a_recogniser_or_a_translator():
    """Others ask for abilities: the protocols of ``asr.recognizer`` and ``nmt.translator``."""
    owners = ("asr", "nmt")
    trees = {module: ast.parse(path.read_text("utf-8")) for module, path in FILES.items() if len(module) > 1}
    concrete = {
        node.name
        for module, tree in trees.items()
        if module[1] in owners
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef) and "Protocol" not in map(ast.unparse, node.bases)
        if {"transcribe", "open", "stream"} & {each.name for each in node.body if isinstance(each, ast.FunctionDef)}
    }
    assert {"WhisperRecognizer", "MoonshineRecognizer", "SherpaRecognizer", "MarianModel", "ByLanguage"} <= concrete
    wrong = [
        f"{'.'.join(module)}, line {node.lineno}: {ast.unparse(node)}"
        for module, tree in trees.items()
        if module[1] not in owners
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "isinstance"
        if concrete & {name.id for name in ast.walk(node.args[1]) if isinstance(name, ast.Name)}
    ]
    assert wrong == []


@pytest.mark.slow
def test_imports_go_one_way():
    """``nmt`` has a command of its own, beside the commands of the whole program."""
    wrong = [
        f"{'.'.join(module)} imports {'.'.join(other)}"
        for module in FILES
        if len(module) > 1
        and module[1] not in COMMANDS
        and module[-1] not in ("__main__", "_alias")
        and module != ("pipeline", "__init__")
        for other in imported(module)
        if other != ("pipeline", "__init__")
        and (other[1] in COMMANDS or ORDER.index(other[1]) > ORDER.index(module[1]))
    ]
    assert wrong == []


def test_a_name_is_that_of_one_thing():
    """Public functions and classes; those that each module of a kind has under the same name are left out."""
    of_a_kind = set(
        "main arguments add_arguments run routes as_text Push Row find_model load_model model_ref load".split()
    )
    of_the_protocol = {"Pause", "Speaker"}  # messages about what has the name elsewhere
    places: dict[str, list[str]] = {}
    for module, path in FILES.items():
        for node in ast.parse(path.read_text("utf-8")).body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and not node.name.startswith(
                "_"
            ):
                places.setdefault(node.name, []).append(".".join(module))
    assert not {
        name: modules
        for name, modules in places.items()
        if len(modules) > 1 and name not in of_a_kind and not (name in of_the_protocol and len(modules) == 2)
    }
