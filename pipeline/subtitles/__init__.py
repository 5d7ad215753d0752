"""Subtitles: cues from deltas, line breaking, and one file per sink."""
