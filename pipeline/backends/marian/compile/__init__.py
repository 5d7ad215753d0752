"""Compiles a Marian checkpoint of any format to the streaming layout: two graphs for token-by-token decoding."""

VERSION = 4
"""Version of the compiled output. Raise it when the same checkpoint would compile to graphs that give other results or
are faster, so that cached ones are recompiled."""
