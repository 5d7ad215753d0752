"""Language tags as BCP 47 and clients write them, the script of a language, and whether it separates words with spaces."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from types import ModuleType
from typing import TYPE_CHECKING, Any

from ..errors import UsageError

if TYPE_CHECKING:
    from langcodes import Language

LONGEST_CODE = 64
"""Characters of a language's code or English name at most. Longer text is neither, and is not parsed."""
CHINESE = frozenset({"zh", "cdo", "cjy", "gan", "hak", "hsn", "lzh", "nan", "wuu", "yue"})
"""Languages written in simplified or traditional Chinese characters."""
_UNSPACED_SENTENCES = CHINESE | {"ja"}
_UNSPACED_WORDS = _UNSPACED_SENTENCES | {"th", "lo", "km", "my"}  # spaces between sentences and phrases only
# Languages that have two codes, and the one that Whisper, the table of pairs and the word lists have.
_ONE_CODE = {"nb": "no", "fil": "tl"}
# Codes that are not in ISO 639: of opus-mt's models, and of Argos's and the names of subtitle files (pb, zt).
_OTHER_CODES = {"jap": "ja", "pb": "pt-BR", "pob": "pt-BR", "zt": "zh-Hant"}
# Tags that need no look-up, because importing langcodes takes 25 ms.
_PLAIN = frozenset("ar cs de el en es fi fr hi hu it ja ko nl pl pt ro ru sv tr uk vi yue zh".split())  # noqa: SIM905
# Language, script, region and variants. Extensions and private use (en-x-anything) are left out: they name no language.
_TAG = re.compile(r"[A-Za-z]{2,8}(?:[-_][A-Za-z0-9]{2,8})*")
# By CLDR's distances.
_NEAR = 60
_KEPT_CODES = 512  # clients write codes, too
_NOT_IN_NAMES = re.compile(r"\(.*\)|\bmodern\b")


@dataclass(frozen=True)
class LanguageTag:
    """A language and, if given, its script and region."""

    language: str
    """The two-letter code if the language has one: no for nb, tl for fil."""
    script: str | None = None
    """Given in the tag, or implied by its region if the language is Chinese: Hans, Latn."""
    region: str | None = None
    """The region, such as TW or 419."""

    @property
    def usual_script(self) -> str:
        """The script of the tag or, without one, the most common script of the language; Latin if unknown."""
        if self.script is None and (parsed := _parsed(self.language)) is not None and self.language != "und":
            return parsed.maximize().script or "Latn"
        return self.script or "Latn"

    def __str__(self) -> str:
        return "-".join(part for part in (self.language, self.script, self.region) if part)


def language_tag(code: str) -> LanguageTag:
    """Parse "zh-TW", "zho_Hant", "EN", "iw" and the like. Text that is no tag becomes the language unchanged."""
    return _language_tag(code) if len(code) <= LONGEST_CODE else LanguageTag(code)


@functools.lru_cache(_KEPT_CODES)
def _language_tag(code: str) -> LanguageTag:
    if code in _PLAIN or (parsed := _parsed(code)) is None:
        return LanguageTag(code)
    language, script = parsed.language or "und", parsed.script
    if script is None and parsed.territory and language in CHINESE:
        script = parsed.maximize().script
    return LanguageTag(_ONE_CODE.get(language, language), script, parsed.territory)


def normalized_code(code: str) -> str:
    """A tag in the form of BCP 47: "zh_tw" → zh-TW, "eng" → en, "iw" → he, "English" → en."""
    if code in _PLAIN:
        return code
    if (parsed := _parsed(code) or _parsed(_codes_by_name().get(_short(code).casefold(), ""))) is None:
        written = code if len(code) <= LONGEST_CODE else f"{code[:LONGEST_CODE]}…"
        raise UsageError(f"{written!r} is not a language code; give one of BCP 47, such as en, zh-Hant or pt-BR")
    return parsed.to_tag()


def known_language(code: object) -> str | None:
    """The ``language`` of the tag for "eng", "zho_Hans", "pt-BR" and the like; None if it is unknown."""
    if not isinstance(code, str) or (code not in _PLAIN and _parsed(code) is None):
        return None
    if sum(len(part) < 4 and part.islower() for part in code.split("_")) > 1:
        return None  # several languages, as in en_el
    return language_tag(code).language


