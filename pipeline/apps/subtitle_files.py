"""Subtitle files that ``translate`` is given instead of recordings: each is translated into subtitles with the same times."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ..archives import SUFFIXES, OutputName, make_folder
from ..console import report, tell
from ..errors import DownloadError, ModelError, PipelineError, UsageError, described
from ..languages import known_language, language_tag, same_language

if TYPE_CHECKING:
    from ..config import PipelineConfig
    from ..core import TextTranslator

_MOST_BYTES = 1 << 25
_UNFINISHED = ".unfinished"
_LONGEST_NAME = 255 - len(_UNFINISHED)
"""The length of a file's name in bytes that leaves room for the suffix."""


@dataclass(frozen=True)
class SubtitleOptions:
    """Options of all files of a run."""

    config: PipelineConfig
    kinds: Sequence[str]
    """The formats to write; none: that of each file."""
    output_dir: Path | None = None
    overwrite: bool = False
    strict: bool = False
    """Files in another language are refused; else they are named."""


def is_subtitles(path: Path) -> bool:
    return _kind(path) is not None


def with_subtitles(named: Sequence[Path], targets: Sequence[str]) -> tuple[list[Path], list[tuple[Path, Path]]]:
    """The recordings and folders among the named paths, and the subtitle files, each with its folder below a named one.

    Those of a folder are its subtitle files if it has no recordings, whose subtitles they would be. What ends with a target
    language, as NAME.pt.srt, was written by this program. NAME.sub beside NAME.idx has pictures.
    """
    others: list[Path] = []
    files: dict[Path, Path] = {}
    for path in named:
        if not path.is_dir():
            files |= {path: Path()} if is_subtitles(path) else {}
            others += [] if is_subtitles(path) else [path]
            continue
        inside = dict.fromkeys(
            Path(here) / name for here, _, names in os.walk(path) for name in sorted(names) if name[0] != "."
        )
        subtitles = [
            file
            for file in inside
            if is_subtitles(file)
            and not any(name_parts(file.stem, target)[1] == target for target in targets)
            and file.with_suffix(".idx") not in inside
        ]
        if not subtitles or any(file.suffix.lower() in SUFFIXES for file in inside):
            others.append(path)
        else:
            files |= {file: file.parent.relative_to(path) for file in subtitles}
    return others, list(files.items())


def translate_subtitles(files: Sequence[tuple[Path, Path]], options: SubtitleOptions) -> bool:
    """Translate every file into every target, and say what was written. Return whether all went well.

    ``files``: see ``with_subtitles``.
    """
    from ..documents import WRITTEN_KINDS

    spoken, targets = options.config.languages.only_spoken, options.config.languages.targets
    if spoken is None:
        raise UsageError("the language of subtitles is not recognised; name it with --source")
    if wrong := [kind for kind in options.kinds if kind not in WRITTEN_KINDS]:
        raise UsageError(
            f"subtitles are not translated into the format {wrong[0]!r}; allowed are srt, vtt, ass and ttml"
        )
    if missing := [path for path, _ in files if not path.exists()]:
        raise UsageError(f"no such file: {missing[0]}; give the paths of subtitle files, or of folders that hold some")
    todo = [
        (path, target, _outputs(path, below, spoken, target, options)) for path, below in files for target in targets
    ]
    _check_outputs(todo)
    if options.output_dir is not None:
        make_folder(options.output_dir)
    translator, good = _Translator(options, spoken), True
    for path, target, outputs in todo:
        unwritten = [output for output in outputs if options.overwrite or not output.exists()]
        if not unwritten:
            tell(f"{path}: already there: left as it is, --overwrite replaces it")
            continue
        try:
            translator.translate(path, target, unwritten)
        except (ModelError, DownloadError):  # for all files alike
            raise
        except PipelineError as error:
            report(f"{path}: {error}")
            good = False
        except OSError as error:
            report(f"{path}: {described(error)}")
            good = False
        except KeyboardInterrupt:
            tell(f"interrupted: {path} is not written; the same command goes on with it")
            raise
    return good


def _check_outputs(todo: Sequence[tuple[Path, str, Sequence[Path]]]) -> None:
    """Check that no two files have one output, and that no output is a file that is read."""
    inputs, sources = {os.path.realpath(path) for path, *_ in todo}, dict[str, Path]()
    for path, _, outputs in todo:
        for output in outputs:
            real = os.path.realpath(output)
            if real in inputs:
                raise UsageError(f"{path} would be written into {output}, which is read; choose another --output-dir")
            if sources.setdefault(real, path) != path:
                raise UsageError(
                    f"{sources[real]} and {path} would both write {output}; give their common parent folder, whose "
                    "subfolders are kept, or translate one separately with another --output-dir"
                )


