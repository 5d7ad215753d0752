"""Models by name: a directory is used as it is; other names are fetched from the hub into the hub's own cache."""

from pipeline.store.listing import FileSet
from pipeline.store.resolve import resolve_model

__all__ = ["FileSet", "resolve_model"]
