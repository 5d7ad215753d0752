"""Languages: one code for each, the script that a code asks for, and whether its text has spaces."""

from __future__ import annotations

import re
from dataclasses import dataclass

# ISO 639-3 codes, which opus-mt's files use ("jap" besides), and the ISO 639-1 codes of the same languages, which Whisper uses.
# fmt: off
TWO_LETTERS = {
    "afr": "af", "amh": "am", "ara": "ar", "arb": "ar", "asm": "as", "aze": "az", "azj": "az", "bak": "ba", "bel": "be",
    "ben": "bn", "bod": "bo", "bos": "bs", "bre": "br", "bul": "bg", "cat": "ca", "ces": "cs", "cmn": "zh", "cym": "cy",
    "dan": "da", "deu": "de", "ell": "el", "eng": "en", "epo": "eo", "est": "et", "eus": "eu", "fao": "fo", "fas": "fa",
    "fin": "fi", "fra": "fr", "gla": "gd", "gle": "ga", "glg": "gl", "guj": "gu", "hat": "ht", "hau": "ha", "heb": "he",
    "hin": "hi", "hrv": "hr", "hun": "hu", "hye": "hy", "ind": "id", "isl": "is", "ita": "it", "jap": "ja", "jav": "jv",
    "jpn": "ja", "kan": "kn", "kat": "ka", "kaz": "kk", "khm": "km", "kor": "ko", "lao": "lo", "lat": "la", "lav": "lv",
    "lin": "ln", "lit": "lt", "ltz": "lb", "mal": "ml", "mar": "mr", "mkd": "mk", "mlg": "mg", "mlt": "mt", "mon": "mn",
    "mri": "mi", "msa": "ms", "mya": "my", "nep": "ne", "nld": "nl", "nno": "nn", "nob": "no", "nor": "no", "oci": "oc",
    "pan": "pa", "pes": "fa", "pol": "pl", "por": "pt", "pus": "ps", "ron": "ro", "rus": "ru", "san": "sa", "sin": "si",
    "slk": "sk", "slv": "sl", "sna": "sn", "snd": "sd", "som": "so", "spa": "es", "sqi": "sq", "srp": "sr", "sun": "su",
    "swa": "sw", "swe": "sv", "swh": "sw", "tam": "ta", "tat": "tt", "tel": "te", "tgk": "tg", "tgl": "tl", "tha": "th",
    "tuk": "tk", "tur": "tr", "ukr": "uk", "urd": "ur", "uzb": "uz", "vie": "vi", "yid": "yi", "yor": "yo", "zho": "zh",
    "zsm": "ms",
}
# ISO 639-2 has two codes for some languages; containers use this one, the bibliographic, more than the other.
_BIBLIOGRAPHIC = {
    "alb": "sq", "arm": "hy", "baq": "eu", "bur": "my", "chi": "zh", "cze": "cs", "dut": "nl", "fre": "fr", "geo": "ka",
    "ger": "de", "gre": "el", "ice": "is", "mac": "mk", "mao": "mi", "may": "ms", "per": "fa", "rum": "ro", "slo": "sk",
    "tib": "bo", "wel": "cy",
}
# Other codes of a language: of one of its written standards, those that were withdrawn, and Whisper's for Javanese.
_OTHER_CODES = {"fil": "tl", "in": "id", "iw": "he", "ji": "yi", "jw": "jv", "mo": "ro", "nb": "no", "scc": "sr", "scr": "hr"}
# fmt: on
CHINESE = frozenset({"zh", "cdo", "cjy", "gan", "hak", "hsn", "lzh", "nan", "wuu", "yue"})
"""Languages that are written in Chinese characters, simplified or traditional."""
_SENTENCES_TOGETHER = CHINESE | {"ja"}
_WORDS_TOGETHER = _SENTENCES_TOGETHER | {"th", "lo", "km", "my"}  # which set sentences and phrases apart

