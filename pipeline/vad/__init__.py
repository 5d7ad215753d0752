"""Voice activity detection: frame decisions, and apart from them the endpointing rules."""
