"""Write docs/configuration.md from the option dataclasses, and the tables of docs/api.md: python docs/generate.py

A key's description is the comment above its field, or at the end of its line. Defaults and allowed values are those that
``pipeline.config`` checks. A test compares the page with what this module returns.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import json
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from pipeline.backends.asr_options import DraftModel
from pipeline.config.config import NmtOverride, PipelineConfig
from pipeline.core.bounds import allowed_choices, allowed_range

PAGE = Path(__file__).parent / "configuration.md"
API = PAGE.with_name("api.md")

_HEAD = """\
<!-- Written by docs/generate.py from the comments in the code. Change those, then run: python docs/generate.py -->

# Configuration

A configuration is a TOML file. Name it with `--config FILE`; `configs/` has six to start from, which `--config demo`,
`demo-pt-en`, `demo-zh`, `demo-zh-en`, `en-zh` and `zh-en` select by name. Every key has a default. An unknown key or a wrong value is an error that names the
key and what is allowed. The directory of a model may be relative to the file.

```toml
[languages]
source = "en"
target = ["zh", "de"]

[asr]
model = "small"

[nmt]
model = "auto"

[drafts]
every_ms = 800
```
"""
_SECTION_NAME = re.compile(r"\[[a-z]+(\.\w+)?\]")
_IN_A_FILE = {"targets": "target"}
"""Field → key, where they differ."""


def configuration_page() -> str:
    """The page, in Markdown."""
    return "\n".join([_HEAD, *_sections()])


def _sections() -> Iterator[str]:
    for section in dataclasses.fields(PipelineConfig):
        if section.name == "nmt_overrides":
            continue
        kind = type(getattr(PipelineConfig(), section.name))
        yield _section(section.name, kind)
        if section.name == "asr":
            yield _section("asr.draft", DraftModel)
        if section.name == "nmt":
            yield f"## `[nmt.TARGET]`\n\n{_prose(inspect.getdoc(NmtOverride))}\n"


def _section(name: str, kind: type[Any]) -> str:
    described = descriptions(kind)
    rows = [
        f"| `{_IN_A_FILE.get(option.name, option.name)}` | {_default(option)} | {_allowed(option)} | {described[option.name]} |"
        for option in dataclasses.fields(kind)
        if not isinstance(option.default, DraftModel)  # a section of its own
    ]
    about = _prose(inspect.getdoc(kind).split("\n\nRaises:")[0])  # type: ignore[union-attr]
    return "\n".join(
        [f"## `[{name}]`\n", f"{about}\n", "| key | default | allowed | meaning |", "|---|---|---|---|", *rows, ""]
    )


def descriptions(kind: type[Any]) -> dict[str, str]:
    """Field → description of a dataclass, in Markdown.

    Raises:
        ValueError: a field has no comment.
    """
    found: dict[str, str] = {}
    for base in kind.__mro__:
        if not dataclasses.is_dataclass(base):
            continue
        source = inspect.getsource(base)
        lines = source.splitlines()
        (body,) = ast.parse(source).body
        assert isinstance(body, ast.ClassDef)
        for statement in body.body:
            if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
                comment = _comment(lines, statement)
                if not comment:
                    raise ValueError(f"{base.__module__}: write a comment above {base.__name__}.{statement.target.id}")
                found.setdefault(statement.target.id, _prose(comment).replace("|", "\\|"))
    return found


def _comment(lines: list[str], statement: ast.AnnAssign) -> str:
    """The comment lines directly above a statement, and the comment at its end."""
    first = statement.lineno - 1
    while lines[first - 1].lstrip().startswith("#"):
        first -= 1
    above = [line.strip().removeprefix("#").strip() for line in lines[first : statement.lineno - 1]]
    assert statement.end_lineno is not None
    after = lines[statement.end_lineno - 1][statement.end_col_offset :].strip().removeprefix("#").strip()
    return " ".join(filter(None, [*above, after]))


def _prose(text: str | None) -> str:
    """Text of a comment or docstring as Markdown in one line a paragraph."""
    assert text, "a section without a docstring"
    paragraphs = (" ".join(paragraph.split()) for paragraph in text.split("\n\n"))
    return "\n\n".join(_SECTION_NAME.sub(r"`\g<0>`", paragraph.replace("``", "`")) for paragraph in paragraphs)


def _default(option: dataclasses.Field[Any]) -> str:
    if option.default in (None, ""):
        return "not set"
    return f"`{_toml(option.default[0] if isinstance(option.default, tuple) else option.default)}`"


def _toml(value: object) -> str:
    """A value as TOML: strings, booleans and numbers are written as in JSON."""
    return json.dumps(value)


def _allowed(option: dataclasses.Field[Any]) -> str:
    choices, bounds = allowed_choices(option), allowed_range(option)
    if choices is not None:
        own = getattr(choices, "own", choices)  # no packages that happen to be installed here
        return ", ".join(f"`{_toml(choice)}`" for choice in own)
    if bounds is not None:
        return " to ".join(f"{bound:,}" for bound in bounds)
    if isinstance(option.default, bool):
        return "`true`, `false`"
    return "a code, or a list of codes" if isinstance(option.default, tuple) else "text"


def api_page(page: str) -> str:
    """The page with a table before the directives of each section: each name, and the first sentence about it."""
    head, *sections = re.split(r"^(?=## )", re.sub(r"^\|.*\n(\n)?", "", page, flags=re.MULTILINE), flags=re.MULTILINE)
    for number, section in enumerate(sections):
        rows = [
            f"| `{name.rpartition('.')[2]}` | {_about(name)} |" for name in re.findall(r"^::: (.+)$", section, re.M)
        ]
        table = "\n".join(["| name | what it is |", "|---|---|", *rows])
        sections[number] = section.replace("\n::: ", f"\n{table}\n\n::: ", 1)
    return head + "".join(sections)


def _about(name: str) -> str:
    module, _, attribute = name.rpartition(".")
    value = getattr(import_module(module), attribute)
    text = inspect.getdoc(value)
    if not callable(value):  # a union of types: the text below its assignment
        source = "".join(inspect.getsource(import_module(f"pipeline.core.{part}")) for part in ("events", "notices"))
        text = re.search(rf'^{attribute} = .*\n"""(.+?)"""', source, re.MULTILINE)[1]  # type: ignore[index]
    return re.split(r"(?<=\.)\s", _prose(text))[0].replace("|", "\\|")


if __name__ == "__main__":
    PAGE.write_text(configuration_page(), "utf-8")
    API.write_text(api_page(API.read_text("utf-8")), "utf-8")