# A language, its script (ISO 15924) and its region (ISO 3166, UN M.49), as in zh-Hant-TW, zh_TW, srp_Latn, es-419.
_TAG = re.compile(r"([A-Za-z]{2,3})(?:[-_]([A-Za-z]{4}))?(?:[-_]([A-Za-z]{2}|\d{3}))?")
# What Chinese is written in, by region.
_CHINESE_SCRIPTS = {"TW": "Hant", "HK": "Hant", "MO": "Hant", "CN": "Hans", "SG": "Hans", "MY": "Hans"}
# The script of languages that are not written in Latin letters; the usual one where a language has several (CLDR, likely
# subtags).
_USUAL_SCRIPTS = {
    language: script
    for script, languages in {
        "Arab": "ar fa ps sd ur", "Armn": "hy", "Beng": "as bn", "Cyrl": "ba be bg kk ky mk mn ru sr tg tt uk", "Deva": "hi mr ne sa",
        "Ethi": "am", "Geor": "ka", "Grek": "el", "Gujr": "gu", "Guru": "pa", "Hans": " ".join(sorted(CHINESE - {"yue"})), "Hant": "yue", "Hebr": "he yi",
        "Jpan": "ja", "Khmr": "km", "Knda": "kn", "Kore": "ko", "Laoo": "lo", "Mlym": "ml", "Mymr": "my", "Sinh": "si", "Taml": "ta",
        "Telu": "te", "Thai": "th", "Tibt": "bo",
    }.items()
    for language in languages.split()
}  # fmt: skip


@dataclass(frozen=True)
class LanguageTag:
    """A language, and what is said of how it is written."""

    language: str
    """Two letters where the language has such."""
    script: str | None = None
    """Named, or that of the region: Hans, Latn."""
    region: str | None = None
    """TW, 419."""

    @property
    def usual_script(self) -> str:
        """The script, or else that which the language is mostly written in; Latin for a language that is not known."""
        return self.script or _USUAL_SCRIPTS.get(self.language, "Latn")

    def __str__(self) -> str:
        return "-".join(part for part in (self.language, self.script, self.region) if part)


def language_tag(code: str) -> LanguageTag:
    """What "zh-TW", "zho_Hant", "sr_latn" and the like say; what is no such code is a language of its own."""
    if (match := _TAG.fullmatch(code)) is None:
        return LanguageTag(code)
    base, script, region = match.groups()
    language = TWO_LETTERS.get(base.lower(), base.lower())
    region = region.upper() if region else None
    script = script.title() if script else _CHINESE_SCRIPTS.get(region or "") if language in CHINESE else None
    return LanguageTag(language, script, region)


def normalized_code(code: str) -> str:
    """A code with script or region as BCP 47 writes it ("zh_tw" is zh-TW, "zh-hant" zh-Hant); others as they are."""
    match = _TAG.fullmatch(code)
    if match is None or not any(match.group(2, 3)):
        return code
    language, script, region = match.groups()
    return "-".join(part for part in (language.lower(), script and script.title(), region and region.upper()) if part)


def file_tag(code: str) -> str | None:
    """The tag that stands in names of files, where players look for one: BCP 47, with two letters where the language has
    such ("zho_hant" is zh-Hant). None for what is no code."""
    if _TAG.fullmatch(code) is None:
        return None
    base, dash, rest = normalized_code(code).partition("-")
    return TWO_LETTERS.get(base.lower(), base.lower()) + dash + rest


def two_letters(code: object) -> str | None:
    """The two-letter code for "eng", "zho_Hans", "pt-BR" and the like; None for what is no code that is known."""
    if not isinstance(code, str) or not code:
        return None
    if sum(len(part) < 4 and part.islower() for part in code.split("_")) > 1:
        return None  # several languages, as in en_el_es_fi
    base = _base(code)
    return TWO_LETTERS.get(base, base if len(base) == 2 else None)


def is_tag_of(tag: str, language: str) -> bool:
    """True where a container's tag names the language: ISO 639-1, -2 (either code) or -3, BCP 47, or several with commas."""
    return any(_one_code(part) == _one_code(language) for part in re.split(r"[,;/ ]+", tag) if part)


def _one_code(code: str) -> str:
    base = _base(code)
    short = TWO_LETTERS.get(base) or _BIBLIOGRAPHIC.get(base) or base
    return _OTHER_CODES.get(short, short)


def spaced(language: str) -> bool:
    """True where words are set apart by spaces."""
    return (two_letters(language) or _base(language)) not in _WORDS_TOGETHER


def sets_sentences_apart(language: str) -> bool:
    """True where sentences are set apart by spaces."""
    return (two_letters(language) or _base(language)) not in _SENTENCES_TOGETHER


def _base(code: str) -> str:
    """A code without its script and region."""
    return code.split("_")[0].split("-")[0].lower()
