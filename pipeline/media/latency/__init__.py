"""Latency: the standard measures of simultaneous translation. Pure."""
