"""A second name for this package: installed beside it as a module of that name (see .ci/build_hook.py).

``pipeline.events`` is the very module ``speech_translate.events``, not a copy of it.
"""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.abc import Loader
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import CodeType, ModuleType
from typing import Any


class _Loader(Loader):
    """Loads a module by its own name."""

    def __init__(self, spec: Any) -> None:
        self._own = spec

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = import_module(self._own.name)
        self._own = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self._own  # importlib has set that of the second name

    def get_code(self, name: str) -> CodeType | None:
        """The module's code, for ``python -m``."""
        code: CodeType | None = self._own.loader.get_code(self._own.name)
        return code


class _Finder:
    """Finds the modules of a package below a second name."""

    def __init__(self, package: str, second: str) -> None:
        self._package, self._second = package, second

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        if not name.startswith(f"{self._second}."):
            return None
        spec = find_spec(self._package + name.removeprefix(self._second))
        if spec is None:
            return None
        is_package = spec.submodule_search_locations is not None
        return ModuleSpec(name, _Loader(spec), origin=spec.origin, is_package=is_package)


_PACKAGES = {"pipeline": "speech_translate", "speech_translate": "pipeline"}
"""Second name → what the package is called there: in a wheel, and in a checkout."""

if __spec__ is not None and (package := _PACKAGES.get(__spec__.name)):
    if __name__ == "__main__":
        import_module(f"{package}.__main__").main()
    sys.modules[__name__] = import_module(package)
    sys.meta_path.insert(0, _Finder(package, __name__))
