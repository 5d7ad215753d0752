"""User controls and displays of a live run: interrupts, pause, status line, notices."""

from __future__ import annotations

import logging
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ..console import ENDING, handled, tell
from ..core import (
    AudioLost,
    DeviceBack,
    DeviceLost,
    InputLevel,
    LoadChanged,
    Notice,
    Paused,
    PipelineEvent,
    Resumed,
    TranslationLost,
)

if TYPE_CHECKING:
    from ..media import Microphone

# Range of the level meter: speech close to a microphone is around -20 dBFS, a quiet room below -55.
_METER_CELLS = 10
_METER_FLOOR_DBFS = -60.0


def notice_line(notice: Notice, *, drafts: bool = True) -> str:
    """A notice as a line for display. ``drafts``: the run has drafts unless it is behind."""
    match notice:
        case DeviceLost(at_s, device, reason):
            return f"[{_clock(at_s)}] the input {device!r} is gone: {reason}; waiting for it"
        case DeviceBack(at_s, device, away_s):
            return f"[{_clock(at_s)}] the input {device!r} is back after {away_s:.0f} s"
        case InputLevel(at_s, device, silent=True):
            return f"[{_clock(at_s)}] the input {device!r} records silence; if somebody speaks, unmute it or choose another with --device"
        case InputLevel(at_s, device, clipped=clipped) if clipped:
            return f"[{_clock(at_s)}] the input {device!r} is too loud: {clipped:.1%} of its samples are clipped; turn it down"
        case InputLevel(at_s, device, level_dbfs):
            return f"[{_clock(at_s)}] the input {device!r} records at {level_dbfs:.0f} dBFS"
        case AudioLost(at_s, lost_s, reason):
            much = f"{lost_s:.1f} s of audio were" if lost_s else "audio was"
            return f"[{_clock(at_s)}] {much} lost: {reason}"
        case Paused(at_s):
            return f"[{_clock(at_s)}] paused"
        case Resumed(at_s):
            return f"[{_clock(at_s)}] listening again"
        case LoadChanged(level, lag_s):
            behind = "no drafts until text has caught up" if drafts else "text comes late"
            return f"lag {lag_s:.1f} s: {behind if level else 'caught up'}"
        case TranslationLost(language, reason):
            return f"the translation into {language} has failed: {reason}; the other languages go on"


def meter(dbfs: float) -> str:
    """A level as a bar, for display."""
    filled = round(_METER_CELLS * (1 - max(_METER_FLOOR_DBFS, min(0.0, dbfs)) / _METER_FLOOR_DBFS))
    return "▮" * filled + "▯" * (_METER_CELLS - filled)


def status_line(lag_s: float, microphone: Microphone | None) -> str:
    """The status of the run in one line: lag and, for a microphone, its state and level."""
    lag = f"lag {lag_s:.1f} s"
    if microphone is None:
        return lag
    if not microphone.connected:
        from ..media import SILENCE_DBFS

        return f"⚠ waiting for {microphone.name}  {meter(SILENCE_DBFS)}  {lag}"
    state = "⏸ paused" if microphone.paused else "● listening"
    return f"{state}  {meter(microphone.level_dbfs)}  {lag}"


class NoticeSink:
    """Prints notices on standard error; a terminal shows them above the growing subtitles."""

    def __init__(self, *, drafts: bool = True) -> None:
        """``drafts``: the run has drafts unless it is behind."""
        self._drafts = drafts

    def write(self, event: PipelineEvent) -> None:
        if isinstance(event, Notice):
            lost = isinstance(event, AudioLost | TranslationLost)
            tell(notice_line(event, drafts=self._drafts), logging.ERROR if lost else logging.WARNING)

    def close(self) -> None:
        """Do nothing: there is no resource to release."""


@contextmanager
def controls(
    *, interrupted: Callable[[], None], hung_up: Callable[[], None], microphone: Microphone | None
) -> Iterator[None]:
    """Handle signals, and for a microphone the space bar, on the running event loop.

    ``interrupted`` is called for Ctrl-C and SIGTERM, ``hung_up`` when the terminal is closed (SIGHUP; not under nohup).
    SIGUSR1 and the space bar pause and resume the microphone.
    """
    handlers = dict.fromkeys(ENDING, interrupted)
    if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        handlers[signal.SIGHUP] = hung_up
    if microphone is None:
        with handled(handlers):
            yield
        return
    from ..console import space_bar

    pause_or_resume = _pause_or_resume(microphone)
    if hasattr(signal, "SIGUSR1"):
        handlers[signal.SIGUSR1] = pause_or_resume
    with handled(handlers), space_bar(pause_or_resume):
        yield


def _pause_or_resume(microphone: Microphone) -> Callable[[], None]:
    return lambda: microphone.resume() if microphone.paused else microphone.pause()


def _clock(seconds: float) -> str:
    return f"{int(seconds) // 3600}:{int(seconds) % 3600 // 60:02}:{int(seconds) % 60:02}"
