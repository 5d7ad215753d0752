"""python -m pipeline.models: list, fetch, compile and inspect models."""

from __future__ import annotations

from .apps.entry import program

main = program(".models", "python -m pipeline.models")

if __name__ == "__main__":
    main()
