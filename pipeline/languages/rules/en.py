"""English, and how its numbers are written in words."""

import re

from .clock import AFTERNOON, HOUR, MORNING, NOT_IN_NUMBER, Clock, spoken_times
from .record import FullStops, Rules, fillers, stutter

# fmt: off
_ONES = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve", "thirteen",
    "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
)
# fmt: on
_HOURS = "|".join(_ONES[1:13])
_TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_RANKS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")
_NOT_AFTER = r"(?<!\d(?:st|nd|rd|th) and )(?<!\d(?:st|nd|rd|th) (?:or|to) )(?<!/)(?<!ary )(?<!rch )(?<!ril )(?<!May )(?<!une )(?<!uly )(?<!ust )(?<!ber )"
_NOT_RANKED = "(?:centur\\w+|and|but|for|from|if|the|she|they|you|was|were|has|had|will|when|until|till|through|with|there|after|before|because)"
_VERB = "is|are|was|were|do|does|did|can|could|will|would|should|have|has|had"
_PERSON = "i|you|he|she|it|we|they"
_NEGATED = "isn|aren|wasn|weren|don|doesn|didn|can|couldn|won|wouldn|shouldn|haven|hasn|hadn"
_AUXILIARIES = rf"am|{_VERB}|shall|may|might|must|(?:{_NEGATED}|mustn)['’]t"
# Where a question has its form: a word that asks, or an auxiliary, begins a clause; or the auxiliary is before a pronoun.
_ASKS = (
    r"(?:^|[,;:.!?–—-] *|\b(?:and|but|so|or|then|in|on|at|for|with|from|to|of|by) )\W*"
    rf"(?:who|whom|whose|what|which|when|where|why|how|any|{_AUXILIARIES})\b|\b(?:{_AUXILIARIES}) (?:{_PERSON}|there)\b"
)
# What more than names and nouns has.
_STATES = rf"\b(?:{_PERSON}|th(?:is|at|ere)|is|are|was|were|have|has|had|(?<=\w )(?<!by )\w+sel(?:f|ves))\b|\w(?:s|ed) \w|^(?:the|my|your|his|her|our) \w+ \w+(?:s|ed|t)\b"
_SPEAKER = r"(?:I|[Hh]e|[Ss]he|[Ww]e|[Tt]hey|[Tt]he \w+|[Mm]y \w+|[Hh](?:is|er) \w+|[A-Z][\w'’-]+(?: [A-Z][\w'’-]+)?)"
_SAID = r"(?:said|says|asked|asks|replied|answered|shouted|cried|whispered|yelled|added|exclaimed|muttered)"


def in_words(value: int, joint: str = " ") -> str:
    """A number from 0 to 9,999, such as "one hundred twenty-five". ``joint`` stands before tens and ones: " and " in Britain."""
    for size, name in ((1000, "thousand"), (100, "hundred")):
        if value >= size:
            count, remainder = divmod(value, size)
            before = joint if remainder < 100 else " "
            return f"{_ONES[count]} {name}" + (before + in_words(remainder, joint) if remainder else "")
    if value < 20:
        return _ONES[value]
    tens, ones = divmod(value, 10)
    return _TENS[tens - 2] + (f"-{_ONES[ones]}" if ones else "")


def _ordinal(value: int) -> str:
    return "th" if value % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(value % 10, "th")


def _agreeing(before: list[str], noun: str, after: str) -> tuple[list[str], str]:
    """The words before the noun, with the article a or an as the noun sounds."""
    if before and before[-1].lower() in ("a", "an"):
        before = [*before[:-1], before[-1][0] + "n" * (noun[:1].lower() in "aeio")]
    return before, after


