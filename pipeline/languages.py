"""Languages: one code for each, and whether its text has spaces."""

from __future__ import annotations

# ISO 639-3 codes that opus-mt's files use, and the two-letter codes that Whisper uses.
TWO_LETTERS = {
    "eng": "en",
    "zho": "zh",
    "cmn": "zh",
    "deu": "de",
    "fra": "fr",
    "spa": "es",
    "ita": "it",
    "por": "pt",
    "rus": "ru",
    "jpn": "ja",
    "jap": "ja",
    "kor": "ko",
    "nld": "nl",
    "pol": "pl",
    "ukr": "uk",
    "ara": "ar",
    "tur": "tr",
    "vie": "vi",
}
_UNSPACED = {"zh", "ja", "th", "lo", "km", "my"}


def two_letters(code: object) -> str | None:
    """The two-letter code for "eng", "zho_Hans", "pt-BR" and the like; None for what is no code that is known."""
    if not isinstance(code, str) or not code:
        return None
    base = code.split("_")[0].split("-")[0].lower()
    return TWO_LETTERS.get(base, base if len(base) == 2 else None)


def spaced(language: str) -> bool:
    """True where words and sentences are set apart by spaces."""
    return (two_letters(language) or language) not in _UNSPACED
