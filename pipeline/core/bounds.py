"""The allowed values of an option, stored as metadata of its dataclass field, and the check of them."""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Collection
from dataclasses import Field, field
from functools import cache
from typing import Any, TypeVar

from ..errors import ConfigError

_T = TypeVar("_T")
_RANGE, _CHOICES = "range", "choices"


def within(default: _T, smallest: float, largest: float) -> _T:
    """A field for a number from ``smallest`` to ``largest``; None is allowed if it is the ``default``."""
    return field(default=default, metadata={_RANGE: (smallest, largest)})


def one_of(default: _T, *choices: object) -> _T:
    """A field for one of ``choices``; None is allowed if it is the ``default``."""
    return field(default=default, metadata={_CHOICES: choices})


def name_in(default: _T, table: Collection[str]) -> _T:
    """A field for a name of ``table``, which is asked when a value is checked."""
    return field(default=default, metadata={_CHOICES: table})


def allowed_range(option: Field[Any]) -> tuple[float, float] | None:
    """The smallest and the largest value of a field made by ``within``; None for any other field."""
    return option.metadata.get(_RANGE)


def allowed_choices(option: Field[Any]) -> Collection[object] | None:
    """The allowed values of a field made by ``one_of`` or ``name_in``; None for any other field."""
    return option.metadata.get(_CHOICES)


class CheckedOptions:
    """Base of the dataclasses of options. An integer becomes a float where the option is one: 1 for 1.0.

    Raises ConfigError: on creation, if a value has the wrong type or is not allowed.
    """

    def __post_init__(self) -> None:
        kind: Any = type(self)
        hints = _hints(kind)
        for option in dataclasses.fields(self):  # type: ignore[arg-type]  # every subclass is a dataclass
            value, hint = getattr(self, option.name), hints[option.name]
            if (problem := mistake(option, value, hint)) is not None:
                raise ConfigError(f"{type(self).__name__}.{problem}")
            if isinstance(value, int) and hint in (float, float | None):
                object.__setattr__(self, option.name, float(value))  # the class is frozen


@cache
def _hints(kind: Any) -> dict[str, Any]:
    return typing.get_type_hints(kind)


def mistake(option: Field[Any], value: object, hint: object) -> str | None:
    """The error in the value of an option: its name, what was found and what was expected. None: the value is allowed.

    ``hint``: the option's type.
    """
    union = isinstance(hint, types.UnionType)
    kinds: tuple[Any, ...] = typing.get_args(hint) if union else (typing.get_origin(hint) or hint,)
    if value is None and types.NoneType in kinds:
        return None
    accepted = (*kinds, int) if float in kinds else kinds
    if isinstance(value, bool) != (bool in kinds) or not isinstance(value, accepted):
        names = " or ".join(kind.__name__ for kind in kinds if kind is not types.NoneType)
        return f"{option.name} is {value!r}; expected {names}"
    choices = allowed_choices(option)
    if choices is not None and value not in choices:
        return f"{option.name} is {value!r}; allowed are {', '.join(map(str, choices))}"
    low, high = allowed_range(option) or (float("-inf"), float("inf"))
    if isinstance(value, int | float) and not low <= value <= high:
        # Python cannot convert an integer with thousands of digits to a string.
        shown = "too large" if isinstance(value, int) and abs(value) > 10**18 else value
        return f"{option.name} is {shown}; allowed is {low:g} to {high:g}"
    if isinstance(value, str) and not value and option.default != "":
        return f"{option.name} is empty; give a value or leave it out"
    return None