def _outputs(path: Path, below: Path, spoken: str, target: str, options: SubtitleOptions) -> list[Path]:
    """film.pt.srt for film.srt and for film.en.srt; film.pt.forced.srt for film.eng.forced.srt."""
    from ..documents import WRITTEN_KINDS

    name, _, flags = name_parts(path.stem, spoken)
    kind = path.suffix[1:].lower()
    folder = options.output_dir / below if options.output_dir else path.parent
    return [
        OutputName(folder, name, ".".join([target, *flags]), _LONGEST_NAME).path(f".{kind}")
        for kind in options.kinds or [kind if kind in WRITTEN_KINDS else "srt"]
    ]


def name_parts(stem: str, language: str) -> tuple[str, str, list[str]]:
    """The name in ``film.eng.forced``, the tag of ``language`` after it ("" without one), and the flags that follow."""
    from ..archives import other_language

    name, *parts = re.split(r"(?<=.)\.", stem)
    flags: list[str] = []
    while (
        parts
        and parts[-1].lower() in other_language.FLAGS
        and not (parts[-1].lower() == "hi" and same_language(language, "hi"))
    ):
        flags.insert(0, parts.pop())
    has_tag = bool(parts) and known_language(parts[-1]) is not None and same_language(parts[-1], language)
    tag = parts.pop() if has_tag else ""
    return ".".join([name, *parts]), tag, flags


def _kind(path: Path) -> str | None:
    if path.suffix.lower() in SUFFIXES:
        return None  # a recording: most runs have no others, and need nothing of documents
    from ..documents import KINDS

    return KINDS.get(path.suffix[1:].lower())


class _Translator:
    """Translates files with the models of a configuration, which are loaded for the first."""

    def __init__(self, options: SubtitleOptions, spoken: str) -> None:
        from ..core import Masking
        from ..glossary import GlossaryFile, load_masked

        self._config, self._strict, self._spoken = (config := options.config), options.strict, spoken
        self._models: Mapping[str, TextTranslator] = {}
        self._masking = Masking(load_masked(config.captions.masked))
        file = config.glossary.file
        self._glossary = GlossaryFile(Path(file)) if file is not None else None

    def translate(self, path: Path, target: str, outputs: Sequence[Path]) -> None:
        from ..archives import other_language
        from ..backends import TextTranslation  # slow, and not needed for recordings
        from ..documents import WRITTEN_KINDS, converted, decoded, markup_free, read_document, too_long, translated_cues

        kind = _kind(path)
        assert kind is not None
        if path.stat().st_size > _MOST_BYTES:
            raise UsageError(f"it has {path.stat().st_size} bytes; subtitle files of at most {_MOST_BYTES} are read")
        text, encoding = decoded(path.read_bytes(), language_tag(self._spoken).language)
        document = read_document(text, kind)
        if not encoding.startswith("utf"):
            tell(f"{path}: it is not UTF-8, and was read as {encoding}")
        if document.reversed_times:
            tell(f"{path}: subtitles that end before they begin get 1 s: {document.reversed_times}")
        shown = markup_free("\n".join(cue.text for cue in document.cues))
        if (language := other_language.of_text(path, shown, self._spoken)) is not None:
            problem = f"it is {other_language.said(language, self._spoken)}"
            if self._strict:
                raise UsageError(problem)
            tell(f"{path}: {problem}")
        self._models = self._models or _loaded(self._config)
        translation = TextTranslation(
            self._models[target], self._spoken, target, glossary=self._glossary, masking=self._masking
        )
        translated = translated_cues(
            document.cues,
            partial(translation.translate, markup="subtitles"),
            (self._spoken, target),
            self._config.subtitles,
        )
        if long := too_long(document.cues, translated, self._config.subtitles):
            tell(f"{path}: subtitles with more than {self._config.subtitles.max_lines} lines: {long}")
        whole = document.written(translated, target)
        for output in outputs:
            output.parent.mkdir(parents=True, exist_ok=True)
            unfinished = output.with_name(output.name + _UNFINISHED)
            unfinished.write_text(converted(whole, kind, WRITTEN_KINDS[output.suffix[1:]], target), "utf-8")
            unfinished.replace(output)
        tell(f"{path}: subtitles: {len(document.cues)}, in {', '.join(map(str, outputs))}")


def _loaded(config: PipelineConfig) -> Mapping[str, TextTranslator]:
    from ..config import load_translations  # slow

    return load_translations(config)
