"""Tables of what can be had in several kinds, such as recognisers: ours, and what installed packages add by entry points."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from functools import cache
from importlib import import_module
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from .errors import PipelineError, UsageError, one_line

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


class Table(Mapping[str, str]):
    """Name → where its object is: "module:attribute", or "module". The module is imported when the object is asked for.

    Entry points of other packages are read when a name is asked for that is not ours, and when all names are told. They cannot
    replace ours. Those with a dot in their name are left out: in options and journals, a dot ends a name.
    """

    def __init__(self, group: str, kind: str, own: Mapping[str, str]) -> None:
        """``group``: of the entry points, after "speech_translate.". ``kind``: for messages. ``own``: ours; modules are below this package."""
        self.group, self.kind, self.own = group, kind, own

    def __getitem__(self, name: str) -> str:
        return self.own[name] if name in self.own else _entry_points(self.group)[name].value

    def __iter__(self) -> Iterator[str]:
        return iter({**self.own, **_entry_points(self.group)})

    def __len__(self) -> int:
        return len(list(iter(self)))

    def load(self, name: str) -> Any:
        """The object of a name.

        Raises:
            UsageError: there is none, or that of another package cannot be imported.
        """
        if name in self.own:
            module, _, attribute = self.own[name].partition(":")
            imported = import_module(f"{__package__}.{module}")
            return attrgetter(attribute)(imported) if attribute else imported
        if name not in self:
            raise UsageError(f"there is no {self.kind} {name!r}; there is {', '.join(self)}")
        with _blamed(_entry_points(self.group)[name]):
            return _entry_points(self.group)[name].load()

    def make(self, name: str, *arguments: Any, **options: Any) -> Any:
        """What the object of a name returns.

        Raises:
            UsageError: see ``load``; or that of another package fails.
            PipelineError: its own.
        """
        make = self.load(name)
        with nullcontext() if name in self.own else _blamed(_entry_points(self.group)[name]):
            return make(*arguments, **options)


@cache
def _entry_points(group: str) -> dict[str, EntryPoint]:
    from importlib.metadata import entry_points  # slow

    points = entry_points(group=f"speech_translate.{group}")
    return {point.name: point for point in points if "." not in point.name}


@contextmanager
def _blamed(point: EntryPoint) -> Iterator[None]:
    """Say of which package and entry point an error is."""
    try:
        yield
    except PipelineError:
        raise
    except Exception as error:
        package = point.dist.name if point.dist is not None else "?"
        where = f"the entry point {point.name} = {point.value} ({point.group}) of the package {package}"
        advice = "check its files and addresses" if isinstance(error, OSError) else "update or remove it"
        raise UsageError(f"{where} failed: {type(error).__name__}: {one_line(error)}; {advice}") from error
