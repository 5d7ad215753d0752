"""python -m pipeline.nmt: lines of text on standard input, translations on standard output."""

from __future__ import annotations

from .apps.entry import program

main = program(".nmt", "python -m pipeline.nmt")

if __name__ == "__main__":
    main()
