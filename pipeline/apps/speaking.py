"""The options --speak and --speak-to: a voice for the translations. What speaks is imported only if they are given."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ..console import some_path, some_text, tell
from ..errors import UsageError
from ..languages import nearest
from ..store import HIBARI

if TYPE_CHECKING:
    from ..archives import Output
    from ..media import MakeSink
    from ..server import SessionVoices
    from ..speaking import Speaker, Voice

_TRACK = ".wav"


def add_speak_arguments(group: argparse._ActionsContainer) -> None:
    group.add_argument(
        "--speak",
        nargs="?",
        const=HIBARI.size,
        type=some_path,
        metavar="VOICE",
        help=f"also speak the translations: {HIBARI.size} (English, the default), a voice of Kokoro such as pf_dora, or the .onnx "
        "file or folder of a Piper voice (see docs/live.md)",
    )
    group.add_argument(
        "--speak-to",
        type=some_text,
        metavar="ID|NAME|FILE.wav",
        help="where: an output device, or a file (default: the default device)",
    )


def track_of(options: argparse.Namespace) -> Path | None:
    """The file of --speak-to; None if it is a device."""
    to = options.speak_to
    return some_path(to) if to is not None and to.lower().endswith(_TRACK) else None


def uses_device(options: argparse.Namespace) -> bool:
    """Whether the run plays on an output device."""
    return options.speak is not None and track_of(options) is None


class Speech:
    """The voice and output of a run; none without --speak."""

    def __init__(self, options: argparse.Namespace, targets: Sequence[str]) -> None:
        """Load the voice.

        Raises:
            UsageError, ModelError: the options do not fit each other, there is no such voice, or it speaks no target.
        """
        self._voice: Voice | None = None
        self._speaker: Speaker | None = None
        self._to = options.speak_to
        self._language = ""
        self._track = track_of(options)
        if options.speak is None:
            if self._to is not None:
                raise UsageError("--speak-to says where --speak is heard; give --speak as well")
            return
        if options.loopback and self._to is None:
            raise UsageError(
                "--loopback hears what this computer plays, and so would hear --speak; give --speak-to with another device, or "
                "FILE.wav"
            )
        if options.fast and self._track is None:
            raise UsageError(
                "--speak is heard while people speak, but --fast does not run in real time; give --speak-to FILE.wav, or "
                "leave one of the two out"
            )
        from ..speaking import load_voice

        self._voice = voice = load_voice(options.speak)
        if not (spoken := nearest(voice.language, targets)):
            raise UsageError(
                f"the voice {voice.name} speaks {voice.language}, which is no target; there is {', '.join(targets)}"
            )
        self._language = spoken[0]

    def add_track(self, makers: dict[str, MakeSink], outputs: dict[Output, Path]) -> None:
        """Add the file of --speak-to to those that are written, if it is one."""
        if self._voice is not None and self._track is not None:
            from ..speaking import SpokenTrack

            makers["wav"], outputs["wav", self._language] = partial(SpokenTrack, self._voice), self._track

    def open(self) -> list[Speaker]:
        """The sink that speaks to a device, if one does.

        Raises:
            UsageError, DeviceError: there is no such device, or it cannot be opened.
        """
        if self._voice is None or self._track is not None:
            return []
        from ..speaking import DeviceOutput, Speaker

        self._speaker = Speaker(self._voice, self._language, DeviceOutput(self._to, self._voice.rate))
        return [self._speaker]

    def finish(self) -> None:
        """Wait until everything has been heard."""
        if self._speaker is not None:
            self._speaker.finish()

    def summarized(self) -> bool:
        """Tell what was spoken; False if sentences were lost, because the device stopped or the voice failed."""
        if self._speaker is None:
            return True
        if summary := self._speaker.summary():
            tell(summary)
        return not self._speaker.lost


def voices_for(
    paths: Sequence[Path], targets: Sequence[str], listeners: int
) -> Callable[[Sequence[str]], SessionVoices] | None:
    """Load the voices of a server's --speak; makes those of a session from its targets.

    ``listeners``: the most in each language of a session.
    """
    if not paths:
        return None
    from ..server import SessionVoices
    from ..speaking import load_voice

    voices = [load_voice(path) for path in paths]
    for voice in voices:
        if not nearest(voice.language, targets):
            tell(
                f"the voice {voice.name} is heard only if somebody chooses its language: no target is {voice.language}"
            )
    return lambda of_session: SessionVoices(voices, of_session, listeners)
