"""The door of a room: the names that other rooms import from it, each loaded with its first use."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any


def door(package: str, modules: Mapping[str, str]) -> tuple[list[str], Callable[[str], Any]]:
    """``__all__`` and ``__getattr__`` of a package. ``modules``: each of its modules, and the names that it gives."""
    homes = {name: module for module, names in modules.items() for name in names.split()}

    def load(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        # Not import_module, whose imports -X importtime does not list.
        return getattr(__import__(f"{package}.{homes[name]}", fromlist=[name]), name)

    return sorted(homes), load
