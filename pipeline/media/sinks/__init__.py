"""Sinks, one per file: the terminal, subtitle files, JSON lines, latency logs."""
