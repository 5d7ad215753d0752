"""python -m pipeline.serve: a server for browsers and programs, and its page."""

from __future__ import annotations

from .apps import entry_point

main = entry_point(".serve", "python -m pipeline.serve")

if __name__ == "__main__":
    main()
