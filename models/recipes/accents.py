"""English with the accents of other languages: its phones replaced by those that a voice of another language has.

An accent is drawn by a number: which of several near phones stands for an English one, how fast and how lively it is.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from functools import cache

Ways = dict[str, tuple[str, ...]]  # of a phone: what may stand for it; several phones have spaces between them
Segment = tuple[str, float, float]  # phone, seconds, hertz


@dataclass(frozen=True)
class Speaker:
    ways: Ways
    pitch: float  # hertz, on average
    package: str  # of Debian, or several


def _ways(text: str, kept: str) -> Ways:
    ways = {phone: (phone,) for phone in kept.split()}
    for entry in text.split(";"):
        phone, _, said = entry.strip().partition(":")
        ways[phone] = tuple(way.strip() for way in said.split("|"))
    return ways


def _radio(text: str, kept: str = "p b t d k g f v s z m n l r") -> Ways:
    """Of the phones of festival's English voices; a syllabic consonant is schwa and the consonant."""
    ways = _ways(text, kept)
    schwa = ways["ax"][0]
    syllabic = {f"e{phone}": (f"{schwa} {ways[phone][0]}",) for phone in "lmn"}
    return (
        ways | syllabic | {"hv": ways["hh"], "dx": ways["d"], "nx": ways["n"], "h#": ways["pau"], "brth": ways["pau"]}
    )


_FINNISH = _radio(
    "z:s; b:b|b|p; d:d|d|t; g:g|g|k; aa:a:|a; ae:@|@|@:|a; ah:a|a|7; ao:o:|o; ax:7|e|a; axr:7 r|e r; ay:a i; aw:a u;"
    "eh:e; er:7: r|7 r|7:; ey:e i|e:; ih:i|i|e; iy:i:; ow:o u|o:; oy:o i; uh:u|u|o; uw:u:; ch:t s; jh:d j|t s;"
    "dh:d|t|v; th:t|s|f; sh:s; zh:s; hh:h; ng:N|N k; w:v|u; y:j; pau:#"
)
_ITALIAN = _radio(
    "aa:a1; ae:E1|a1; ah:a1|O1|a; ao:O1|o1; ax:e|a|E|o; axr:e r|E r; ay:a1 i; aw:a1 u; eh:E1|e1; er:E1 r|e1 r|o1 r;"
    "ey:e1 i; ih:i|i1|e; iy:i1; ow:o1 u|O1; oy:O1 i; uh:u|o; uw:u1; ch:tS; jh:dZ; dh:d|v|z; th:t|f|s; sh:S; zh:Z|dZ|S;"
    "hh:|f|k; ng:ng g|ng k|n; w:w|u; y:j; pau:#"
)
_CZECH = _radio(
    "aa:a:|a; ae:e|a|e:; ah:a; ao:o:|o; ax:e|a; axr:e r; ay:a j; aw:a u; eh:e; er:e: r|e r|o r; ey:e j|e:; ih:i; iy:i:|i;"
    "ow:o u; oy:o j; uh:u; uw:u:; ch:c~; jh:dz~; dh:d|z|v; th:t|s|f; sh:s~; zh:z~; hh:h|ch; ng:n* g|n* k|n; w:v|u; y:j;"
    "pau:#"
)
_HINDI = _radio(
    "z:s|j; t:T|th|T; d:D|dh|D; aa:aa; ae:eh|aa|ay; ah:a|aa; ao:oo|oh|aa; ax:a; axr:a r; ay:aa ih; aw:aw|aa uh; eh:eh|ee;"
    "er:a r|eh r; ey:ee; ih:ih; iy:iy; ow:oo; oy:oh ih; uh:uh; uw:uw; ch:ch; jh:j; dh:dh|D; th:th|T; sh:sh|s; zh:sh|j;"
    "hh:h; ng:n g|n; w:v|v|uh; y:y; pau:pau"
)
_RUSSIAN = _radio(
    "aa:aa|a; ae:ee|e|ae; ah:aa|a; ao:oo; ax:a|e|y; axr:a r|e r; ay:aa j; aw:aa u; eh:ee|e; er:oo r|ee r; ey:ee j; ih:i|y|ii;"
    "iy:ii; ow:oo u; oy:oo j; uh:uu|u; uw:uu; ch:ch; jh:d zh; dh:z|d; th:s|f|t; sh:sh; zh:zh; hh:h; ng:n g|n; w:v; y:j;"
    "pau:pau"
)
SPEAKERS = {
    "hy_fi_mv_diphone": Speaker(_FINNISH, 105, "festvox-suopuhe-mv"),
    "suo_fi_lj_diphone": Speaker(_FINNISH, 185, "festvox-suopuhe-lj"),
    "lp_diphone": Speaker(_ITALIAN, 190, "festvox-italp16k"),
    "pc_diphone": Speaker(_ITALIAN, 110, "festvox-itapc16k"),
    "hindi_NSK_diphone": Speaker(_HINDI, 120, "festvox-hi-nsk festival-hi"),
    "czech_dita": Speaker(_CZECH, 190, "festvox-czech-dita"),
    "czech_krb": Speaker(_CZECH, 240, "festvox-czech-krb"),
    "czech_machac": Speaker(_CZECH, 105, "festvox-czech-machac"),
    "czech_ph": Speaker(_CZECH, 110, "festvox-czech-ph"),
    "msu_ru_nsh_clunits": Speaker(_RUSSIAN, 120, "festvox-ru"),
}
_DEVOICED = {"b": "p", "d": "t", "g": "k", "v": "f", "z": "s", "dh": "th", "zh": "sh", "jh": "ch"}
_GLIDES = ("ay", "aw", "ey", "ow", "oy")


