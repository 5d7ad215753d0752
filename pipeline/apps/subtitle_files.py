"""Subtitle files that ``translate`` is given instead of recordings: each is translated into subtitles with the same times."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ..captions.masking import Masking
from ..config import PipelineConfig
from ..errors import PipelineError, UsageError, described
from ..events import SourceSentence, Translation
from ..glossary.current import GlossaryFile
from ..glossary.masked import load_masked
from ..languages import language_tag
from ..nmt.forced import place_marks
from ..nmt.stage import DirectedGlossary
from ..nmt.terms.markup import Fragment
from ..nmt.translator import TermTranslator, TextTranslator, TranslationRequest
from ..subtitles.documents import KINDS, converted, decoded, read_document
from ..subtitles.translating import translated_cues
from .cli import report, tell
from .outputs import SUFFIXES

_MOST_BYTES = 1 << 25


@dataclass(frozen=True)
class SubtitleOptions:
    """What holds for all files of a run."""

    config: PipelineConfig
    kinds: Sequence[str]
    """The formats to write; none: that of each file."""
    output_dir: Path | None = None
    overwrite: bool = False


def is_subtitles(path: Path) -> bool:
    return _kind(path) is not None


def with_subtitles(named: Sequence[Path], targets: Sequence[str]) -> tuple[list[Path], list[Path]]:
    """The recordings and folders among the named paths, and the subtitle files.

    Those of a folder are its subtitle files if it has no recordings, whose subtitles they would be. What ends with a target
    language, as NAME.pt.srt, was written by this program.
    """
    others: list[Path] = []
    found: dict[Path, None] = {}
    for path in named:
        if not path.is_dir():
            found |= {path: None} if is_subtitles(path) else {}
            others += [] if is_subtitles(path) else [path]
            continue
        inside = [Path(here) / name for here, _, names in os.walk(path) for name in sorted(names) if name[0] != "."]
        subtitles = [one for one in inside if is_subtitles(one) and one.stem.rpartition(".")[2] not in targets]
        if not subtitles or any(one.suffix.lower() in SUFFIXES for one in inside):
            others.append(path)
        else:
            found |= dict.fromkeys(subtitles)
    return others, list(found)


def translate_subtitles(files: Sequence[Path], options: SubtitleOptions) -> bool:
    """Translate every file into every target, and say what was written. Return whether all went well."""
    spoken, targets = options.config.languages.only_spoken, options.config.languages.targets
    if spoken is None:
        raise UsageError("the language of subtitles is not recognised; name it with --source")
    if wrong := [kind for kind in options.kinds if kind not in KINDS]:
        raise UsageError(
            f"subtitles are not translated into the format {wrong[0]!r}; allowed are srt, vtt, ass and ttml"
        )
    todo = [(path, target, _outputs(path, spoken, target, options)) for path in files for target in targets]
    translator, good = _Translator(options.config, spoken), True
    for path, target, outputs in todo:
        missing = [one for one in outputs if options.overwrite or not one.exists()]
        if not missing:
            tell(f"{path}: already there: left as it is, --overwrite replaces it")
            continue
        try:
            translator.translate(path, target, missing)
        except PipelineError as error:
            report(f"{path}: {error}")
            good = False
        except OSError as error:
            report(f"{path}: {described(error)}")
            good = False
    return good


def _outputs(path: Path, spoken: str, target: str, options: SubtitleOptions) -> list[Path]:
    """film.pt.srt for film.srt and for film.en.srt."""
    stem, _, tag = path.stem.rpartition(".")
    stem = stem if stem and tag.lower() in (spoken.lower(), language_tag(spoken).language) else path.stem
    folder = options.output_dir or path.parent
    return [folder / f"{stem}.{target}.{kind}" for kind in options.kinds or [path.suffix[1:].lower()]]


def _kind(path: Path) -> str | None:
    return KINDS.get(path.suffix[1:].lower())


class _Translator:
    """Translates files with the models of a configuration, which are loaded for the first."""

    def __init__(self, config: PipelineConfig, spoken: str) -> None:
        self._config, self._spoken = config, spoken
        self._models: Mapping[str, TextTranslator] = {}
        self._masking = Masking(load_masked(config.captions.masked))
        self._glossaries: dict[str, DirectedGlossary] = {}
        if config.glossary.file is not None:
            current = GlossaryFile(Path(config.glossary.file))
            self._glossaries = {target: DirectedGlossary(current, target) for target in config.languages.targets}

    def translate(self, path: Path, target: str, outputs: Sequence[Path]) -> None:
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
        self._models = self._models or _loaded(self._config)
        translated = translated_cues(
            document.cues, lambda one: self._sentence(one, target), (self._spoken, target), self._config.subtitles
        )
        whole = document.written(translated)
        for output in outputs:
            output.parent.mkdir(parents=True, exist_ok=True)
            unfinished = output.with_name(f"{output.name}.unfinished")
            unfinished.write_text(converted(whole, kind, KINDS[output.suffix[1:]]), "utf-8")
            unfinished.replace(output)
        tell(f"{path}: subtitles: {len(document.cues)}, in {', '.join(map(str, outputs))}")

    def _sentence(self, sentence: Fragment, target: str) -> str:
        model, request = (
            self._models[target],
            TranslationRequest(SourceSentence(0, self._spoken, sentence.text), target),
        )
        if target in self._glossaries and isinstance(model, TermTranslator):
            request = replace(request, glossary=self._glossaries[target].now(self._spoken))
        *_, found = model.stream(request)
        assert isinstance(found, Translation)
        if found.error is not None:
            raise UsageError(found.error)
        return place_marks(sentence, model, self._spoken, self._masking.text(found.text, target), target)


def _loaded(config: PipelineConfig) -> Mapping[str, TextTranslator]:
    from ..loading import load_translations  # slow

    return load_translations(config)
