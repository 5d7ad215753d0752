"""Describe the machine: processor, cores, package versions."""

from __future__ import annotations

import platform
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from pipeline.run.cores import usable_cores

_PACKAGES = ("onnxruntime", "ctranslate2", "numpy")
# CPU features by which the engines choose their vector kernels.
_FEATURES = ("avx2", "avx_vnni", "avx512f", "avx512_vnni", "amx_int8", "asimd", "asimddp", "i8mm")


@dataclass(frozen=True)
class Machine:
    processor: str
    cores: int
    """Cores that this process may use."""
    features: tuple[str, ...]
    """Vector instructions; empty if unknown."""
    system: str
    versions: dict[str, str]


def this_machine() -> Machine:
    """Describe the machine and the packages that are compared."""
    lines = _cpuinfo()
    processor = lines.get("model name") or platform.processor() or platform.machine()
    flags = set((lines.get("flags") or lines.get("Features") or "").split())
    return Machine(
        processor,
        usable_cores(),
        tuple(name for name in _FEATURES if name in flags),
        f"{platform.system()} {platform.machine()}, Python {platform.python_version()}",
        {name: found for name in _PACKAGES if (found := _version(name))},
    )


def _cpuinfo() -> dict[str, str]:
    """Return the fields of the first processor in /proc/cpuinfo; empty if the system is not Linux."""
    path = Path("/proc/cpuinfo")
    if not path.is_file():
        return {}
    first = path.read_text("utf-8", "replace").split("\n\n")[0]
    pairs = (line.partition(":") for line in first.splitlines())
    return {key.strip(): value.strip() for key, _, value in pairs}


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""
