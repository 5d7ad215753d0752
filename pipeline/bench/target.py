"""The benchmarks measure the translation into one language."""

from __future__ import annotations

from pipeline.config import PipelineConfig
from pipeline.errors import UsageError


def only_target(config: PipelineConfig) -> str:
    """The target language.

    Raises:
        UsageError: there are several.
    """
    targets = config.languages.targets
    if len(targets) > 1:
        raise UsageError(
            f"the targets are {', '.join(targets)}, but one translation is measured at a time; choose one with --target"
        )
    return targets[0]
