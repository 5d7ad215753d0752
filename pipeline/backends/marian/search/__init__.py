"""How the tokens of a translation are chosen, and which of a draft's are shown."""
