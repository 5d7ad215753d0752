"""A microphone: what an input device records, kept until it is read."""

from __future__ import annotations

from pipeline.audio.capture import Capture
from pipeline.audio.spool import Spooled
from pipeline.run.overload import OverloadOptions


class Microphone(Spooled):
    """An input device, by number, by a part of its name, or the default one. A live source.

    It hears from ``start``, or the first ``read``, until ``close``, on a thread of its own, and keeps what is not yet
    read: the oldest minute in memory, the rest in a temporary file. What is lost, beyond ``backlog_s`` or by the device,
    is replaced by silence of its length and told (``AudioLost``): times in the audio stay those of the room. So they do
    while it is paused or unplugged; see ``Capture``.
    """

    def __init__(
        self, device: str | None = None, *, rescan: bool = True, backlog_s: float = OverloadOptions.backlog_s
    ) -> None:
        """Find the device.

        Args:
            rescan: restart PortAudio to see a device that was plugged in again, for its list is made once. An app with
                PortAudio streams of its own in this process says False: they would end.
            backlog_s: audio kept at most, in seconds; beyond it the newest is lost.

        Raises:
            UsageError: no input device fits ``device``, or several do.
            DeviceError: no PortAudio, or no input device at all.
        """
        self._capture = Capture(device, rescan=rescan)
        super().__init__(self._capture, backlog_s)

    @property
    def name(self) -> str:
        return self._capture.name

    @property
    def connected(self) -> bool:
        """False while the device is away."""
        return self._capture.connected

    @property
    def paused(self) -> bool:
        return self._capture.paused

    @property
    def level_dbfs(self) -> float:
        """How loud the newest block was."""
        return self._capture.level_dbfs

    def start(self) -> None:
        """Begin to listen. Later calls do nothing.

        Raises:
            DeviceError: the device does not open.
        """
        if not self.started:
            self._capture.start()
            super().start()

    def pause(self) -> None:
        """Hear silence until ``resume``. Idempotent."""
        self._capture.pause()

    def resume(self) -> None:
        """Hear again. Idempotent."""
        self._capture.resume()
