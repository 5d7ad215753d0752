"""The commands; ``python -m pipeline.live`` and the others are thin entry points."""