RULES = Rules(
    neighbour="I know that.",
    neighbour_margin=0.05,
    phrases={
        "pt": {
            "uhhuh": "Aham", "mmhmm": "Uhum", "umhmm": "Uhum", "uhhmm": "Uhum", "hmmhmm": "Uhum", "bye": "Tchau", "excuseme": "Com licença", "gotit": "Entendi",
            "nevermind": "Não importa", "notatall": "De modo algum", "thankyouall": "Obrigado a todos", "thankyoueveryone": "Obrigado a todos", "meneither": "Nem eu",
            "youarewelcome": "De nada", "yourewelcome": "De nada", "comein": "Entre", "whattimeisit": "Que horas são", "whatsthematter": "Qual é o problema", "whatfor": "Para quê",
            "whereto": "Para onde", "whoseturnisit": "De quem é a vez", "isthatyou": "É você", "anythingelse": "Mais alguma coisa", "areyoudone": "Você terminou",
            "diditrain": "Choveu", "howcome": "Como assim", "whatsup": "E aí", "isitover": "Acabou", "really": "Sério", "noway": "De jeito nenhum",
        }
    },
    fillers=fillers(r"u[hm]+|uhm|erm?|hmm+"),
    stutter=stutter("a|an|and|at|but|for|he|i|if|in|it|my|of|on|or|she|the|they|this|to|we|with|you"),
    corrections=(
        # As in "at 7.35" and "at 735".
        (re.compile(r"(?<=\bat )([1-9]|1[0-2])([0-5][05])(?=\W*$)"), r"\1:\2"),
        (re.compile(r"(?:(?<=\bat \d)|(?<=\bat \d\d))\.(?=[0-5]\d\b(?![.,:%]\d))"), ":"),
        (re.compile(r"(?<=\bis at )(1?\d|2[0-4])(?= (?:in (?:room|the (?:morning|afternoon|evening))|on \w+day)\b)"), r"\1 o'clock"),
        (re.compile(r"\b(?:(half)|(?:a )?quarter) past(?=\W*$)"), lambda found: f"{'thirty' if found[1] else 'fifteen'} minutes past the hour"),
        (re.compile(rf"(?<=\bat )({_HOURS})(?=\W*$|,| (?:tomorrow|tonight|today|sharp|every|on \w+day)\b)"), r"\1 o'clock"),
        (re.compile(r"\b(I|we|they) leave(?= at\b)", re.IGNORECASE), r"\1 depart"),
        (re.compile(r"\b(is|are) there any ([^.,]+) left\b", re.IGNORECASE), r"\1 there still any \2"),
        (re.compile(rf"\bat ((?:\d[\d:]*|noon|midnight|{_HOURS})(?: o['’]clock| [ap]\.m\.)?) sharp\b"), r"at exactly \1"),
        (re.compile(r"(?<=\b[Ii]t['’]s )(\d\d?(?::\d\d)?) in the morning\b"), r"\1 a.m."),
        (re.compile(r"^See you (?=at \d)"), "I'll see you "),
        (re.compile(r"\bevery other (day|night|week|month|year)\b"), r"every two \1s"),
        (re.compile(r"(?<=\bin )(his|her|my|your|their) ([2-9])0s\b"), lambda found: f"{found[1]} {_TENS[int(found[2]) - 2][:-1]}ies"),
        # "3rd place" comes back as "3o". Days of a month stay, and centuries, which have Roman numerals.
        (re.compile(rf"{_NOT_AFTER}\b(10|[1-9])(?:st|nd|rd|th)(?= (?!{_NOT_RANKED}\b)[a-z]{{3,}})"), lambda found: _RANKS[int(found[1]) - 1]),
        # "Ask not what" is read as a statement.
        (re.compile(r"(^|[,;:] )(ask|fear|worry|judge|forget|doubt|think|speak|look) not\b", re.IGNORECASE), lambda found: f"{found[1]}{'do' if found[1] else 'Do'} not {found[2].lower()}"),
    ),
    asks=re.compile(_ASKS, re.IGNORECASE),
    stated=re.compile(rf"(?!.*?(?:{_ASKS}))(?=.*(?:{_STATES}))|.*[^?]$", re.IGNORECASE),
    question=re.compile(
        rf"\W*(?:(?:and|but|so|then|well|okay),?\s+)?(?:(?:who|what|where|when|why|how)(?:\s+(?:{_VERB}|(?:{_NEGATED})['’]t)|['’]s)|who else|whose|whom"
        rf"|(?:how|what) about|(?:how|what|which)\s+(?!(?:{_PERSON})\b)\w+\s+(?:{_VERB})|which\s+(?:{_VERB}))\b"
        rf"|\W*(?:(?:and|but),?\s+)?(?!do (?:it|this|that)\b)(?:(?:{_VERB}|may|shall|must)\s+(?:{_PERSON}|this|that|there|any\w+|some\w+)"
        rf"|(?:{_NEGATED})['’]t\s+(?:{_PERSON}|this|that|there)|(?:is|are|was|does|did|can)\s+(?!not\b)\w+)\b",
        re.IGNORECASE,
    ),
    # Students read "half past nine" as the half of nine.
    spoken_times=spoken_times(
        r"(?:(?<=\bat )|(?<=\bby )|(?<=\buntil )|(?<=\bset for ))({0})[ -]({1})(?![-\w])"
        r"|(?:(?<=\bat )|(?<=\bby )|(?<=\bit['’]s )|(?<=\bit is )|\b(?=(?:a )?quarter\b|[\w-]+(?: \w+){{0,2}} past\b))"
        r"({1})(?: minutes)? (?:past|(to)) ({0}|1[0-2]|[1-9])(?![-\w])",
        {in_words(hour): hour for hour in range(1, 13)},
        {in_words(minute): minute for minute in range(10, 60)}
        | {f"oh-{in_words(minute)}": minute for minute in range(1, 10)}
        | {"five": 5, "half": 30, "quarter": 15, "a-quarter": 15},
    ),
    capitals="I",
    digits=",.",
    zero=("oh", "o"),
    years_in_halves=True,
    separators=",.",
    writes_digits=True,
    scales=((" billion", 9), (" million", 6)),
    minus_words=("minus ", "negative "),
    currencies={
        "$": (("$", ""), ("US$", ""), ("US$ ", ""), ("", " dollars"), ("", " dollar"), ("", " US dollars")),
        "€": (("€", ""), ("", " euros"), ("", " euro"), ("EUR ", "")),
        "£": (("£", ""), ("", " pounds"), ("", " pound")),
        "¥": (("¥", ""), ("", " yen"), ("", " yuan")),
        "R$": (("R$", ""), ("R$ ", ""), ("", " reais"), ("", " real")),
    },
    ordinal=_ordinal,
    clock=Clock(
        pattern=rf"{NOT_IN_NUMBER}{HOUR}(?:(?::|(?:(?<=\bat \d)|(?<=\bat \d\d))\.)(?P<minute>[0-5]\d))?"
        r"(?:\s?(?P<part>[ap]\.?m\b\.?|in\ the\ (?:morning|afternoon|evening)|at\ night))?",
        parts={
            "a.m": MORNING, "am": MORNING, "in the morning": MORNING, "p.m": AFTERNOON, "pm": AFTERNOON,
            "in the afternoon": range(12, 20), "in the evening": range(16, 24), "at night": {*range(18, 24), *range(6)},
        },
        forms=("{}:{:02}", "{:02}:{:02}"),
        whole_hours=("{} o'clock", "{}"),
        alone=" o'clock",
        named={0: ("midnight",), 12: ("noon",)},
        written_parts=(("a.m.", 12), ("p.m.", 24)),
    ),
    full_stops=FullStops(
        before="mr mrs ms messrs mx dr drs prof cpt lt sgt cpl cmdr adm supt vs viz cf e.g i.e approx esp incl a.k.a Rep Gov Sen Gen Col Maj Capt Hon Rev Pres Ft Mt St Ste",
        number="no nos vol vols fig figs p pp ch chap sec art eq ext jan feb mar apr jun jul aug sep sept oct nov dec",
        either="u.s u.k u.n u.s.a e.u d.c b.c a.d jr sr esq inc ltd co corp bros ave blvd rd ph.d m.d b.a m.a",
        list="etc et.al a.m p.m",
        counted="Monday Tuesday Wednesday Thursday Friday Saturday Sunday January February March April May June July August September October November December EST EDT PST PDT GMT UTC Eastern Pacific",
        starter="He She It They We You I The This That These Those There Here A An But And So Or Then If When While What Why How Who Where Which My Your His Her Our Their Its Yes No Not Now At In On For From After Before As Is Are Do Did Does Was Were Can Could Will Would Should Let Please Thank Thanks Okay Oh Well However Also Because Once Some Most Maybe Perhaps Today Tomorrow Yesterday With Without Even Just",
        label="plan vitamin hepatitis grade group type option class team version point part exhibit section appendix figure door gate platform terminal line level phase language letter",
        word="no re ll miss",
    ),
    speaking=re.compile(
        rf"{_SPEAKER} {_SAID}(?: (?:me|him|her|us|them|again|\w+ly|to \w+))?"
        r"(?=\s*(?:[.;!?—–]|,(?!\s*[\"“])|$)|\s+(?:as|while|when|and|with)\b)"
    ),
    agreeing=_agreeing,
    before_nouns=frozenset(["a", "an", "the", "my", "your", "his", "her", "its", "our", "their", "this", "that", "these", "those"]),
    plurals=(("s", "ses"), ("x", "xes"), ("z", "zes"), ("ch", "ches"), ("sh", "shes"), ("ay", "ays"), ("ey", "eys"), ("oy", "oys"), ("y", "ies"), ("", "s")),
    singular=re.compile(r"(?:ss|us|is)$"),
)  # fmt: skip
