"""Services that captions are pushed to."""

from typing import TYPE_CHECKING

from .._door import door

if TYPE_CHECKING:
    from .push import *
else:
    __all__, __getattr__ = door(__name__, {"push": "PushSink Pusher"})
