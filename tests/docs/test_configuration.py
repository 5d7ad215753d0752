"""docs/configuration.md is generated from the option dataclasses, and lists every key."""

import dataclasses
import re
import tomllib
from pathlib import Path

import pytest

from pipeline.config import PipelineConfig, parse_config
from pipeline.core.bounds import within
from tests.conftest import ROOT
from tests.docs.pages import script

PAGE = (ROOT / "docs" / "configuration.md").read_text("utf-8")
generate = script("generate")


def test_the_page_is_what_is_generated():
    assert generate.configuration_page() == PAGE, "run: python docs/generate.py"


def test_the_tables_of_the_api_are_what_is_generated():
    page = generate.API.read_text("utf-8")
    assert generate.api_page(page) == page, "run: python docs/generate.py"
    named = re.findall(r"^::: .*\.(\w+)$", page, re.MULTILINE)
    assert re.findall(r"^\| `(\w+)` \| \S", page, re.MULTILINE) == named


def test_every_key_has_a_row():
    sections = dict(re.findall(r"^## `\[([\w.]+)\]`\n(.*?)(?=^## |\Z)", PAGE, re.DOTALL | re.MULTILINE))
    listed = {name: re.findall(r"^\| `(\w+)` ", text, re.MULTILINE) for name, text in sections.items()}
    config = PipelineConfig()
    for section in dataclasses.fields(config):
        if section.name == "nmt_overrides":  # [nmt.TARGET] has the keys of [nmt]
            continue
        keys = [
            "target" if key.name == "targets" else key.name for key in dataclasses.fields(getattr(config, section.name))
        ]
        assert listed[section.name] == [key for key in keys if f"{section.name}.{key}" not in sections]
    assert listed["asr.draft"] == ["model", "revision", "backend"]
    assert "nmt.TARGET" in sections


def test_the_example_and_every_default_are_accepted():
    (example,) = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    parse_config(tomllib.loads(example), Path("example.toml"))
    for name, text in re.findall(r"^## `\[([\w.]+)\]`\n(.*?)(?=^## |\Z)", PAGE, re.DOTALL | re.MULTILINE):
        rows = re.findall(r"^\| `(\w+)` \| `(.+?)` ", text, re.MULTILINE)
        values = "\n".join([f"[{name}]", *(f"{key} = {default}" for key, default in rows)])
        if name != "nmt.TARGET":
            parse_config(tomllib.loads(values), Path("defaults.toml"))


def test_a_field_without_a_comment_is_refused():
    with pytest.raises(ValueError, match=r"write a comment above Bare\.length"):
        generate.descriptions(Bare)
    assert generate.descriptions(Described) == {"length": "The length of `Bare`. In metres.", "width": "a \\| b"}


@dataclasses.dataclass(frozen=True)
class Bare:
    # About something else.

    length: int = within(1, 0, 2)


@dataclasses.dataclass(frozen=True)
class Described:
    # The length
    # of ``Bare``.
    length: int = 1  # In metres.
    width: int = 2  # a | b
