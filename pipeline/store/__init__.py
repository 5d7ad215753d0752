"""Models by name: a directory is used as it is; other names are fetched from the hub into the hub's own cache."""

from .listing import FileSet
from .resolve import ModelRef, resolve_model

__all__ = ["FileSet", "ModelRef", "resolve_model"]
