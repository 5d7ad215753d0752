"""Imports follow the data, from left to right, and never in a circle."""

import ast
import subprocess
import sys
from functools import cache
from graphlib import CycleError, TopologicalSorter
from importlib import import_module

import pytest

from tests.conftest import HANG_S, ROOT

ORDER = (
    "_door errors plugins names languages glossary core store backends media config documents speaking push console archives "
    "server apps bench testing events audio"
).split()
"""The packages and modules of ``pipeline``, each before those that may import it. Left out: the commands, which anything may start."""
COMMANDS = ("__main__", "check", "live", "models", "nmt", "serve", "translate")

FILES = {
    tuple(path.relative_to(ROOT).with_suffix("").parts): path for path in sorted((ROOT / "pipeline").rglob("*.py"))
}


@cache
def statements(module: tuple[str, ...]) -> list[tuple[tuple[str, ...], list[str]]]:
    """The module or package that each relative import of a module names, except for types alone, and the names taken from it."""
    tree = ast.parse(FILES[module].read_text("utf-8"))
    for_types = {
        id(node)
        for test in ast.walk(tree)
        if isinstance(test, ast.If) and ast.unparse(test.test) == "TYPE_CHECKING"
        for node in ast.walk(test)
    }
    return [
        ((*module[: -node.level], *(node.module.split(".") if node.module else ())), [each.name for each in node.names])
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.level and id(node) not in for_types
    ]


@cache
def door(package: tuple[str, ...]) -> dict[str, str]:
    """The names that a package gives to others, and the module of each."""
    for node in ast.walk(ast.parse(FILES[*package, "__init__"].read_text("utf-8"))):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "door":
            modules: dict[str, str] = ast.literal_eval(node.args[1])
            return {name: module for module, names in modules.items() for name in names.split()}
    return {}


def imported(module: tuple[str, ...]) -> set[tuple[str, ...]]:
    """The modules that one imports anywhere in it, except for types alone; through a door, those behind it."""
    found: set[tuple[str, ...]] = set()
    for place, names in statements(module):
        for name in names:
            inner = (*place, name)
            if (*place, "__init__") not in FILES:
                found.add(place)
            elif (home := door(place).get(name)) is not None:
                behind = (*place, *home.split("."))
                found.add(behind if behind in FILES else (*behind, "__init__"))
            else:
                found.add(inner if inner in FILES else (*place, "__init__"))
    return found - {module}


@pytest.mark.slow
def test_no_modules_import_each_other():
    try:
        TopologicalSorter({module: imported(module) for module in FILES}).prepare()
    except CycleError as error:
        pytest.fail(" → ".join(".".join(module) for module in error.args[1]))


@pytest.mark.slow
def test_nobody_else_asks_for_the_class_of_a_recogniser_or_a_translator():
    """Others ask for abilities: the protocols of ``core.asr.recognizer`` and ``core.nmt.translator``."""
    owners = ("core", "backends")
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


def test_the_core_imports_numpy_and_of_ours_only_languages_and_the_glossary():
    below = {"_door", "errors", "names", "languages", "glossary", "core"}
    core = [module for module in FILES if module[1] == "core"]
    assert [(".".join(module), other) for module in core for other in imported(module) if other[1] not in below] == []
    others = {
        name.partition(".")[0]
        for module in core
        for node in ast.walk(ast.parse(FILES[module].read_text("utf-8")))
        if isinstance(node, ast.Import | ast.ImportFrom) and not getattr(node, "level", 0)
        for name in ([node.module] if isinstance(node, ast.ImportFrom) else [each.name for each in node.names])
    }
    assert others - sys.stdlib_module_names == {"numpy", "sentencex"}


ROOMS = [
    path.parent.name
    for path in sorted((ROOT / "pipeline").glob("*/__init__.py"))
    if path.parent.name not in ("audio", "bench")
]
"""All folders, without the documented names of ``audio``; nobody imports ``bench``."""
WHOLE = ("languages.rules", "archives.other_language", "media.subtitles.escapes")
"""What is imported as a module, whose name belongs to those of its functions."""
OUTSIDE = ("events", "audio", "testing")
"""Documented names for what is in rooms."""


