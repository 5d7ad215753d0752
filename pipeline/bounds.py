"""The allowed values of an option, stored as metadata of its dataclass field."""

from __future__ import annotations

from dataclasses import Field, field
from typing import Any, TypeVar

T = TypeVar("T")
_RANGE, _CHOICES = "range", "choices"


def within(default: T, smallest: float, largest: float) -> T:
    """A field for a number from ``smallest`` to ``largest``; None is allowed if it is the ``default``."""
    return field(default=default, metadata={_RANGE: (smallest, largest)})


def one_of(default: T, *choices: object) -> T:
    """A field for one of ``choices``; None is allowed if it is the ``default``."""
    return field(default=default, metadata={_CHOICES: choices})


def allowed_range(option: Field[Any]) -> tuple[float, float] | None:
    """The smallest and the largest value of a field made by ``within``; None for any other field."""
    return option.metadata.get(_RANGE)


def allowed_choices(option: Field[Any]) -> tuple[object, ...] | None:
    """The allowed values of a field made by ``one_of``; None for any other field."""
    return option.metadata.get(_CHOICES)
