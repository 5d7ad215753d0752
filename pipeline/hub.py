"""Models by name: a directory is taken as it is, anything else is fetched from the hub into the hub's own cache."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from pipeline.errors import DownloadError, ModelError


def resolve_model(model: str, revision: str | None, patterns: Sequence[str], optional: Sequence[str] = ()) -> Path:
    """The directory of a model: ``model`` itself if it is one, else a snapshot of the hub repository of that id.

    ``patterns`` are the files needed, as globs; one that matches nothing in a cached snapshot makes it incomplete.
    Files that match ``optional`` are fetched too where the repository has them. Fetching shows progress on standard
    error. What is cached is used without a connection.

    Raises:
        ModelError: a path that is no directory, or not a hub id.
        DownloadError: not in the cache, and it cannot be fetched.
    """
    path = Path(model)
    if os.path.isdir(model):  # Path's own tests raise for a name that is too long
        return path
    if os.path.exists(model):
        raise ModelError(f"{model} is a file; give the directory that holds the model")
    if model.count("/") != 1 or model.startswith((".", "/", "~")):
        raise ModelError(
            f"no such model directory: {model}; give an existing directory, or a hub id such as owner/name"
        )
    # Imported here: only real models need it, and it takes a while.
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

    try:
        cached = Path(
            snapshot_download(model, revision=revision, allow_patterns=[*patterns, *optional], local_files_only=True)
        )
        # A download that was cut off leaves a snapshot with files missing.
        if all(any(cached.glob(pattern)) for pattern in patterns):
            return cached
    except LocalEntryNotFoundError:
        pass  # not an error: it is fetched below
    except HFValidationError as error:
        raise ModelError(f"{model} is neither a directory nor a hub id: {error}") from None
    command = f"hf download {model}" + (f" --revision {revision}" if revision else "")
    try:
        found = Path(snapshot_download(model, revision=revision, allow_patterns=[*patterns, *optional]))
    except LocalEntryNotFoundError as error:
        # Raised for any fault on the way to the file list; an answer of the hub's is behind some of them.
        if isinstance(error.__cause__, HfHubHTTPError) and not isinstance(error.__cause__, LocalEntryNotFoundError):
            raise _refused(model, error.__cause__) from error
        raise DownloadError(
            f"{model} is not in the cache and the hub cannot be reached. Connect and run this again (or: {command}), "
            "or use --config demo, which works offline"
        ) from error
    except HfHubHTTPError as error:
        raise _refused(model, error) from error
    except Exception as error:  # the HTTP client's and the disk's errors share no base
        raise DownloadError(
            f"fetching {model} failed: {error}. Run it again, it goes on from there (or: {command})"
        ) from error
    if missing := [pattern for pattern in patterns if not any(found.glob(pattern))]:
        # Without a connection the hub's client hands back what an interrupted download left.
        raise ModelError(
            f"{model} has no {', '.join(missing)}: an interrupted download that could not go on for want of a connection "
            f"(then: {command}), or a repository of another kind (then choose another model or file_suffix)"
        )
    return found


def _refused(model: str, error: Exception) -> DownloadError:
    reason = str(error).splitlines()[0]
    return DownloadError(f"the hub refused {model} ({reason}); check the name and the revision")
