"""python -m pipeline.models: list, fetch, compile and inspect models."""

from __future__ import annotations

from .apps import entry_point

main = entry_point(".models", "python -m pipeline.models")

if __name__ == "__main__":
    main()
