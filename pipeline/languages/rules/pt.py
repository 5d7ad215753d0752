"""Portuguese, as in Brazil where countries differ."""

import re

from .clock import HOUR, MORNING, NOT_IN_NUMBER, Clock, spoken_times
from .record import FullStops, Retry, Rules, fillers, stutter

_HOURS = ("uma", "duas", "três", "quatro", "cinco", "seis", "sete", "oito", "nove", "dez", "onze", "doze")
_TENS = {"vinte": 20, "trinta": 30, "quarenta": 40, "cinquenta": 50}
_ONES = ("um", "dois", *_HOURS[2:], "treze", "quatorze", "quinze", "dezesseis", "dezessete", "dezoito", "dezenove")
_HOUR = {word: hour for hour, word in enumerate((*_HOURS, *_ONES[12:]), 1)}
_HOUR |= {"vinte-e-uma": 21, "vinte-e-duas": 22, "vinte-e-três": 23}
_MINUTES = {word: minute for minute, word in enumerate(_ONES, 1)} | {"meia": 30, "catorze": 14} | _TENS
_MINUTES |= {f"{ten}-e-{word}": tens + one for ten, tens in _TENS.items() for one, word in enumerate(_ONES[:9], 1)}
_ELES = "(?:você|vocês|ele|ela|eles|elas|a gente|o senhor|a senhora|ess[ea]|est[ea])"
_ASKED = "(?:quer|sabe|precisa|consegue|lembra|entende|gosta|acha|prefere|conhece|fala|mora|trabalha)m?|(?:gost|compr|ach|encontr)(?:ou|aram)|(?:entend|com|esquec|l|perd)e(?:u|ram)|(?:consegu|ouv|dorm|v)i(?:u|ram)"
_HAPPENED = "(?:cheg|volt|pass|começ|acab|termin|fech|acord)(?:ou|aram)|(?:sa|part|abr|dorm)i?[uí](?:ram)?|(?:nasc|morr)e(?:u|ram)|fo(?:i|ram) embora"
_AGAIN = "(?:às \\w+-feiras|aos (?:sábados|domingos)|todos os (?:dias|anos)|todas as (?:manhãs|tardes|noites|semanas))"
# Questions that may be answered with yes or no, which have no form of their own.
_YES_OR_NO = r"(?!.*(?:\b(?:quem|onde|quando|quant\w+|qua(?:l|is)|como|cadê|que|quê|será|vamos)\b|,(?! (?-i:[A-ZÀ-Ü])\w+\?$))).*\w+\?$"
# A verb of which the sentence before tells the subject: none with a subject before it, and no first person.
_NO_SUBJECT = r"(?:(?:não|já|nunca|ainda|sim|também|só|se|me|te|lhe)\W+)*(?!(?:est(?:ou|ive)|[dsv]ou|tive|pude|fui(?! eu\b)|(?:aqu|[dn])?el[ae]|você|quem|\w+guém|uma|minha|[mst]eu|[st]ua|nossa|[dn]?es[st][ae]|que|de|onde|hoje|agora|para|[tc][ao]da|nada|boas?)\b)(?:é|são|está|estão|vão|[tv]êm|quer|diz|faz|traz|dá|[lv]ê|sai|cai|será|fui|\w+(?:a|e|am|em|[aeo]u|iu|oi))\b"
# Words before a noun, masculine → feminine.
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
_AGREEING = frozenset({*_FORMS, *_MASCULINES})
_FEMININE = re.compile(r"(?:[çs]ão|[çs]ões|gem|gens|dades?|tudes?|(?<![emor]m)(?<!\bdi)(?<!\bmap)as?)$")
_MASCULINE = re.compile(r"(?:[oeu]r(?:es)?|os?|[aeiou]l|[aeéó]is|um|ão|ões|[eo]mas?|dias?|mapas?)$")
# Adjectives and possessives after a verb, where no noun follows them.
_PREDICATE = re.compile(
    r"\b((?:é|são|era|eram|foi|foram|está|estão|estava|estavam|fic\w+)(?: (?:muito|mais|bem|tão|já|ainda))* )"
    r"(?!(?:is[st]o|tudo|cedo|sábado|domingo|segunda|terça|quarta|quinta|sexta|agora|\w+ista)\b)"
    r"(meu|teu|seu|bom|\w{2,}[oa])(s?)(?=\W*$|[,;:.!?]| (?:e|mas|para|que|por|pel[oa]s?|d[eoa]s?|n[oa]s?|em|com|demais|hoje|aqui)\b)"
)
# Of the words before a noun, those that are looked at.
_BEFORE = 3


