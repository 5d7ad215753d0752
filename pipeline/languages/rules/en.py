"""English."""

from .record import Rules, fillers, stutter

RULES = Rules(
    neighbour="I know that.",
    phrases={
        "pt": {
            "uhhuh": "Aham", "mmhmm": "Uhum", "umhmm": "Uhum", "uhhmm": "Uhum", "hmmhmm": "Uhum", "bye": "Tchau",
            "excuseme": "Com licença", "gotit": "Entendi", "nevermind": "Não importa", "notatall": "De modo algum",
            "meneither": "Nem eu", "youarewelcome": "De nada", "yourewelcome": "De nada",
        }
    },
    fillers=fillers(r"u[hm]+|uhm|erm?|hmm+"),
    stutter=stutter("a|an|and|at|but|for|he|i|if|in|it|my|of|on|or|she|the|they|this|to|we|with|you"),
)  # fmt: skip
