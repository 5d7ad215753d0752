"""Languages: one code for each, and whether its text has spaces."""

from __future__ import annotations

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
# fmt: on
_SENTENCES_TOGETHER = {"zh", "ja", "cdo", "cjy", "gan", "hak", "hsn", "lzh", "nan", "wuu", "yue"}
_WORDS_TOGETHER = _SENTENCES_TOGETHER | {"th", "lo", "km", "my"}  # which set sentences and phrases apart


def two_letters(code: object) -> str | None:
    """The two-letter code for "eng", "zho_Hans", "pt-BR" and the like; None for what is no code that is known."""
    if not isinstance(code, str) or not code:
        return None
    if sum(len(part) < 4 and part.islower() for part in code.split("_")) > 1:
        return None  # several languages, as in en_el_es_fi
    base = _base(code)
    return TWO_LETTERS.get(base, base if len(base) == 2 else None)


def spaced(language: str) -> bool:
    """True where words are set apart by spaces."""
    return (two_letters(language) or _base(language)) not in _WORDS_TOGETHER


def sets_sentences_apart(language: str) -> bool:
    """True where sentences are set apart by spaces."""
    return (two_letters(language) or _base(language)) not in _SENTENCES_TOGETHER


def _base(code: str) -> str:
    """A code without its script and region."""
    return code.split("_")[0].split("-")[0].lower()
