"""What the commands do; ``python -m pipeline.live`` and the others are thin entry points of these."""
