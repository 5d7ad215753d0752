"""Files of words to mask: one a line, under the language that they are of. docs/glossary.md describes them."""

from __future__ import annotations

from pathlib import Path

from ..errors import UsageError
from ..languages import normalized_code

_COMMENT = "#"


def load_masked(file: str | None) -> tuple[tuple[str, str], ...]:
    """The words and phrases of a configured file, each with its language, "" for all of them. None: there are none.

    Raises:
        ConfigError: the file cannot be read, or it has mistakes, which are named by line.
    """
    if file is None:
        return ()
    from .files import check_mistakes, normalized_form, read_text
    from .table import TableError

    mistakes: list[tuple[int, str]] = []
    words: dict[tuple[str, str], None] = {}
    language = ""
    for number, line in enumerate(map(str.strip, read_text(Path(file), "list of masked words").splitlines()), 1):
        try:
            if line.startswith("[") and line.endswith("]"):
                language = normalized_code(line[1:-1])
            elif line and not line.startswith(_COMMENT):
                words[language, normalized_form(line)] = None
        except (TableError, UsageError) as mistake:
            mistakes.append((number, str(mistake)))
    check_mistakes(f"list of masked words {file}", mistakes)
    return tuple(words)
