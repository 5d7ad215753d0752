"""The exceptions of this package. Each message says what was found, what was expected and what to do.

PipelineError
├── UsageError
│   ├── ConfigError
│   └── FileInUseError
├── AudioError
├── DecodingStoppedError
├── DeviceError
├── DownloadError
│   ├── HubUnreachableError
│   └── NoSpaceError
├── InputEndedError (also a ValueError)
├── ModelError
│   └── MemoryLimitError
├── SinkError
└── StageError
"""

from __future__ import annotations


class PipelineError(Exception):
    """Base class of all errors of this package. ``exit_status`` is the exit status of the command line."""

    exit_status = 1


class UsageError(PipelineError):
    """Invalid usage: a wrong option, a missing input file, a wrong configuration."""

    exit_status = 2


class FileInUseError(UsageError):
    """Another process is writing a file."""


class ConfigError(UsageError):
    """A configuration file has a wrong key or value."""


class AudioError(PipelineError):
    """An input could not be read as audio, or has no audio."""


class DeviceError(PipelineError):
    """No audio system, no such device, or the device stopped."""


class ModelError(PipelineError):
    """A model directory is incomplete, damaged or of an unsupported kind."""


class DownloadError(PipelineError):
    """A model is not in the cache and could not be fetched."""


class HubUnreachableError(DownloadError):
    """The hub cannot be reached, or not at the moment. The cached version may still be the newest."""


class NoSpaceError(DownloadError):
    """The disk of the cache is full."""


class MemoryLimitError(ModelError):
    """Another translation model would take more memory than is allowed."""


class SinkError(PipelineError):
    """A subtitle file could not be opened or written."""


class InputEndedError(PipelineError, ValueError):
    """Audio was fed to a translator whose input was ended or cancelled before."""


class DecodingStoppedError(PipelineError):
    """Another thread stopped a translation before its end."""


class StageError(PipelineError):
    """A stage failed while running. ``stage`` is its name, ``__cause__`` the original exception."""

    def __init__(self, stage: str, cause: BaseException) -> None:
        super().__init__(f"the {stage} stage failed: {one_line(cause)}")
        self.stage = stage
        self.__cause__ = cause


def described(error: BaseException) -> str:
    """The message of an exception; with the class name if it has no message or is no ordinary error (SystemExit: 1)."""
    kind = type(error).__name__
    try:
        text = str(error).strip()
    except Exception:  # the class has a broken __str__
        text = ""
    if isinstance(error, Exception) and not isinstance(error, StopIteration | StopAsyncIteration):
        return text or kind
    return f"{kind}: {text}" if text else kind


def one_line(error: BaseException) -> str:
    """The message of an error in one line; unchanged for this package's errors, whose newlines are in file names."""
    return str(error) if isinstance(error, PipelineError) else " ".join(described(error).split())


def first_line(error: Exception) -> str:
    """The first line of the message of another library's error."""
    return str(error).strip().partition("\n")[0] or type(error).__name__
