"""The models named by configurations: list them, look up their state on the disk, and fetch them."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..backends import (
    RECOGNIZERS,
    AsrConfig,
    NmtConfig,
    Pair,
    all_pairs,
    cached_compiled,
    drop_damaged_compiled,
    engine,
    find_translation_model,
    is_compiled,
    translator_ref,
)
from ..config import load_config, named_configs
from ..errors import HubUnreachableError, ModelError, UsageError
from ..names import escaped
from ..store import (
    HIBARI,
    KNOWN_MODELS,
    KOKORO,
    KOKORO_STYLES,
    PREFIX,
    KnownModel,
    ModelRef,
    Progress,
    cached_commit,
    cached_model,
    cached_snapshot,
    cached_student,
    copy_model,
    drop_damaged,
    drop_damaged_student,
    fetch_known,
    fetch_known_file,
    fetch_model,
    fetch_student,
    forget_verified,
    is_complete,
    is_student,
    known_model,
    known_translator,
    local_directory,
    model_from_packages,
    repository_folder,
    resolve_model,
    translate_read_errors,
)


@dataclass(frozen=True)
class NamedModel:
    """A model and the configurations that name it."""

    kind: str
    """"speech", "translation", "voice", or "either" for a hub id whose kind only its files show."""
    ref: ModelRef
    translation: NmtConfig | None = None
    """Options for running it, if it is for translation."""
    configs: tuple[str, ...] = ()

    @property
    def compiled(self) -> Path | None:
        """The compiled model, if it runs compiled and is compiled already."""
        run = self.translation
        return cached_compiled(run) if run is not None and is_compiled(run) else None


@dataclass(frozen=True)
class ModelState:
    """The state of a model on the disk."""

    state: str
    """"directory"; "installed" as packages; or in the cache "compiled", "complete", "partial" or "missing"."""
    path: str | None = None
    """The directory, the packages' or joined folder, the compiled model, or the snapshot."""
    commit: str | None = None
    size: int = 0
    """Bytes on the disk: of a directory, or of all revisions in the cache plus this one's compiled model."""


def named_models(configs: Iterable[str]) -> list[NamedModel]:
    """The models named by configurations (names or paths), each model once, in order of first mention."""
    names_by_model: dict[NamedModel, list[str]] = {}
    for name in configs:
        config = load_config(name)
        recognizers = [asr for asr in (config.asr, config.draft_model) if asr is not None]
        speech = [_speech(asr) for asr in recognizers if asr.backend in RECOGNIZERS.own]
        steps = [step for nmt in config.translators.values() for step in nmt.steps]
        for model in dict.fromkeys((*speech, *map(_translation, steps))):
            names_by_model.setdefault(model, []).append(name)
    return [dataclasses.replace(model, configs=tuple(names)) for model, names in names_by_model.items()]


def known_speech_models() -> list[NamedModel]:
    """The speech models whose files are known."""
    return [_speech(AsrConfig(model=model.hub_id)) for model in KNOWN_MODELS]


def state_of(model: NamedModel) -> ModelState:
    """The state of a model, from the disk only."""
    ref = model.ref
    try:
        directory = local_directory(ref.source)
    except (ModelError, UsageError):
        return ModelState("missing")
    if directory is not None:
        return ModelState("directory", str(directory), None, _disk_usage(directory))
    if is_student(ref.source):
        cached = cached_student(ref.source)
        return (
            ModelState("missing") if cached is None else ModelState("complete", str(cached), None, _disk_usage(cached))
        )
    folder = repository_folder(ref.source)
    size, snapshot = _disk_usage(folder), cached_snapshot(ref)
    if (compiled := model.compiled) is not None:
        return ModelState("compiled", str(compiled), cached_commit(ref), size + _disk_usage(compiled))
    entry = ref.known
    if (cached := cached_model(ref)) and (not entry or is_complete(cached, entry)):
        state = "complete"
    elif entry is not None and (installed := model_from_packages(entry, join=False)) is not None:
        return ModelState("installed", str(installed), entry.revision, _disk_usage(installed))
    else:
        # Another revision may be complete; files without a snapshot are left from an interrupted download.
        begun = any(folder.glob("blobs/*.incomplete")) or (size and not any(folder.glob("snapshots/*")))
        state = "partial" if snapshot or begun else "missing"
    return ModelState(state, str(snapshot) if snapshot else None, snapshot.name if snapshot else None, size)


