"""HTTP and WebSocket server: one speaker and many readers per session, models shared by all sessions."""

from typing import TYPE_CHECKING

from .._door import door

if TYPE_CHECKING:
    from .access import Access, is_host_name, is_loopback, is_origin, is_unspecified
    from .app import create_app
    from .capacity import sessions_for, slowest_window_s
    from .connections import Settings, sweep
    from .directory import Directory
    from .languages.offers import Offers
    from .languages.served import ServedLanguages
    from .limits import MOST_SESSIONS, MOST_TARGETS, ServerLimits
    from .protocols import PROTOCOLS
    from .protocols.wyoming import serving_wyoming
    from .pushes import Pushes
    from .service import Service
    from .session_record import check_folder
    from .speaking import SessionVoices
    from .terms import proposed
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
