"""HTTP and WebSocket server: one speaker and many readers per session, models shared by all sessions."""

from typing import TYPE_CHECKING

from .._door import door

if TYPE_CHECKING:
    from .access import *
    from .app import *
    from .capacity import *
    from .connections import *
    from .directory import *
    from .languages.offers import *
    from .languages.served import *
    from .limits import *
    from .protocols import *
    from .protocols.wyoming import *
    from .pushes import *
    from .service import *
    from .session_record import *
    from .speaking import *
    from .terms import *
else:
    __all__, __getattr__ = door(
        __name__,
        {
            "access": "Access is_host_name is_loopback is_origin is_unspecified",
            "app": "create_app",
            "capacity": "sessions_for slowest_window_s",
            "connections": "Settings sweep",
            "directory": "Directory",
            "languages.offers": "Offers",
            "languages.served": "ServedLanguages",
            "limits": "MOST_SESSIONS MOST_TARGETS ServerLimits",
            "protocols": "PROTOCOLS",
            "protocols.wyoming": "serving_wyoming",
            "pushes": "Pushes",
            "service": "Service",
            "session_record": "check_folder",
            "speaking": "SessionVoices",
            "terms": "proposed",
        },
    )