def foreign(segments: list[Segment], name: str, lot: str, pitch: float, rng: random.Random) -> list[Segment]:
    """What the voice ``name`` says for ``segments`` of festival's English voices."""
    speaker = SPEAKERS[name]
    accent = random.Random(f"{name} {lot}")
    chosen = {phone: accent.choice(ways).split() for phone, ways in speaker.ways.items()}
    lively, slow = accent.uniform(0.6, 1.8), accent.uniform(1.0, 1.25)
    pitches = [hertz for *_, hertz in segments if hertz]
    mean = sum(pitches) / max(1, len(pitches))
    said: list[Segment] = []
    hertz = speaker.pitch * pitch
    for at, (phone, seconds, own) in enumerate(segments):
        if own:
            hertz = speaker.pitch * pitch * (own / mean) ** lively
        if at + 1 < len(segments) and segments[at + 1][0] == "pau" and speaker.ways in (_CZECH, _FINNISH, _RUSSIAN):
            phone = _DEVOICED.get(phone, phone)
        phones = chosen[phone]
        seconds *= slow * 2.0 ** rng.gauss(0, 0.2) * (1.3 if len(phones) > 1 and phone not in _GLIDES else 1.0)
        for part in phones:
            if said and said[-1][0] == part:  # a double consonant
                said[-1] = (part, said[-1][1] + 0.6 * seconds, said[-1][2])
            else:
                said.append((part, seconds / len(phones), hertz))
    return said


# --- Pico -----------------------------------------------------------------------------------------------------------


def _kokoro(text: str) -> Ways:
    """Of Kokoro's phonemes, in X-SAMPA."""
    common = "ɡ:g; ʃ:S; ʒ:Z; ŋ:N; ʧ:tS; ʤ:dZ; T:d|t; "
    return _ways(common + text, "p b t d k f v s z m n l j")


PICO = {
    "de-DE": _kokoro(
        "ə:@|@|E; ʌ:a; ɪ:I; i:i:|i; ʊ:U; u:u:; ɛ:E; æ:E|E|a|E:; a:a|E; ɑ:a:|O|a; ɒ:O; ɔ:O|o:; ɜ:9|2:|E; ɐ:a|@; A:e:|EI; I:aI;"
        "W:aU; Y:OY; O:o:|OU|@U; Q:o:|OU|@U; θ:s|t|f; ð:d|z|s; h:h; ɹ:R; w:v|U; ʤ:dZ|tS; ʒ:Z|S"
    ),
    "fr-FR": _kokoro(
        "ə:@|2|9; ʌ:9|a|O; ɪ:i|i|E; i:i; ʊ:u; u:u; ɛ:E; æ:a; a:a; ɑ:a|O; ɒ:O; ɔ:O|o; ɜ:9|2; ɐ:a; A:Ej|e; I:aj; W:aw|au; Y:Oj;"
        "O:o|ow; Q:o|ow; θ:s|t|f; ð:z|d|v; h:; ɹ:R; w:w"
    ),
    "es-ES": _kokoro(
        "v:b|b|f; z:s; ə:e|a; ʌ:a|a|o; ɪ:i|i|e; i:i; ʊ:u; u:u; ɛ:e; æ:a; a:a; ɑ:a|o; ɒ:o; ɔ:o; ɜ:e|er; ɐ:a; A:ei; I:ai; W:au;"
        "Y:oi; O:ou|o; Q:ou; θ:T; ð:D|d; h:x; ɹ:r; w:u|gu; j:j|jj; ʃ:tS|s; ʒ:jj|s; ʤ:jj|tS"
    ),
    "it-IT": _kokoro(
        "ə:e|a; ʌ:a|o; ɪ:i; i:i; ʊ:u; u:u; ɛ:E|e; æ:E|a; a:a|E; ɑ:a|o; ɒ:o; ɔ:o; ɜ:Er|er; ɐ:a; A:ei; I:ai; W:au; Y:oi; O:ou|o;"
        "Q:ou; θ:t|f|s; ð:d|v; h:; ɹ:r; w:u; j:i; ʒ:dZ; ŋ:Ng|n"
    ),
}


@cache
def _chosen(name: str, lot: str) -> dict[str, str]:
    accent = random.Random(f"{name} {lot}")
    return {phone: accent.choice(ways) for phone, ways in PICO[name].items()} | {"ˈ": '"'}


def tagged(phonemes: str, name: str, lot: str) -> str:
    """Kokoro's ``phonemes`` in Pico's markup, as its voice ``name`` can say them."""
    chosen = _chosen(name, lot)
    words = []
    for word in phonemes.split():
        spoken = word.rstrip(",.?!;:")
        if said := "".join(chosen.get(phone, "") for phone in spoken):
            words.append(f"<phoneme alphabet='xsampa' ph='{said}'/>{word[len(spoken) :]}")
    return " ".join(words)
