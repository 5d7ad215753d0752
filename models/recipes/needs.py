"""Checks a recipe's packages before they are imported, and reports missing ones in one line."""

from __future__ import annotations

import importlib.util
import sys

TRAIN = ("torch", "transformers", "onnx", "opencc", "sacrebleu")


def require_packages(*names: str) -> None:
    """Exit with an error that lists the packages of ``names`` that are not installed."""
    if missing := [name for name in names if importlib.util.find_spec(name) is None]:
        sys.exit(
            f"missing packages: {', '.join(missing)}. Install them with: pip install torch==2.13.0 (the CPU build is "
            'enough), then pip install -e ".[train]"'
        )