def _agreeing(before: list[str], noun: str, after: str) -> tuple[list[str], str]:
    """The words around a noun, with articles, pronouns and adjectives in the gender of the noun; those after a verb if the noun begins the clause."""
    made, first = list(before), len(before)
    if not noun or noun[0].isupper():
        return made, after
    head = re.split(r"[\s-]", noun.lower())[0]
    forms = _FORMS if _FEMININE.search(head) else _MASCULINES if _MASCULINE.search(head) else {}

    def agreeing(word: str) -> str:
        other = "a" if forms is _FORMS else "o"
        return forms.get(word, word[:-1] + other if word[-1] in "oa" else word)

    while first > max(0, len(made) - _BEFORE) and (word := made[first - 1].lower()) in _AGREEING:
        first -= 1
        form = forms.get(word, word)
        made[first] = form.capitalize() if made[first][0].isupper() else form
    after = re.sub(r"^\w{4,}", lambda found: forms.get(found[0], found[0]), after)
    if forms and (not first or re.search(r"[,;:]$|^(?:que|se|mas|quando)$", made[first - 1].lower())):
        after = _PREDICATE.sub(lambda found: found[1] + agreeing(found[2]) + found[3], after)
    return made, after


RULES = Rules(
    neighbour="Eu sei disso.",
    goes_on=re.compile(_NO_SUBJECT, re.IGNORECASE),
    phrases={
        "en": {
            "hãhã": "Uh-huh", "ahã": "Uh-huh", "aham": "Uh-huh", "uhum": "Mm-hmm", "tá": "Okay", "valeu": "Thanks", "muitoobrigadoatodos": "Thank you all very much",
            "muitoobrigadaatodos": "Thank you all very much", "denada": "You're welcome", "nãohádequê": "You're welcome", "tchau": "Bye", "atélogo": "See you later",
            "atémais": "See you later", "comlicença": "Excuse me", "eutambémnão": "Me neither", "igualmente": "Likewise", "comovai": "How are you",
            "fiqueàvontade": "Make yourself at home", "evocê": "And you", "evocês": "And you", "eagora": "And now", "edaí": "So what", "cem": "A hundred",
        }
    },
    retries={"en": (Retry(re.compile(_YES_OR_NO, re.IGNORECASE), None, "Será que"), *(
        Retry(re.compile(rf"{word} (?:ganha|recebe|deve|paga|gasta|economiza|poupa)\b.*\d"), re.compile("It "), f"{word} sabe disso.", f"{name} knows that.")
        for word, name in (("Ele", "He"), ("Ela", "She"))  # where amounts follow, students take people for things
    ))},
    fillers=fillers(r"h[ãu]m|ã?hã|hmm+"),
    stutter=stutter("as|com|da|de|do|e|ela|ele|em|eu|mas|na|no|os|para|que|se|um|uma"),
    corrections=(
        (re.compile(r"(?<=\bàs )(1?\d|2[0-3])([0-5][05])(?=\W*$)"), r"\1h\2"),
        (re.compile(r"\bfaltam (?=\d?\dh)", re.IGNORECASE), "são "),  # dez para as sete
        (re.compile(r"\bmenos (?=\d+(?:,\d+)? ?(?:graus?\b|°|º))", re.IGNORECASE), "-"),
        (re.compile(r"\bfalta(?=m? (?:muito|pouco|\w+ (?:horas|minutos|dias|semanas|meses|anos))\b)", re.IGNORECASE), "resta"),  # left, not missing
        # Questions without a subject are to the listener; and "Has he ever arrived?" is another one.
        (re.compile(rf"^(?:{_ASKED})\b(?! os senhores)(?=[^.!]*\?)", re.IGNORECASE), lambda found: f"{'vocês' if found[0][-1] == 'm' else 'você'} {found[0].lower()}"),
        (re.compile(rf"^(el[ea]s?|[oa]s? \w+) já (?=(?:{_HAPPENED})\b[^.!]*\?)", re.IGNORECASE), lambda found: f"será que {found[1].lower()} "),
        (re.compile(r"^(?:(?:quebr|par|melhor|fech)ou(?=(?: de novo| hoje| ontem)?[.!]?$)|abriu(?=[.!]?$))", re.IGNORECASE), lambda found: f"isso {found[0].lower()}"),
        (re.compile(r"^nunca mais (?=(?:se |me |nos )?\w+[aei]ram\b)", re.IGNORECASE), "eles nunca mais "),
        (re.compile(r"\bdeu(?= [^.]+ (?:reais|euros|dólares|libras)\b)", re.IGNORECASE), "custou"),  # of a bill
        (re.compile(r"\bf(az|azia|ez)(?= (?:muito )?(?:frio|calor)\b)", re.IGNORECASE), lambda found: "está" if found[1].lower() == "az" else "estava"),
        (re.compile(r"\b(est(?:á|ava) (?:muito )?)calor\b", re.IGNORECASE), r"\1quente"),
        (re.compile(r"(?:^|(?<=, ))(segunda|terça|quarta|quinta|sexta)(?= (?:não|é feriado|p[oó][ds]\w+|t[eê][mn]\w*|que vem|à|de manhã)\b)", re.IGNORECASE), r"na \1-feira"),
        # Orders, which students read as statements.
        (re.compile(r"^(Me (?:mand|ajud|pass|cont|avis|deix|fal|cham|mostr|compr|acord|lev|(lig)))a\b(?!.*\?)"), lambda found: found[1] + "u" * bool(found[2]) + "e"),
        (re.compile(r"^Pode (?=(?:me|nos) )"), "Você pode "),
        # What happens again and again, which "fechamos" does not tell from what happened.
        (re.compile(r"(?<!chegou )(?<!avançou )(?<!passou )\b(às) (segundas|terças|quartas|quintas|sextas)\b(?!-| de final| d[ao]s? (?!manhã|tarde|noite)| núpcias)", re.IGNORECASE), r"\1 \2-feiras"),
        (re.compile(rf"(?:^|(?<=, ))({_AGAIN},? )(?:nós )?(?!est|d|\w*[áéíóú])(\w{{2,}}[^\We])amos\b", re.IGNORECASE), r"\1a gente \2a"),
        (re.compile(r"\bdas (\d\d?) às (1[2-9]|2[0-4])(?=\W*$|,| (?:de|aos?|todos|n[oa]s?)\b)"), r"das \1h às \2h"),
        (re.compile(rf"(?<=\bchegou )(?=(?:às? (?:\d[\dh:]*|{'|'.join(_HOURS)})|ao meio-dia)(?:\W*$|,| (?:e|em|d[ao]|horas|ao|na|no|hoje|ontem)\b))"), "lá "),
        (re.compile(r"\bramal(?= (?:(?:é|era|o|número|d[aeo]s?|mudou|para) ){0,3}\d)"), "extensão"),  # of a telephone
        (re.compile(r"^(?:Disque|Tecle)(?= \d para \w+r\b)"), "Pressione"),
        (re.compile(r"\bdia sim,?(?: e)? dia não\b"), "a cada dois dias"),
        # Of a birthday, not "ago".
        (re.compile(r"(?<=\w)(?<!\bjá)(?<!\bisso) faz (?=\w+(?: e \w+)? anos (?:em|n[oa]|hoje|amanhã)\b)"), " completa "),
        (re.compile(rf"\b(são) ({'|'.join(_HOUR).replace('-', ' ')}|\d\d?) horas(?=\W*$|,| (?:em|agora|aqui|da)\b)", re.IGNORECASE), lambda found: f"{found[1]} {_HOUR.get(found[2].lower().replace(' ', '-'), found[2])}h"),
    ),
    question=re.compile(
        rf"\W*(?:(?:e|mas|então),?\s+)?(?:onde|qual|quais|quant[oa]s?(?! [aà]s?\b)|por que|(?:a )?que horas|cadê|será que|quem (?:é|são) {_ELES}"
        rf"|o que (?:é (?:isso|isto|aquilo)|{_ELES}\b(?!.*\b(?:é|são|foi|era)\b))|(?:de|para|até) onde (?:{_ELES}|é|são|vem|vai|vamos|vão)"
        rf"|(?:com|de|para) quem (?:{_ELES}|é|são)|como (?:{_ELES} (?:está|vai|se)|vai|vão|foi [oa]|é que|se (?:diz|chama|escreve|faz))"
        r"|quando (?:é|foi|será) [oa]|posso (?:entrar|sair|pagar|ajudar|usar|ver))\b",
        re.IGNORECASE,
    ),
    # Students read "nove e meia" as nine and a half.
    spoken_times=spoken_times(
        r"(?:(?<=\b[àa]s )|(?<=\bà )|(?<=\bsão )|(?:(?<=\bé )|(?<=\bao ))(?=uma\b|mei))({0}) e ({1})(?![-\w])"
        r"|\b({1}) (para) (?:as?|o) ({0})(?![-\w])",
        _HOUR | {"meio-dia": 12, "meia-noite": 24},
        _MINUTES,
        "{}h{:02}",  # students keep the preposition before it, as in "at 6:22"
    ),
    digits=".,",
    separators=".,",
    scales=((" bilhões", 9), (" milhões", 6), (" mil", 3)),
    minus_words=("menos ",),
    currencies={
        "$": (("", " dólares"), ("$", ""), ("US$ ", ""), ("US$", ""), ("$ ", ""), ("", " dólar")),
        "€": (("", " euros"), ("€", ""), ("€ ", ""), ("", " €"), ("", " euro"), ("EUR ", "")),
        "£": (("", " libras"), ("£", ""), ("£ ", ""), ("", " libra")),
        "¥": (("", " ienes"), ("", " iuanes"), ("¥", "")),
        "R$": (("R$ ", ""), ("R$", ""), ("", " reais"), ("", " real")),
    },
    clock=Clock(
        pattern=rf"{NOT_IN_NUMBER}(?!(?<=\bsão )\d+ ?h(?:oras)? de\b){HOUR}(?:\s?(?P<sign>h(?:oras?)?\b)|[:h](?P<minute>[0-5]\d)(?:min)?)?"
        r"(?:\s(?P<part>da\s(?:manhã|tarde|noite|madrugada)))?",
        parts={
            "da manhã": MORNING, "da madrugada": range(7), "da tarde": range(12, 20), "da noite": {0, *range(18, 24)},
        },
        forms=("{}h{:02}", "{}:{:02}", "{:02}:{:02}", "{:02}h{:02}"),
        whole_hours=("{}h", "{} horas", "{} hora", "{}"),
        named={0: ("meia-noite",), 12: ("meio-dia",)},
        counts_to_24=True,
        lasting=re.compile(
            r"\b(?:dur\w+|demor\w+|lev\w+|falt\w+|de|por|há|em|mais|menos|quase|só|apenas)\s$", re.IGNORECASE
        ),
    ),
    full_stops=FullStops(
        before="sr sra srs sras srta dr dra drs dras prof profa profs eng engo arq d dª exmo exma exmos exmas ilmo ilma rev pe fr sto sta sgt av pça trav est p.ex cf aprox v.exa v.ex.a s.exa dep vs Gen Cel Cap Maj Ten",
        number="n no nº num núm pág págs p pp art arts vol vols cap caps fig figs tel séc inc ed",
        either="s.a ltda cia a.m p.m a.c d.c jr e.u.a ee.uu",
        list="etc et.al",
        starter="Ele Ela Eles Elas Eu Tu Você Vocês Nós O A Os As Um Uma Mas E Ou Então Depois Antes Quando Se Como Para Por Em No Na Nos Nas Com Sem De Do Da Que Quem Onde Meu Minha Seu Sua Nosso Nossa Este Esta Esse Essa Isso Isto Aquele Aquela Sim Não Agora Hoje Amanhã Ontem Aqui Ali Também Já É São Está Estão Obrigado Obrigada Porque Além Todos Tudo Assim Há Foi Era",
        label="plano vitamina grupo tipo classe opção versão ponto parte porta linha hepatite linguagem letra",
        word="no ex vi",
    ),
    agreeing=_agreeing,
    before_nouns=_AGREEING,
    plurals=(
        ("ês", "eses"), ("s", "s"), ("ão", "ões"), ("m", "ns"), ("al", "ais"), ("el", "éis"), ("ol", "óis"), ("ul", "uis"), ("il", "is"), ("r", "res"),
        ("z", "zes"), ("", "s"),
    ),
    singular=re.compile(r"(?:ês|ônibus|lápis|pires)$"),
    head_first=True,
)  # fmt: skip
