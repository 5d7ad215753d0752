"""From a Marian checkpoint of any kind to the streaming layout: two graphs made for token-by-token decoding."""

VERSION = 2
"""Of what is written: raised whenever the same checkpoint would give other graphs, so that cached ones are made anew."""