def named_language(text: str) -> str | None:
    """The tag that the head of a column means by "EN", "zh-CN", "Simplified Chinese" or "English (US)".

    None if it is no language. So are codes of three letters: many are words (cat, sun, the).
    """
    if text in _PLAIN:
        return text
    text = _short(text)
    if re.match(r"[A-Za-z]{2}(?![A-Za-z])", text) and (parsed := _parsed(text)) is not None:
        return parsed.to_tag()
    names, name = _codes_by_name(), _NOT_IN_NAMES.sub("", text.casefold()).strip()
    return names.get(name) or names.get(name.rpartition(" ")[2])


def same_language(first: str, second: str) -> bool:
    """Whether two codes name one language, in whatever script or region."""
    return language_tag(first).language == language_tag(second).language


def nearest(wanted: str, offered: Iterable[str]) -> list[str]:
    """The offered tags of the language of ``wanted``, the best first: the same, else the nearest by CLDR's distances."""
    tag = language_tag(wanted)
    if tag.language in CHINESE:
        tag = replace(tag, script=tag.usual_script)
    of_language = [code for code in offered if same_language(code, wanted)]
    if len(of_language) < 2:
        return of_language

    def far(code: str) -> tuple[bool, bool, int, bool]:
        other = language_tag(code)
        return code != wanted, other != tag, _langcodes().tag_distance(str(tag), str(other)), other.region is not None

    return sorted(of_language, key=far)


def same_text(wanted: str, offered: Iterable[str]) -> str | None:
    """The nearest offered tag whose text a reader of ``wanted`` can read: of the same language and script; else None."""
    script = language_tag(wanted).usual_script
    return next((code for code in nearest(wanted, offered) if language_tag(code).usual_script == script), None)


def is_tag_of(tag: str, language: str) -> bool:
    """True if a container's tag names the language: ISO 639-1, -2 (either code) or -3, BCP 47, or a list of these."""
    return any(same_language(part, language) for part in re.split(r"[,;/ ]+", tag) if part)


def confusable(first: str, second: str) -> bool:
    """Whether one language is taken for the other: Norwegian and Danish, Serbian and Croatian, Malay and Indonesian."""
    distance = _langcodes().tag_distance
    return bool(min(distance(first, second), distance(second, first)) < _NEAR)


def spaced(language: str) -> bool:
    """True if the language separates words with spaces."""
    return language_tag(language).language not in _UNSPACED_WORDS


def sets_sentences_apart(language: str) -> bool:
    """True if the language separates sentences with spaces."""
    return language_tag(language).language not in _UNSPACED_SENTENCES


def english_name(code: str) -> str:
    """The English name of the language of a tag, such as Portuguese; the code itself if the registry has none."""
    language = language_tag(code).language
    return next((name.title() for name, tag in _codes_by_name().items() if tag == language), code)


def _short(text: str) -> str:
    """The text without blanks around it; nothing of one that is too long for a language."""
    return text.strip() if len(text) <= LONGEST_CODE else ""


def _parsed(code: str) -> Language | None:
    """The tag with the codes of BCP 47 and macrolanguages (cmn → zh); None if it is malformed or names what is unknown."""
    code = _short(code)
    return _parsed_form(_OTHER_CODES.get(code, code)) if _TAG.fullmatch(code) else None


@functools.lru_cache(_KEPT_CODES)
def _parsed_form(code: str) -> Language | None:
    langcodes = _langcodes()
    try:
        parsed: Language = langcodes.get(langcodes.standardize_tag(code, macro=True))
    except langcodes.LanguageTagError:
        return None
    return parsed if parsed.is_valid() and parsed.private is None else None


@functools.cache
def _langcodes() -> ModuleType:
    """The package, which takes 25 ms to import; it keeps nothing, where it would keep each code that a client ever wrote."""
    import langcodes
    from langcodes import language_distance

    langcodes.Language._INSTANCES, langcodes.Language._PARSE_CACHE = _Nothing(), _Nothing()
    language_distance._DISTANCE_CACHE = _Nothing()
    return langcodes


class _Nothing(dict[Any, Any]):
    """A dictionary that stays empty."""

    def __setitem__(self, key: object, value: object) -> None:
        pass


@functools.cache
def _codes_by_name() -> Mapping[str, str]:
    """English name of a language, case-folded → its tag, from the registry of BCP 47."""
    from langcodes.registry_parser import parse_registry  # reads 700 kB

    codes: dict[str, str] = {}
    for entry in parse_registry():  # type: ignore[no-untyped-call]
        if entry["Type"] == "language" and "Deprecated" not in entry:
            names = entry["Description"]
            for name in [names] if isinstance(names, str) else names:
                codes.setdefault(_NOT_IN_NAMES.sub("", name.casefold()).strip(), entry["Subtag"])
    return codes
