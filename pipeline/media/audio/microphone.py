"""A microphone: an input device whose audio is kept until it is read."""

from __future__ import annotations

from ...core import OverloadOptions
from .capture import Capture
from .spool import SpooledSource


class Microphone(SpooledSource):
    """An input device, selected by number, by part of its name, or the default device. A live source.

    It records on its own thread, from ``start`` or the first ``read`` until ``close``. Audio not yet read is kept: the
    oldest minute in memory, the rest in a temporary file. Audio lost by the device, or beyond ``backlog_s``, is
    reported (``AudioLost``) and replaced by silence of the same length, so that times in the audio stay correct. The
    same holds while the device is paused or unplugged; see ``Capture``.
    """

    def __init__(
        self, device: str | None = None, *, rescan: bool = True, backlog_s: float = OverloadOptions.backlog_s
    ) -> None:
        """Find the device.

        Args:
            rescan: restart PortAudio to find a device that was plugged in again, because PortAudio lists devices only
                once. Use False if the app has other PortAudio streams in this process: a restart would end them.
            backlog_s: maximum audio kept, in seconds; beyond it, new audio is lost.

        Raises:
            UsageError: ``device`` matches no input device, or several.
            DeviceError: PortAudio is missing, or there is no input device.
        """
        self._capture = Capture(device, rescan=rescan)
        super().__init__(self._capture, backlog_s)

    @property
    def name(self) -> str:
        return self._capture.name

    @property
    def connected(self) -> bool:
        """False while the device is lost."""
        return self._capture.connected

    @property
    def paused(self) -> bool:
        return self._capture.paused

    @property
    def level_dbfs(self) -> float:
        """Level of the newest block."""
        return self._capture.level_dbfs

    def start(self) -> None:
        """Begin recording. Later calls do nothing.

        Raises:
            DeviceError: the device cannot be opened.
        """
        if not self.started:
            self._capture.start()
            super().start()

    def pause(self) -> None:
        """Deliver silence until ``resume``. Idempotent."""
        self._capture.pause()

    def resume(self) -> None:
        """Deliver recorded audio again. Idempotent."""
        self._capture.resume()
