"""python -m pipeline.check: what in subtitle files breaks the rules of layout."""

from __future__ import annotations

from .apps import entry_point

main = entry_point(".check", "python -m pipeline.check")

if __name__ == "__main__":
    main()
