"""The rooms of pipeline/backends/marian: imports go one way, from the search to the decoder and not back."""

import ast

import pytest

from tests.conftest import ROOT

NMT = ROOT / "pipeline" / "backends" / "marian"
MAY_USE = {"decode": {"compile"}, "search": {"decode"}, "terms": {"decode", "search"}}
"""Room → the other parts of marian/ that it imports."""


def imported(path):
    """The parts of marian/ that a module of a room imports from outside its room."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.level == 2:
            yield from [node.module.partition(".")[0]] if node.module else [each.name for each in node.names]


@pytest.mark.parametrize("room", MAY_USE)
def test_a_room_imports_only_what_stands_before_it(room):
    modules = [path for path in (NMT / room).glob("*.py") if path.name != "__init__.py"]
    assert len(modules) >= 3
    assert {name for path in modules for name in imported(path)} == MAY_USE[room]