@pytest.mark.parametrize("room", ROOMS)
def test_nobody_imports_past_the_door_of_a_room(room):
    given = door(("pipeline", room))
    deep = [
        f"{'.'.join(module)}: from {'.'.join(place)} import {name}"
        for module in FILES
        if module[1] != room and module[1] not in OUTSIDE
        for place, names in statements(module)
        for name in names
        if place[1:2] == (room,) and not ".".join((*place[1:], name)).startswith(WHOLE)
        if len(place) > 2 or name not in given
    ]
    print(f"{room}: {len(given)} names, {len(deep)} imports past the door")
    assert deep == []


@pytest.mark.parametrize("room", ROOMS)
def test_a_door_names_what_is_behind_it_and_has_its_types(room):
    text = FILES["pipeline", room, "__init__"].read_text("utf-8")
    (types,) = (node for node in ast.parse(text).body if isinstance(node, ast.If))
    given = door(("pipeline", room))
    assert {node.module for node in types.body if isinstance(node, ast.ImportFrom)} == set(given.values())
    assert not [name for name in given if name.startswith("_")]
    own = {path.stem for path in (ROOT / "pipeline" / room).iterdir()}
    assert not own & set(given), "the module of the name would take its place"
    package = import_module(f"pipeline.{room}")
    assert package.__all__ == sorted(given)
    assert [name for name in given if not hasattr(package, name)] == []
    assert not hasattr(package, "nothing")


LIVE = """
import pipeline.live
from pipeline.apps.live import run
run(["examples/audio/travel.wav", "--config", "demo", "--fast"])
"""
SERVE = """
import json, os, re, signal, sys, wave
from threading import Thread
from websockets.sync.client import connect
import pipeline.serve
from pipeline.apps import serve

def session(address):
    try:
        talk(address)
    finally:
        os.kill(os.getpid(), signal.SIGINT)

def talk(address):
    with wave.open("examples/audio/travel.wav") as recording, connect(f"ws{address}/v1/session", proxy=None) as socket:
        socket.send(json.dumps({"type": "start", "source": "en"}))
        socket.send(recording.readframes(5 * 16_000))
        socket.send(json.dumps({"type": "end"}))
        types.update(json.loads(message)["type"] for message in socket)

def tell(text):
    if address := re.match("serving on http(://[^/]*)", text):
        assert "pipeline.core.asr.live.drafts" in sys.modules  # importing it would hold the loop of the first session
        Thread(target=session, args=address.groups()).start()

serve.tell = tell
types = set()
serve.run("--config demo --config demo-pt-en --config demo-zh-en --port 0".split())
assert "translation" in types
"""


def loaded_by(program: str) -> tuple[int, set[str]]:
    """The lines of ours that a program loads, and the packages of others."""
    count = """
import sys
own = {module.__file__ for name, module in sys.modules.items() if name.startswith("pipeline") and module.__file__}
print(sum(len(open(file, "rb").readlines()) for file in own))
print(*{name.partition(".")[0] for name in sys.modules} - sys.stdlib_module_names)
"""
    done = subprocess.run(
        [sys.executable, "-c", program + count], capture_output=True, text=True, check=True, cwd=ROOT, timeout=HANG_S
    )
    lines, packages = done.stdout.splitlines()[-2:]
    return int(lines), set(packages.split())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("program", "most"),
    [
        pytest.param("from pipeline.core import *", 8_200, id="the engine"),
        pytest.param(
            "import pipeline.apps.translate, pipeline.archives.several",
            5_400,
            id="what shares recordings out to processes",
        ),
    ],
)
def test_what_runs_no_model_loads_no_library_of_models(program, most):
    lines, packages = loaded_by(program)
    print(f"{lines:,} lines")
    assert lines <= most
    assert not packages & {"av", "ctranslate2", "faster_whisper", "onnxruntime", "sentencepiece", "webrtcvad"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("program", "most"),
    [pytest.param(LIVE, 22_000, id="live"), pytest.param(SERVE, 26_900, id="serve, and one session")],
)
def test_a_run_loads_what_it_needs(program, most):
    """A part that few runs need is imported where they need it."""
    lines, _ = loaded_by(program)
    print(f"{lines:,} lines")
    assert lines <= most


def test_the_package_loads_nothing_before_a_name_is_asked_for():
    lines, packages = loaded_by("import pipeline")
    assert lines <= 200
    assert "numpy" not in packages
