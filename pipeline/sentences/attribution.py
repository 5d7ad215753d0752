"""Detect speaker attributions after a quotation, which belong to its sentence: “走吧。”他说。 and "Why?" Anna asked.

In scripts with letter case, a lower-case letter shows the same without a word list; see
``pipeline.sentences.boundaries``.
"""

from __future__ import annotations

import re

# Japanese and Korean mark a quotation with a particle, which never begins a sentence. The lookaheads exclude Japanese
# words that begin with the same kana: となり (neighbour) is not と, はい (yes) is not は.
_PARTICLES = {
    "ja": re.compile(
        r"と(?!にかく|ても|ころ|りあえず|なり|きどき|もだち|もかく|うとう)|って|なんて|など|を|だ(?!から|が|け|め|れ|っ)"
        r"|は(?!い|じ|や|あ|は|っ|な|ず|ん|る)|が(?!ん|っか)|の(?!で|ち|ど|ん|み|ぞ)|に(?!ほん|く|わ|お|げ)|も(?!う|し|ち|っ|の|と)"
    ),
    "ko": re.compile(r"(?:이?라(?:고|는|며|면서)|하고|하며|고)(?=[\s,]|$)"),
}

_ZH_SUBJECT = r"(?:(?![没沒不])[^\s，。！？：；、“”「」『』]){0,8}?"
_ZH_VERB = r"(?:[说說问問答喊叫嚷骂罵笑哭叹嘆吼]|心想|告诉[你我他她]|告訴[你我他她]|(?<![知味街频頻])道)"
_AR_VERB = r"(?:قال|قالت|قالوا|سأل|سألت|أجاب|أجابت|رد|ردت|صرخ|صرخت)"
_EN_SUBJECT = (
    r"(?:I|[Hh]e|[Ss]he|[Ww]e|[Tt]hey|[Tt]he \w+|[Mm]y \w+|[Hh](?:is|er) \w+|[A-Z][\w'’-]+(?: [A-Z][\w'’-]+)?)"
)
_EN_VERB = r"(?:said|says|asked|asks|replied|answered|shouted|cried|whispered|yelled|added|exclaimed|muttered)"

# Subject and verb of speaking. A phrase that introduces the next quotation (他说：“) does not belong to the previous one.
_SPEAKING = {
    "ar": re.compile(rf"{_AR_VERB}\b(?![^.؟!]{{0,30}}[:«\"])"),
    "en": re.compile(
        rf"{_EN_SUBJECT} {_EN_VERB}(?: (?:me|him|her|us|them|again|\w+ly|to \w+))?"
        r"(?=\s*(?:[.;!?—–]|,(?!\s*[\"“])|$)|\s+(?:as|while|when|and|with)\b)"
    ),
    "hi": re.compile(r"(?:[^\s।]+\s+){0,3}(?:कहा|पूछा|बोला|बोली|बोले)(?=\s*(?:[।.!?]|,(?!\s*[\"“])|$))"),
    "zh": re.compile(
        rf"{_ZH_SUBJECT}{_ZH_VERB}(?:道|了[一几幾]?[句声聲遍]?|着|著|完)?(?:[，。！,.]|$)"
        rf"|{_ZH_SUBJECT}[说說问問笑喊叫答](?:着|著|道|完|罢|罷)(?![：:])"
    ),
}


def is_attribution(after: str, language: str, introduced: bool) -> bool:
    """Whether ``after`` (no leading blanks) says who spoke. ``introduced``: the text before already said so."""
    particle, speaking = _PARTICLES.get(language), _SPEAKING.get(language)
    if particle is not None:
        return particle.match(after) is not None
    return speaking is not None and not introduced and speaking.match(after) is not None
