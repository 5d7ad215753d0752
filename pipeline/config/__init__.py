"""What is configured, and the models of a configuration."""

from typing import TYPE_CHECKING

from .._door import door

if TYPE_CHECKING:
    from .config import *
    from .loading import *
    from .resources import *
else:
    __all__, __getattr__ = door(
        __name__,
        {
            "config": "PipelineConfig load_config parse_config with_overrides",
            "loading": "SharedModels load_models load_shared load_translations",
            "resources": "DEMO_SPEECH named_configs",
        },
    )
