"""Language codes: normalisation, the script of a code, and whether a language separates words with spaces."""

from __future__ import annotations

import re
from dataclasses import dataclass

# ISO 639-3 codes, used in opus-mt's files (also "jap"), mapped to the ISO 639-1 codes that Whisper uses.
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
# ISO 639-2 has two codes for some languages. Media containers mostly use this one, the bibliographic code.
_BIBLIOGRAPHIC = {
    "alb": "sq", "arm": "hy", "baq": "eu", "bur": "my", "chi": "zh", "cze": "cs", "dut": "nl", "fre": "fr", "geo": "ka",
    "ger": "de", "gre": "el", "ice": "is", "mac": "mk", "mao": "mi", "may": "ms", "per": "fa", "rum": "ro", "slo": "sk",
    "tib": "bo", "wel": "cy",
}
# Other codes: of a written standard of the language, withdrawn codes, and Whisper's code for Javanese.
_OTHER_CODES = {"fil": "tl", "in": "id", "iw": "he", "ji": "yi", "jw": "jv", "mo": "ro", "nb": "no", "scc": "sr", "scr": "hr"}
# fmt: on
CHINESE = frozenset({"zh", "cdo", "cjy", "gan", "hak", "hsn", "lzh", "nan", "wuu", "yue"})
"""Languages written in simplified or traditional Chinese characters."""
_UNSPACED_SENTENCES = CHINESE | {"ja"}
_UNSPACED_WORDS = _UNSPACED_SENTENCES | {"th", "lo", "km", "my"}  # spaces between sentences and phrases only

# Language, script (ISO 15924) and region (ISO 3166 or UN M.49), as in zh-Hant-TW, zh_TW, srp_Latn, es-419.
_TAG = re.compile(r"([A-Za-z]{2,3})(?:[-_]([A-Za-z]{4}))?(?:[-_]([A-Za-z]{2}|\d{3}))?")
# The script of Chinese by region.
_CHINESE_SCRIPTS = {"TW": "Hant", "HK": "Hant", "MO": "Hant", "CN": "Hans", "SG": "Hans", "MY": "Hans"}
# The scripts of languages not written in Latin letters. If a language has several, its most common one (CLDR, likely
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
    """A language and, if given, its script and region."""

    language: str
    """The two-letter code if the language has one."""
    script: str | None = None
    """Given in the code, or implied by its region: Hans, Latn."""
    region: str | None = None
    """Such as TW or 419."""

    @property
    def usual_script(self) -> str:
        """The script of the tag or, without one, the most common script of the language; Latin if unknown."""
        return self.script or _USUAL_SCRIPTS.get(self.language, "Latn")

    def __str__(self) -> str:
        return "-".join(part for part in (self.language, self.script, self.region) if part)


def language_tag(code: str) -> LanguageTag:
    """Parse "zh-TW", "zho_Hant", "sr_latn" and the like. Any other text becomes the language unchanged."""
    if (match := _TAG.fullmatch(code)) is None:
        return LanguageTag(code)
    base, script, region = match.groups()
    language = TWO_LETTERS.get(base.lower(), base.lower())
    region = region.upper() if region else None
    script = script.title() if script else _CHINESE_SCRIPTS.get(region or "") if language in CHINESE else None
    return LanguageTag(language, script, region)


def normalized_code(code: str) -> str:
    """A code with script or region in BCP 47 form ("zh_tw" → zh-TW, "zh-hant" → zh-Hant); other codes unchanged."""
    match = _TAG.fullmatch(code)
    if match is None or not any(match.group(2, 3)):
        return code
    language, script, region = match.groups()
    return "-".join(part for part in (language.lower(), script and script.title(), region and region.upper()) if part)


def file_tag(code: str) -> str | None:
    """The language tag for file names, where players look for it: BCP 47, with the two-letter code if there is one
    ("zho_hant" → zh-Hant). None if ``code`` is not a language code."""
    if _TAG.fullmatch(code) is None:
        return None
    base, dash, rest = normalized_code(code).partition("-")
    return TWO_LETTERS.get(base.lower(), base.lower()) + dash + rest


def two_letters(code: object) -> str | None:
    """The two-letter code for "eng", "zho_Hans", "pt-BR" and the like; None if the code is unknown."""
    if not isinstance(code, str) or not code:
        return None
    if sum(len(part) < 4 and part.islower() for part in code.split("_")) > 1:
        return None  # several languages, as in en_el_es_fi
    base = _base_code(code)
    return TWO_LETTERS.get(base, base if len(base) == 2 else None)


def same_language(first: str, second: str) -> bool:
    """Whether two codes name one language, in whatever script or region."""
    return language_tag(first).language == language_tag(second).language


def is_tag_of(tag: str, language: str) -> bool:
    """True if a container's tag names the language: ISO 639-1, -2 (either code) or -3, BCP 47, or a list of these."""
    return any(_canonical_code(part) == _canonical_code(language) for part in re.split(r"[,;/ ]+", tag) if part)


def _canonical_code(code: str) -> str:
    base = _base_code(code)
    short = TWO_LETTERS.get(base) or _BIBLIOGRAPHIC.get(base) or base
    return _OTHER_CODES.get(short, short)


def spaced(language: str) -> bool:
    """True if the language separates words with spaces."""
    return (two_letters(language) or _base_code(language)) not in _UNSPACED_WORDS


def sets_sentences_apart(language: str) -> bool:
    """True if the language separates sentences with spaces."""
    return (two_letters(language) or _base_code(language)) not in _UNSPACED_SENTENCES


def _base_code(code: str) -> str:
    """The code without script and region, in lower case."""
    return code.split("_")[0].split("-")[0].lower()
