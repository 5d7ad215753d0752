"""ONNX exports in hub repositories: where their files are, and how to make a directory to run one from."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from ....store import FileSet

TOKENIZER = ("source.spm", "target.spm", "vocab.json")
SETTINGS = (*TOKENIZER, "config.json")
OPTIONAL_SETTINGS = ("target_vocab.json", "tokenizer_config.json", "generation_config.json")
_MERGED = ("encoder_model", "decoder_model_merged")
_SPLIT = ("encoder_model", "decoder_model", "decoder_with_past_model")
# These two graphs hold all weights of a split export.
_WEIGHTS = _SPLIT[:2]
# Converters put their files under onnx/; optimum leaves them at the top level.
_FOLDERS = ("onnx/", "")
# Suffixes of 8-bit files. In a folder of their own, 8-bit files have no suffix.
_INT8 = ("_int8", "_quantized", "_uint8")
_INT8_FOLDER = "int8/"


@dataclass(frozen=True)
class Export:
    """The graphs of a model in one precision."""

    graphs: tuple[str, ...]
    """File names without precision suffix and extension."""
    folder: str
    """Folder in the repository, with a trailing slash; "" for the top level."""
    suffix: str
    """Precision suffix of the file names; "" for fp32, and for files in a folder of their own precision."""
    settings: str = ""
    """Folder of the tokenizer's files."""
    rank: int = 0
    """Lower ranks are preferred; see ``FileSet``."""

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(f"{self.folder}{graph}{self.suffix}.onnx" for graph in self.graphs)

    @property
    def data(self) -> tuple[str, ...]:
        """Globs for the graphs' external weight files, which some exporters write beside the graphs."""
        return tuple(f"{name}?data*" for name in self.names)

    def files(self) -> FileSet:
        needed = (*(f"{self.settings}{name}" for name in SETTINGS), *self.names)
        return FileSet(needed, (*(f"{self.settings}{name}" for name in OPTIONAL_SETTINGS), *self.data), self.rank)

    def is_in(self, snapshot: Path) -> bool:
        return not self.files().missing_from(snapshot)

    def runnable_directory(self, snapshot: Path, beside: Path, suffix: str) -> Path:
        """Return a directory to run this export from with ``suffix``: ``snapshot`` if possible, else one in ``beside``.

        A new directory is needed because the hub's cache holds symbolic links, through which ONNX Runtime does not read
        external weights, and because ``find_layout`` does not search the folder of a precision. The new directory
        holds hard links, or copies if the file system does not support them.

        Raises:
            OSError: the directory cannot be written.
        """
        data = [path for pattern in self.data for path in snapshot.glob(pattern)]
        if not data and self.folder in _FOLDERS and not self.settings and self.suffix == suffix:
            return snapshot
        settings = [snapshot / self.settings / name for name in (*SETTINGS, *OPTIONAL_SETTINGS)]
        files = {path.name: path for path in (*data, *settings) if path.is_file()}
        for graph, name in zip(self.graphs, self.names, strict=True):
            files[f"{graph}{suffix}.onnx"] = snapshot / name
        kind = f"{self.folder.strip('/')}{self.suffix}-{len(self.graphs)}-graphs{suffix}".strip("-")
        directory = beside / f"{snapshot.name}-{kind}"
        directory.mkdir(parents=True, exist_ok=True)
        for name, path in files.items():
            _link_or_copy(path.resolve(), directory / name)
        return directory


def compilable_exports(*, half: bool) -> tuple[Export, ...]:
    """Return the exports that the compiler can read: fp32 and, if ``half``, fp16."""
    return tuple(
        Export(graphs, folder, suffix)
        for suffix in (("", "_fp16") if half else ("",))
        for folder in _FOLDERS
        for graphs in (_MERGED, _WEIGHTS)
    )


def runnable_exports(suffix: str, rank: int = 0) -> tuple[Export, ...]:
    """Return the exports in one precision that can be run without compilation."""
    named = [Export(graphs, folder, suffix, "", rank) for folder in _FOLDERS for graphs in (_MERGED, _SPLIT)]
    own_folder = [
        Export(graphs, _INT8_FOLDER, "", settings, rank)
        for graphs in (_MERGED, _SPLIT)
        for settings in ("", _INT8_FOLDER)
    ]
    return (*named, *(own_folder if suffix in _INT8 else ()))


def fallback_exports() -> tuple[Export, ...]:
    """Return the exports to run if a model cannot be compiled, the most exact first: fp32, then 8 bits."""
    eight_bits = [export for suffix in _INT8 for export in runnable_exports(suffix, 2)]
    return (*runnable_exports("", 1), *dict.fromkeys(eight_bits))


def _link_or_copy(source: Path, target: Path) -> None:
    """Make ``target`` a hard link to ``source``, or a copy with the same size and modification time."""
    wanted = source.stat()
    found = target.stat() if target.exists() else None
    if found and (found.st_size, found.st_mtime_ns) == (wanted.st_size, wanted.st_mtime_ns):
        return
    part = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        os.link(source, part)
    except OSError:  # another file system, or one without hard links
        shutil.copy2(source, part)
    os.replace(part, target)
