"""python -m pipeline.translate: subtitle files for recordings, as fast as the machine allows."""

from __future__ import annotations

from .apps import entry_point
from .backends import keep_freed_memory

# Freed memory is to be kept from before NumPy is imported, which starts threads.
main = entry_point(".translate", "python -m pipeline.translate", before=keep_freed_memory)

if __name__ == "__main__":
    main()
