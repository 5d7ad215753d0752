"""What values an option may have, said beside the option: metadata of a dataclass field."""

from __future__ import annotations

from dataclasses import Field, field
from typing import Any, TypeVar

T = TypeVar("T")
_RANGE, _CHOICES = "range", "choices"


def within(default: T, smallest: float, largest: float) -> T:
    """A field with a number from ``smallest`` to ``largest``; a ``default`` of None is allowed besides."""
    return field(default=default, metadata={_RANGE: (smallest, largest)})


def one_of(default: T, *choices: object) -> T:
    """A field with one of ``choices``; a ``default`` of None is allowed besides."""
    return field(default=default, metadata={_CHOICES: choices})


def allowed_range(option: Field[Any]) -> tuple[float, float] | None:
    """The smallest and the largest value of a field made by ``within``; None of another."""
    return option.metadata.get(_RANGE)


def allowed_choices(option: Field[Any]) -> tuple[object, ...] | None:
    """The values of a field made by ``one_of``; None of another."""
    return option.metadata.get(_CHOICES)
