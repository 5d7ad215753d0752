"""The exceptions this package raises on purpose. Each message says what was found, what was expected, what to do."""

from __future__ import annotations


class PipelineError(Exception):
    """Base of all errors of this package; ``exit_status`` is what the command line ends with."""

    exit_status = 1


class UsageError(PipelineError):
    """What was asked for cannot be meant: a wrong option, a missing input file, a wrong configuration."""

    exit_status = 2


class ConfigError(UsageError):
    """A configuration file has a wrong key or value."""


class AudioError(PipelineError):
    """An input could not be read as audio, or has none."""


class DeviceError(PipelineError):
    """No audio system, no such device, or a device that stopped."""


class ModelError(PipelineError):
    """A model directory is incomplete, damaged or of a kind that cannot run."""


class DownloadError(PipelineError):
    """A model is not in the cache and could not be fetched."""


class HubUnreachableError(DownloadError):
    """The hub could not be asked, or not at the moment: what the cache has may be the newest."""


class SinkError(PipelineError):
    """A subtitle file could not be opened or written."""


class DecodingStoppedError(PipelineError):
    """A translation was terminated from another thread, before its end."""


class StageError(PipelineError):
    """A stage failed while running; ``stage`` names it and ``__cause__`` is the reason."""

    def __init__(self, stage: str, cause: BaseException) -> None:
        super().__init__(f"the {stage} stage failed: {one_line(cause)}")
        self.stage = stage
        self.__cause__ = cause


def described(error: BaseException) -> str:
    """What an exception says; with its kind where that is what matters (SystemExit: 1) or all that there is."""
    kind = type(error).__name__
    try:
        text = str(error).strip()
    except Exception:  # of a class whose own __str__ is broken
        text = ""
    if isinstance(error, Exception) and not isinstance(error, StopIteration | StopAsyncIteration):
        return text or kind
    return f"{kind}: {text}" if text else kind


def one_line(error: BaseException) -> str:
    """What an error says, in one line; one of this package's own as it is, for a line's end in it is a name's."""
    return str(error) if isinstance(error, PipelineError) else " ".join(described(error).split())


def first_line(error: Exception) -> str:
    """What an error of another library says, in one line."""
    return str(error).strip().partition("\n")[0] or type(error).__name__
