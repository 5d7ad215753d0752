"""Voice activity detection: frame decisions, and apart from them the rules that confirm them and find endpoints."""
