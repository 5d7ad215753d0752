"""Microphones, as an app imports them."""

from ..media.audio.microphone import Microphone as Microphone
