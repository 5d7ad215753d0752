"""Sentence splitting: sentence boundaries, and the exceptions that only look like one. Pure."""
