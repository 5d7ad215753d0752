"""Subtitles from deltas: cues, line breaking, text rules, direction and escaping. Pure."""
