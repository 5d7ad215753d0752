"""Hindi."""

import re

from .record import FullStops, Rules

RULES = Rules(
    full_stops=FullStops(before="डॉ डा प्रो श्री श्रीमती पं मो स्व सु कु इं ई.पू कि.मी कि.ग्रा रु", number="सं पृ नं क्र"),
    own_digits=True,
    speaking=re.compile(r"(?:[^\s।]+\s+){0,3}(?:कहा|पूछा|बोला|बोली|बोले)(?=\s*(?:[।.!?]|,(?!\s*[\"“])|$))"),
)
