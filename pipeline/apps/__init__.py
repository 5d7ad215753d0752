"""The commands; ``python -m pipeline.live`` and the others are thin entry points."""

from typing import TYPE_CHECKING

from .._door import door

if TYPE_CHECKING:
    from .entry import *
    from .options import *
    from .program import *
    from .translate import *
else:
    __all__, __getattr__ = door(
        __name__,
        {
            "entry": "entry_point",
            "options": "add_model_arguments configured",
            "program": "main",
            "translate": "for_recordings",
        },
    )
