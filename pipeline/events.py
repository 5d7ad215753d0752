"""The events of a run, as an app imports them; they are defined in ``pipeline.core.events``."""

from .core.events import *  # noqa: F403