def pair_states() -> list[tuple[Pair, ModelState]]:
    """The table of language pairs with each model's state; local cache only."""
    named = {model.ref.source: model for model in named_models(named_configs())}
    return [
        (pair, state_of(named.get(pair.repository) or _translation(NmtConfig(model=pair.repository))))
        for pair in all_pairs()
    ]


def models_called(name: str, revision: str | None = None) -> list[NamedModel]:
    """The models that ``pull NAME`` fetches: those of a configuration, or the one of a hub id or Whisper size.

    Without ``revision``, a hub id that a bundled configuration names is taken at that configuration's revision.
    """
    bundled = named_configs()
    if name in bundled or name.endswith(".toml"):
        if revision:
            raise UsageError(
                f"--revision applies to a single model, but {name} is a configuration, which sets its own revisions; leave --revision out"
            )
        return named_models([name])
    if is_student(f"{PREFIX}{name}"):
        name = f"{PREFIX}{name}"
    if is_student(name):
        return [_translation(NmtConfig(model=name))]
    for voice in (HIBARI, KOKORO):
        if name in (voice.size, voice.hub_id):
            return [NamedModel("voice", ModelRef.named(voice.hub_id, None))]
    speech = _speech(AsrConfig(model=name, revision=revision or None))
    hub_id = speech.ref.source
    if not revision and (bundled_model := _bundled(hub_id)) is not None:
        return [bundled_model]
    if "/" not in hub_id:
        raise UsageError(
            f"unknown model or configuration {name!r}; give a configuration ({', '.join(bundled)}, or a .toml file), a "
            "hub id such as owner/name, or a Whisper size such as small"
        )
    if known_translator(name) is None and (hub_id != name or known_model(hub_id, revision)):
        return [speech]
    translation = _translation(NmtConfig(model=name, revision=revision))
    either = dataclasses.replace(translation.ref, files=(*speech.ref.files, *translation.ref.files))
    return [dataclasses.replace(translation, kind="either", ref=either)]


def pulled_revision(model: str) -> str | None:
    """The revision at which ``pull`` fetches a hub id or Whisper size.

    It is the known one, or the one that a bundled configuration pins; None if there is neither.
    """
    if (entry := known_model(model)) is not None:
        return entry.revision or None
    bundled = _bundled(_speech(AsrConfig(model=model)).ref.source)
    return bundled.ref.revision if bundled is not None else None


def _bundled(hub_id: str) -> NamedModel | None:
    """The model of a hub id as a bundled configuration names it, or None."""
    return {model.ref.source: model for model in named_models(named_configs())}.get(hub_id)


def pull(model: NamedModel, progress: Progress) -> str:
    """Make sure that a model is cached, complete and undamaged, and compiled if it runs compiled.

    For a model pinned to a commit, the hub is contacted only if something is missing or damaged; other models are
    compared with the hub. Returns a description of the result for display.
    """
    ref = model.ref
    if local_directory(ref.source) is not None:
        return f"{ref.source}: a directory, nothing to fetch"
    if not ref.files and ref.known is None:
        raise UsageError(
            f"{ref.source} is no folder, and models of its recogniser are not fetched; give the folder of one"
        )
    if (entry := ref.known) is not None:
        return _pull_known(ref, entry, progress)
    if is_student(ref.source):
        drop_damaged_student(ref.source)
        return f"{ref.source}: complete in {fetch_student(ref.source, progress)}"
    run = model.translation
    if run is not None and is_compiled(run) and drop_damaged_compiled(run):
        progress(f"the compiled {ref.source} is damaged: compiling it again", 0.0)
    cached = cached_model(ref)
    if cached is None and ref.pinned and (compiled := model.compiled) is not None:
        return f"{ref.source}: compiled, in {compiled}"
    snapshot, done = _fetched(ref, cached, progress)
    if run is None or not is_compiled(run) or not (snapshot / "source.spm").is_file():
        return done
    directory = find_translation_model(run, progress)
    return f"{done}; compiled, in {directory}" if directory == model.compiled else f"{done}; it cannot be compiled"


def copy_demo(folder: Path, progress: Progress) -> Iterator[str]:
    """Copy the models of the demo's configurations that do not come with this package; yields a description of each for display."""
    named = named_models(name for name in named_configs() if name.startswith("demo"))
    for ref in dict.fromkeys(model.ref for model in named):
        if (entry := ref.known) is not None:
            yield f"{ref.source}: complete and undamaged in {copy_model(entry, resolve_model(ref, progress), folder)}"


