"""What the pages name exists: files, public names, and the messages of the program."""

import ast
import re

import pytest

import pipeline
from pipeline.apps.commands import COMMANDS
from pipeline.apps.translate import arguments
from pipeline.config.resources import named_configs
from pipeline.store.known import (
    HIBARI,
    KNOWN_MODELS,
    KNOWN_TRANSLATORS,
    KOKORO,
    KOKORO_STYLES,
    MOONSHINE,
    SOUNDS,
    VOICES,
)
from tests.conftest import ROOT
from tests.docs.pages import PAGES

LINKING = [*PAGES.values(), ROOT / "models" / "README.md", *(ROOT / "examples").rglob("README.md")]


@pytest.mark.parametrize("page", LINKING, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_linked_files_exist(page):
    links = re.findall(r"\]\(([^)\s#:]+)(?:#[^)\s]*)?\)", page.read_text("utf-8"))
    assert [link for link in links if not (page.parent / link).exists()] == []


def test_the_site_has_every_page():
    listed = re.findall(r": ([\w-]+\.md)$", (ROOT / "mkdocs.yml").read_text("utf-8"), re.MULTILINE)
    assert sorted(listed) == sorted(path.name for name, path in PAGES.items() if name.startswith("docs/"))


def test_getting_started_names_every_command():
    text = " ".join(PAGES["docs/index.md"].read_text("utf-8").split())
    listed = re.search(r"whose commands are (.*?) and (`\w+`);", text)
    assert listed is not None
    assert {*listed[1].split(", "), listed[2]} == {f"`{name}`" for name in COMMANDS}


def test_every_configuration_is_on_the_pages_and_in_the_help():
    help_text = " ".join(arguments().format_help().split())
    assert f"--config NAME|FILE {', '.join(named_configs())} (default: en-zh), or a TOML file" in help_text
    page = PAGES["docs/models.md"].read_text("utf-8")
    assert [name for name in named_configs() if f"`{name}`" not in page] == []


def test_make_serve_is_the_command_of_the_page():
    (command,) = re.findall(r"pipeline\.(serve .*?) --port", (ROOT / "Makefile").read_text("utf-8"))
    assert f"speech-translate {command}\n" in PAGES["docs/server.md"].read_text("utf-8")


def test_every_public_name_is_in_the_reference():
    named = re.findall(r"^::: pipeline\.(\w+)$", PAGES["docs/api.md"].read_text("utf-8"), re.MULTILINE)
    assert sorted(named) == sorted(pipeline.__all__)


def test_files_to_change_exist():
    table = PAGES["docs/architecture.md"].read_text("utf-8").split("## Where to change what")[1]
    found = 0
    for row in table.splitlines():
        folder = ROOT
        for name in re.findall(r"`([\w/]+(?:\.\w+|/))`", row.partition("|")[2].partition("|")[2]):
            path = ROOT / name if name.startswith(("pipeline/", "tests/", "docs/")) else folder / name
            assert path.exists(), name
            folder, found = path if name.endswith("/") else path.parent, found + 1
    assert found > 30


def test_places_on_a_word_s_way_exist():
    way = PAGES["docs/architecture.md"].read_text("utf-8").split("## How a word travels")[1].split("\n## ")[0]
    places = re.findall(r"`([a-z_/]+(?:\.py|/))`", way)
    assert [place for place in places if not (ROOT / place).exists() and not (ROOT / "pipeline" / place).exists()] == []
    assert len(places) > 15
    names = re.findall(r"`(?:[A-Za-z]+\.)?([A-Za-z_]+)`", way)
    code = "".join(path.read_text("utf-8") for path in (ROOT / "pipeline").rglob("*.py"))
    assert [name for name in names if re.search(rf"\b{name}\b", code) is None] == []


def test_explained_messages_are_the_program_s():
    texts: list[str] = []
    for path in (ROOT / "pipeline").rglob("*.py"):
        nodes = ast.walk(ast.parse(path.read_text("utf-8")))
        texts += [node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    page = PAGES["docs/troubleshooting.md"].read_text("utf-8").split("## Messages")[1]
    messages = [
        part for cell in re.findall(r"^\| (`.+?`) \|", page, re.MULTILINE) for part in re.findall("`(.+?)`", cell)
    ]
    assert len(messages) > 20
    lacking = [part for each in messages for part in each.split("…") if not any(part in text for text in texts)]
    assert lacking == []


def test_the_page_of_models_has_the_packages_and_hashes_of_all_weights():
    page = PAGES["docs/models.md"].read_text("utf-8").split("## Where weights come from")[1]
    rows = [row for row in page.splitlines() if row.startswith("| ")]
    for model in (*KNOWN_MODELS, MOONSHINE, VOICES, SOUNDS, HIBARI, KOKORO, *KNOWN_TRANSLATORS):
        if model.packages:
            weights = max(model.files, key=lambda file: file.size)
            assert [row for row in rows if f"| `{weights.name}` | `{weights.sha256}` | {model.licence}" in row], (
                model.hub_id
            )
            package, _, version = model.packages[0][0].partition("==")
            assert f"[{package}]" in page
            assert version in page
    assert f"| `{KOKORO_STYLES.name}` | `{KOKORO_STYLES.sha256}` |" in page
