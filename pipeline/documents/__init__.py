"""Subtitle files that are translated."""

from typing import TYPE_CHECKING

from .._door import door

if TYPE_CHECKING:
    from .formats import *
    from .translating import *
else:
    __all__, __getattr__ = door(
        __name__,
        {
            "formats": "KINDS WRITTEN_KINDS converted decoded read_document",
            "translating": "markup_free too_long translated_cues",
        },
    )
