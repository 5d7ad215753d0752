"""Paths of the configurations and the demo speech: inside an installed package, or beside it in a checkout."""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parents[1]
_BUNDLED = _PACKAGE / "_bundled"
_ROOT = _BUNDLED if _BUNDLED.is_dir() else _PACKAGE.parent

CONFIGS = _ROOT / "configs"
DEMO_SPEECH = _ROOT / "examples" / "audio" / "travel.wav"


def named_configs() -> list[str]:
    """The configuration names that ``--config`` accepts besides a path."""
    return sorted(path.stem for path in CONFIGS.glob("*.toml"))
