"""Portuguese, as in Brazil where countries differ."""

from .record import Rules, fillers, stutter

RULES = Rules(
    neighbour="Eu sei disso.",
    phrases={
        "en": {
            "hãhã": "Uh-huh", "ahã": "Uh-huh", "aham": "Uh-huh", "uhum": "Mm-hmm", "tá": "Okay", "valeu": "Thanks",
            "denada": "You're welcome", "nãohádequê": "You're welcome", "tchau": "Bye", "atélogo": "See you later",
            "atémais": "See you later", "comlicença": "Excuse me", "eutambémnão": "Me neither", "igualmente": "Likewise",
            "comovai": "How are you", "fiqueàvontade": "Make yourself at home",
        }
    },
    fillers=fillers(r"h[ãu]m|ã?hã|hmm+"),
    stutter=stutter("as|com|da|de|do|e|ela|ele|em|eu|mas|na|no|os|para|que|se|um|uma"),
)  # fmt: skip