def _pull_known(ref: ModelRef, model: KnownModel, progress: Progress) -> str:
    """Make sure that a known model is on this machine; its hashes are computed again."""
    if model is KOKORO:
        fetch_known_file(KOKORO_STYLES, progress)
    snapshot = cached_snapshot(dataclasses.replace(ref, revision=model.revision)) if model.revision else None
    damaged = drop_damaged(snapshot) if snapshot is not None else []
    if snapshot is not None:
        forget_verified(snapshot)
        if not damaged and is_complete(snapshot, model):
            return f"{ref.source}: complete and undamaged at {snapshot.name}"
    if (installed := model_from_packages(model, progress, anew=True)) is not None:
        return f"{ref.source}: complete and undamaged, from installed packages, in {installed}"
    fetched = fetch_known(model, ref, progress)
    fetched_again = f"; damaged and fetched again: {', '.join(damaged)}" if damaged else ""
    return f"{ref.source}: complete at {fetched.name}{fetched_again}"


def _fetched(ref: ModelRef, cached: Path | None, progress: Progress) -> tuple[Path, str]:
    """Make sure that the snapshot is complete and undamaged; return it with a description for display."""
    begun = cached_snapshot(ref)  # may be incomplete
    damaged = drop_damaged(begun) if begun else []
    if cached and ref.pinned and not damaged:
        return cached, f"{ref.source}: complete and undamaged at {cached.name}"
    try:
        snapshot = fetch_model(ref, progress)
    except HubUnreachableError:
        if cached is None or damaged:
            raise
        said = f"{ref.source}: complete and undamaged at {cached.name}"
        return cached, f"{said}; the hub could not be asked for a newer one"
    done = f"{ref.source}: complete at {snapshot.name}"
    if damaged:
        done += f"; damaged and fetched again: {', '.join(damaged)}"
    if not ref.pinned:
        done += f'; not pinned: revision = "{snapshot.name}" in a configuration keeps it'
    return snapshot, done


def as_table(rows: Sequence[tuple[NamedModel, ModelState]]) -> str:
    """Models and their states as a table for display, one per line."""
    cells = [("MODEL", "KIND", "REVISION", "STATE", "SIZE", "CONFIGS", "WHERE")]
    for model, state in rows:
        name, revision = model.ref.source, (model.ref.revision or state.commit or "-")[:12]
        name = min(os.path.relpath(name), name, key=len) if state.state == "directory" else name
        size = f"{state.size / 1e6:,.1f} MB" if state.size else "-"
        where = "-" if state.path is None or state.state == "directory" else state.path
        cells.append((name, model.kind, revision, state.state, size, ", ".join(model.configs) or "-", where))
    return _aligned(cells)


def pairs_as_table(rows: Sequence[tuple[Pair, ModelState]]) -> str:
    """Language pairs as a table for display, one model per line; the first model of a pair is the default."""
    cells = [("PAIR", "MODEL", "LAYOUT", "MB", "LICENCE", "STATE", "NOTE")]
    for pair, state in rows:
        megabytes = f"{pair.megabytes}" if pair.megabytes is not None else "-"
        layout, languages = f"{pair.layout} {pair.precision}", f"{pair.source} → {pair.target}"
        cells.append((languages, pair.repository, layout, megabytes, pair.licence, state.state, pair.note))
    return _aligned(cells)


def _aligned(cells: Sequence[Sequence[str]]) -> str:
    cells = [[escaped(cell) for cell in row] for row in cells]
    widths = [max(len(row[column]) for row in cells) for column in range(len(cells[0]))]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in cells)
    return "\n".join(line.rstrip() for line in lines)


def _speech(asr: AsrConfig) -> NamedModel:
    return NamedModel("speech", engine(asr.backend).model_ref(asr))


def _translation(config: NmtConfig) -> NamedModel:
    # Search options do not make it a different model.
    run = NmtConfig(
        model=config.model, revision=config.revision, weights=config.weights, file_suffix=config.file_suffix
    )
    return NamedModel("translation", translator_ref(run), run)


def _disk_usage(folder: Path) -> int:
    """Bytes of all files below ``folder``, without following links."""
    with translate_read_errors(folder):
        return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
