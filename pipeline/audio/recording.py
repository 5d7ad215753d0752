"""Recordings, as an app imports them."""

from ..media.audio.recording import Recording as Recording
from ..media.audio.recording import read_audio as read_audio
