"""Articles and the like before a noun that has taken the place of another, in its gender. Pure."""

from __future__ import annotations

import re

# Portuguese, masculine → feminine.
_FORMS = {
    "um": "uma", "ao": "à", "bom": "boa", "dois": "duas", "este": "esta", "esse": "essa", "aquele": "aquela", "algum": "alguma",
    "nenhum": "nenhuma", "meu": "minha", "teu": "tua", "seu": "sua",
}  # fmt: skip
_STEMS = "|d|n|pel|tod|outr|noss|nov|velh|antig|primeir|últim|próxim|mesm|pequen|quant"
_FORMS |= {f"{stem}o": f"{stem}a" for stem in _STEMS.split("|")}
_FORMS |= {f"{one}s": f"{other}s" for one, other in _FORMS.items()} | {"uns": "umas", "bons": "boas"}
_FORMS |= {
    f"{of}{one}": f"{of}{other}" for one, other in _FORMS.items() for of in "dn" if re.match("(um|est|ess|aqu)", one)
}
_MASCULINES = {other: one for one, other in _FORMS.items()}
_FEMININE = re.compile(r"(?:[çs]ão|[çs]ões|gem|gens|dades?|tudes?|(?<![emor]m)(?<!\bdi)(?<!\bmap)as?)$")
_MASCULINE = re.compile(r"(?:[oeu]r(?:es)?|os?|[aeiou]l|[aeéó]is|um|ão|ões|[eo]mas?|dias?|mapas?)$")
# Of the words before a noun, those that are looked at.
_BEFORE = 3


def agreeing(before: list[str], noun: str, after: str, language: str) -> tuple[list[str], str]:
    """The words before a noun of a language, and the one after it, as they are with this noun. Others stay as they are."""
    made = list(before)
    if language == "en" and made and made[-1].lower() in ("a", "an"):
        made[-1] = made[-1][0] + "n" * (noun[:1].lower() in "aeio")
    if language != "pt" or not noun or noun[0].isupper():
        return made, after
    forms = _FORMS if _FEMININE.search(_head(noun)) else _MASCULINES if _MASCULINE.search(_head(noun)) else {}
    for at in range(len(made) - 1, max(-1, len(made) - 1 - _BEFORE), -1):
        word = made[at].lower()
        if word not in _FORMS and word not in _MASCULINES:
            break
        form = forms.get(word, word)
        made[at] = form.capitalize() if made[at][0].isupper() else form
    return made, forms.get(after, after) if len(after) > _BEFORE else after


def _head(noun: str) -> str:
    """The first word of a Portuguese noun."""
    return re.split(r"[\s-]", noun.lower())[0]


def numbered(forms: tuple[str, ...], word: str, source: str, target: str) -> tuple[str, ...]:
    """The translations of a term, those in the number of its word in the source first."""
    if not {source, target} <= {"en", "pt"} or forms[0][:1].isupper():
        return forms
    plural = word.endswith("s") and not re.search(
        r"(?:ss|us|is)$" if source == "en" else r"(?:ês|ônibus|lápis|pires)$", word
    )
    return tuple(sorted(forms, key=lambda form: (_head(form) if target == "pt" else form).endswith("s") != plural))
