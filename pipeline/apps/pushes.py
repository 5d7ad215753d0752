"""The option --push: where text is sent while people speak. What sends it is imported only if it is given."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from ..console import some_secret
from ..errors import UsageError
from ..languages import nearest
from ..media import SubtitleRules
from ..plugins import Table

if TYPE_CHECKING:
    from ..push import PushSink

_OWN = ("zoom", "youtube", "webhook", "obs", "hls")
PUSHES = Table("pushes", "kind of --push", {kind: f"push.{kind}:Push" for kind in _OWN})
"""Each is a class of ``PushSink``s, made of an address, languages and rules."""


class Where(NamedTuple):
    """Where captions are pushed to: a parsed --push."""

    kind: str
    language: str
    """A target; "": all of them."""
    where: str
    """An address or a folder."""


def some_push(text: str) -> Where:
    """Argument type: KIND=WHERE, KIND.LANGUAGE=WHERE, or KIND=@FILE for an address that others should not see."""
    name, _, where = text.partition("=")
    kind, _, language = name.partition(".")
    if kind not in PUSHES or not where:
        raise argparse.ArgumentTypeError(f"{name!r} is not one of {', '.join(f'{each}=…' for each in PUSHES)}")
    return Where(kind, language, some_secret(where))


def add_push_argument(group: argparse._ActionsContainer) -> None:
    group.add_argument(
        "--push",
        type=some_push,
        action="append",
        default=[],
        metavar="KIND=WHERE",
        help=f"also send each finished sentence: {', '.join(_OWN)}, or one of an installed package; may be given again (see docs/live.md)",
    )


def open_pushes(wanted: Sequence[Where], targets: Sequence[str], rules: SubtitleRules) -> list[PushSink]:
    """Open the sinks of --push."""
    chosen: list[list[str]] = []
    for kind, language, _ in wanted:
        named = [next(iter(nearest(language, targets)), "")] if language else list(targets)
        if not named[0]:
            raise UsageError(
                f"--push {kind}.{language} is for a language that is no target; there is {', '.join(targets)}"
            )
        if len(named) > 1 and not getattr(PUSHES.load(kind), "several_languages", False):
            raise UsageError(
                f"--push {kind} takes one of the languages {', '.join(targets)}: write {kind}.{targets[0]}=…"
            )
        chosen.append(named)
    sinks: list[PushSink] = []
    try:
        for (kind, _, where), languages in zip(wanted, chosen, strict=True):
            sinks.append(PUSHES.make(kind, where, languages, rules))
    except BaseException:
        for sink in sinks:
            sink.close()
        raise
    return sinks
