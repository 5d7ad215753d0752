"""Hatch's build hook: installs pipeline/_alias.py as the name that the package does not have itself."""

from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class AliasHook(BuildHookInterface[Any]):
    """A wheel has the package as ``speech_translate``; an editable installation has that of the checkout, ``pipeline``."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":
            build_data["force_include_editable"]["pipeline/_alias.py"] = "speech_translate.py"
        else:
            build_data["force_include"]["pipeline/_alias.py"] = "pipeline.py"
