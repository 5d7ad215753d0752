"""Property tests draw the same examples in every run, and a slow machine fails none."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("steady", deadline=None, derandomize=True)
settings.load_profile("steady")
