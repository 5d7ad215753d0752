"""python -m pipeline.nmt: lines of text on standard input, translations on standard output."""

from __future__ import annotations

from .apps import entry_point

main = entry_point(".nmt", "python -m pipeline.nmt")

if __name__ == "__main__":
    main()
