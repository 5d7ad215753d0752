"""Kokoro's phonemes of Chinese text: pinyin in IPA, with arrows for tones."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import cn2an
from pypinyin import Style, lazy_pinyin

from .espeak import WESTERN

_PAIR = re.compile(r"(\S+):(\S+)")
_INITIALS: dict[str, str] = dict(
    _PAIR.findall("b:p p:pʰ m:m f:f d:t t:tʰ n:n l:l g:k k:kʰ h:x j:ʨ q:ʨʰ x:ɕ zh:ꭧ ch:ꭧʰ sh:ʂ r:ɻ z:ʦ c:ʦʰ s:s")
)
# The tone is at "0".
_FINALS: dict[str, str] = dict(
    _PAIR.findall(
        "a:a0 ai:ai0 an:a0n ang:a0ŋ ao:au0 e:ɤ0 ei:ei0 en:ə0n eng:ə0ŋ er:ɚ0 i:i0 ia:ja0 ian:jɛ0n iang:ja0ŋ iao:jau0 ie:je0 in:i0n "
        "ing:i0ŋ iong:jʊ0ŋ iou:jou0 o:wo0 ong:ʊ0ŋ ou:ou0 u:u0 ua:wa0 uai:wai0 uan:wa0n uang:wa0ŋ uei:wei0 uen:wə0n ueng:wə0ŋ uo:wo0 "
        "v:y0 van:ɥɛ0n ve:ɥe0 vn:y0n"
    )
)
_TONES = dict(zip("12345", ("→", "↗", "↓", "↘", ""), strict=True))
# As in 1,000: cn2an reads the parts as two numbers.
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
# Their "i" is no vowel of its own.
_SIBILANTS = {"zh", "ch", "sh", "r", "z", "c", "s"}


def phonemes(text: str) -> str:
    """``text`` with phonemes in place of characters and digits, and a space between phrases."""
    in_characters = cn2an.transform(_THOUSANDS.sub("", text), "an2cn")
    parse = _phrases().parse
    spelled = re.sub("[\u4e00-\u9fff]+", lambda run: " ".join(map(_phrase, parse(run[0]))), in_characters)
    return re.sub(f"[{''.join(WESTERN)}]", lambda mark: f"{WESTERN[mark[0]]} ", spelled)


def _phrase(characters: str) -> str:
    initials = lazy_pinyin(characters, style=Style.INITIALS)
    finals = lazy_pinyin(characters, style=Style.FINALS_TONE3, neutral_tone_with_five=True)
    return "".join(map(_syllable, initials, finals))


def _syllable(initial: str, final: str) -> str:
    """A syllable in IPA; empty if it is no usual syllable, as of "嗯"."""
    vowel, tone = final[:-1], final[-1:]
    ipa = "ɨ0" if vowel == "i" and initial in _SIBILANTS else _FINALS.get(vowel, "")
    return _INITIALS.get(initial, "") + ipa.replace("0", _TONES.get(tone, ""))


@cache
def _phrases() -> Any:
    import budoux

    return budoux.load_default_simplified_chinese_parser()
