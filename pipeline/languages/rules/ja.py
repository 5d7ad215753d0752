"""Japanese."""

import re

from .record import Rules

RULES = Rules(
    encoding="cp932",
    separators=",.",
    scales=(("億", 8), ("万", 4)),
    # The lookaheads exclude words that begin with the same kana: となり (neighbour) is not と, はい (yes) is not は.
    particles=re.compile(
        r"と(?!にかく|ても|ころ|りあえず|なり|きどき|もだち|もかく|うとう)|って|なんて|など|を|だ(?!から|が|け|め|れ|っ)"
        r"|は(?!い|じ|や|あ|は|っ|な|ず|ん|る)|が(?!ん|っか)|の(?!で|ち|ど|ん|み|ぞ)|に(?!ほん|く|わ|お|げ)|も(?!う|し|ち|っ|の|と)"
    ),
)
