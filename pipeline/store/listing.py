"""The files of a hub repository at one commit, with sizes and hashes, and the choice of those a model needs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

from ..errors import DownloadError, HubUnreachableError, ModelError, PipelineError, first_line
from .known import FileSet


@dataclass(frozen=True)
class RemoteFile:
    """One file of a repository at one commit."""

    name: str
    size: int
    digest: str
    """Hex: SHA-256 of a large file (64 digits), git's SHA-1 of a small one (40); also the blob's name in the cache."""

    def unfinished(self, blobs: Path) -> Path:
        """The path of the partial download."""
        return blobs / f"{self.digest}.incomplete"

    def to_come(self, blobs: Path) -> int:
        """Bytes that are not in the cache yet."""
        if (blobs / self.digest).exists():
            return 0
        return self.size - min(size_of(self.unfinished(blobs)), self.size)


@dataclass(frozen=True)
class Listing:
    """A repository at one commit."""

    model: str
    revision: str | None
    """The requested revision."""
    commit: str
    files: tuple[RemoteFile, ...]

    def choose(self, choices: Sequence[FileSet], blobs: Path) -> list[RemoteFile]:
        """The files of the best choice: lowest rank, then fewest bytes to fetch, then first."""

        def matching(*patterns: str) -> list[RemoteFile]:
            return [file for file in self.files if any(fnmatch(file.name, pattern) for pattern in patterns)]

        offered = [
            (choice.rank, matching(*choice.needed, *choice.optional))
            for choice in choices
            if all(matching(pattern) for pattern in choice.needed)
        ]
        if not offered:
            lacks = ([pattern for pattern in choice.needed if not matching(pattern)] for choice in choices)
            missing = min(lacks, key=len)
            hint = ""
            if matching("pytorch_model.bin"):
                hint = ", or install PyTorch, which reads its pytorch_model.bin"
            elif matching("*.index.json"):
                hint = ", or fetch the repository into a directory and give that"
            largest = sorted(self.files, key=lambda file: -file.size)[:3]
            raise ModelError(
                f"{self.model} has no {', '.join(missing)}; its largest files are "
                f"{', '.join(file.name for file in largest) or 'none'}: a repository of another kind, or of other files; "
                f"choose another model, revision or file_suffix{hint}"
            )
        return min(offered, key=lambda offer: (offer[0], sum(file.to_come(blobs) for file in offer[1])))[1]


def list_files(model: str, revision: str | None) -> Listing:
    """List a model's files on the hub. There is one request without retries, to fail fast without a network."""
    from huggingface_hub import HfApi, constants
    from huggingface_hub.errors import HfHubHTTPError, OfflineModeIsEnabled

    retry = "run this again"
    try:
        info = HfApi().model_info(model, revision=revision, files_metadata=True, timeout=constants.HF_HUB_ETAG_TIMEOUT)
    except OfflineModeIsEnabled:
        raise HubUnreachableError(
            f"{model} is not in the cache and HF_HUB_OFFLINE forbids fetching it. Unset it and {retry}"
        ) from None
    except HfHubHTTPError as error:
        raise refused(model, error) from error
    except Exception as error:  # the HTTP clients' errors have no common base class
        if isinstance(error, OSError) and error.filename:  # the client could not read its token file
            raise DownloadError(
                f"{error.filename} cannot be read: {error.strerror}; set HF_HOME to a usable folder"
            ) from error
        raise HubUnreachableError(
            f"{model} is not in the cache and the hub cannot be reached ({constants.ENDPOINT}: {first_line(error)}). "
            f"Connect and {retry}"
        ) from error
    files = []
    for sibling in info.siblings or []:
        digest = sibling.lfs.sha256 if sibling.lfs else sibling.blob_id
        if sibling.size is None or digest is None or len(digest) not in (40, 64):
            raise DownloadError(
                f"the hub at {constants.ENDPOINT} lists no size or hash for {sibling.rfilename} of {model}; "
                "set HF_ENDPOINT to one that does, or give a model directory"
            )
        files.append(RemoteFile(sibling.rfilename, sibling.size, digest))
    if not info.sha:
        raise DownloadError(
            f"the hub at {constants.ENDPOINT} names no commit for {model}; set HF_ENDPOINT to one that does"
        )
    return Listing(model, revision, info.sha, tuple(files))


def size_of(path: Path) -> int:
    """The size of a file in bytes; 0 if it does not exist."""
    return path.stat().st_size if path.exists() else 0


def refused(what: str, error: Exception) -> PipelineError:
    """The error for a hub response with an error status."""
    if busy(getattr(getattr(error, "response", None), "status_code", 0)):
        return HubUnreachableError(f"the hub cannot serve {what} at the moment ({first_line(error)}); try again later")
    return DownloadError(
        f"the hub refused {what} ({first_line(error)}); check the name and the revision, and for a private or gated "
        "model that HF_TOKEN is set"
    )


def busy(status: int) -> bool:
    """Whether an HTTP status is temporary: a server error, a timeout, or too many requests."""
    return status >= 500 or status in (408, 429)
