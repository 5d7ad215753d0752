"""The ONNX exports that hub repositories hold: where their files are, and a directory to run one from."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from pipeline.store import FileSet

SETTINGS = ("config.json", "source.spm", "target.spm", "vocab.json")
OPTIONAL_SETTINGS = ("target_vocab.json", "generation_config.json", "tokenizer_config.json")
_MERGED = ("encoder_model", "decoder_model_merged")
_SPLIT = ("encoder_model", "decoder_model", "decoder_with_past_model")
# The two that hold all weights of a split export.
_WEIGHTS = _SPLIT[:2]
# Converters put their files under onnx/, or at the top, as optimum leaves them.
_FOLDERS = ("onnx/", "")
# Names of 8-bit files; where they have a folder of their own, they have the plain names there.
_INT8 = ("_int8", "_quantized", "_uint8")
_INT8_FOLDER = "int8/"


@dataclass(frozen=True)
class Export:
    """The graphs of a model in one precision."""

    graphs: tuple[str, ...]
    """Their names, without precision and ending."""
    folder: str
    """In the repository: "" for its top, else with a slash at the end."""
    suffix: str
    """The precision, as it stands in the files' names; "" for fp32, and in a folder of another precision."""
    settings: str = ""
    """The folder of the tokenizer's files."""
    rank: int = 0
    """See ``FileSet``."""

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(f"{self.folder}{graph}{self.suffix}.onnx" for graph in self.graphs)

    @property
    def data(self) -> tuple[str, ...]:
        """Globs for the files beside the graphs that hold their weights, where an exporter has put them outside."""
        return tuple(f"{name}?data*" for name in self.names)

    def files(self) -> FileSet:
        needed = (*(f"{self.settings}{name}" for name in SETTINGS), *self.names)
        return FileSet(needed, (*(f"{self.settings}{name}" for name in OPTIONAL_SETTINGS), *self.data), self.rank)

    def is_in(self, snapshot: Path) -> bool:
        return not self.files().missing_from(snapshot)

    def placed(self, snapshot: Path, beside: Path, suffix: str) -> Path:
        """The directory to run this from with ``suffix``: ``snapshot`` if it can be, else one made of it in ``beside``.

        A hub's cache holds links, and ONNX Runtime reads no external weights through them; nor does ``find_layout`` look
        into a precision's own folder. The directory has hard links, or copies where the file system refuses those.

        Raises:
            OSError: it cannot be written.
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
            _put(path.resolve(), directory / name)
        return directory


def compilable_exports(*, half: bool) -> tuple[Export, ...]:
    """Exports that the compiler reads: fp32, with ``half`` fp16 as well."""
    return tuple(
        Export(graphs, folder, suffix)
        for suffix in (("", "_fp16") if half else ("",))
        for folder in _FOLDERS
        for graphs in (_MERGED, _WEIGHTS)
    )


def runnable_exports(suffix: str, rank: int = 0) -> tuple[Export, ...]:
    """Exports in one precision that can be run as they are."""
    named = [Export(graphs, folder, suffix, "", rank) for folder in _FOLDERS for graphs in (_MERGED, _SPLIT)]
    own_folder = [
        Export(graphs, _INT8_FOLDER, "", settings, rank)
        for graphs in (_MERGED, _SPLIT)
        for settings in ("", _INT8_FOLDER)
    ]
    return (*named, *(own_folder if suffix in _INT8 else ()))


def fallback_exports() -> tuple[Export, ...]:
    """What to run of a model that is not compiled, the most exact first: fp32, or what has 8 bits where that is all."""
    eight_bits = [export for suffix in _INT8 for export in runnable_exports(suffix, 2)]
    return (*runnable_exports("", 1), *dict.fromkeys(eight_bits))


def _put(source: Path, target: Path) -> None:
    """Make ``target`` the same file as ``source``, or a copy of the same size and age."""
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
